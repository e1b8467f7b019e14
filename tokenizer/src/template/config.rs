//! Reads `tokenizer_config.json`: the templates, and the special tokens that they name.

use serde_json::Value;

use super::error::TemplateError;

/// Name of the template that is used when a request has tools, in a list of named ones.
pub(super) const TOOL_USE: &str = "tool_use";
/// Name of the template that is used otherwise.
pub(super) const DEFAULT: &str = "default";

/// What the file says that a template needs.
#[derive(Debug, Default)]
pub(super) struct TemplateConfig {
    /// Name and source; one without a name is `default`.
    pub(super) templates: Vec<(String, String)>,
    /// `bos_token` and the like, with their text.
    pub(super) specials: Vec<(String, String)>,
}

pub(super) fn read(text: &str) -> Result<TemplateConfig, TemplateError> {
    let file: Value = serde_json::from_slice(text.as_bytes())
        .map_err(|fault| TemplateError::Config(fault.to_string()))?;
    let Value::Object(file) = file else {
        return Err(TemplateError::Config("it is not a JSON object".into()));
    };
    let mut config = TemplateConfig::default();
    match file.get("chat_template") {
        Some(Value::String(source)) => {
            config.templates.push((DEFAULT.to_owned(), source.clone()));
        }
        Some(Value::Array(named)) => {
            for template in named {
                let (Some(name), Some(source)) =
                    (template["name"].as_str(), template["template"].as_str())
                else {
                    let told = "`chat_template` lists something without a name and a template";
                    return Err(TemplateError::Config(told.into()));
                };
                config.templates.push((name.to_owned(), source.to_owned()));
            }
        }
        None | Some(Value::Null) => {}
        Some(_) => {
            let told = "`chat_template` is neither a text nor a list of named templates";
            return Err(TemplateError::Config(told.into()));
        }
    }
    let extra = file.get("extra_special_tokens").and_then(Value::as_object);
    for (name, token) in file.iter().chain(extra.into_iter().flatten()) {
        // A token is its text, or an object that has it.
        let text = token.as_str().or_else(|| token["content"].as_str());
        if let (true, Some(text)) = (name.ends_with("_token"), text) {
            config.specials.push((name.clone(), text.to_owned()));
        }
    }
    Ok(config)
}
