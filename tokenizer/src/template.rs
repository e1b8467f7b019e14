//! Renders chat templates in Hugging Face's dialect of Jinja: from a chat request to the text that
//! its model reads.
//!
//! The result must equal that of `transformers` and vLLM: Python's `str`, `json.dumps` and string
//! methods, and messages in the shape that vLLM passes to a template. The module is pure: the time
//! is an argument.
//!
//! A request cannot make rendering long or large: the request's size, its messages, the steps of
//! the template and its output have limits. The template itself comes from the operator. A template
//! that doubles a text in a loop can still fill the memory.

mod config;
mod content;
mod conversation;
mod dialect;
mod error;
mod filters;
mod json;
mod limit;
mod methods;
mod python;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use indexmap::IndexMap;
use jiff::Timestamp;
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, ErrorKind, Value};

use config::{DEFAULT, TOOL_USE};
use conversation::{Conversation, member};
pub use error::TemplateError;

/// Longest template, in bytes.
const SOURCE_BYTES_MAX: usize = 1 << 20;
/// Longest request that is rendered, in bytes.
const REQUEST_BYTES_MAX: usize = 4 << 20;
/// Longest text that a template writes, in bytes.
const OUTPUT_BYTES_MAX: usize = 16 << 20;
/// Most steps of minijinja's machine: some thirty a message, and a second of time at the most.
const STEPS_MAX: u64 = 5_000_000;
/// Deepest nesting of macros.
const RECURSION_MAX: usize = 100;

/// A model's chat template, compiled. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ChatTemplate(Arc<Templates>);

#[derive(Debug)]
struct Templates {
    default: Template,
    /// Preferred when the request has tools.
    tool_use: Option<Template>,
    /// `bos_token` and the like: variables of the template.
    specials: Vec<(String, String)>,
}

#[derive(Debug)]
struct Template {
    environment: Environment<'static>,
    shape: content::Shape,
}

/// A request that a template has rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The prompt, marks of special tokens included.
    pub text: String,
    /// Whether messages have parts that are not text (images, audio). Their tokens are not in
    /// `text`.
    pub media: bool,
}

impl ChatTemplate {
    /// Compiles one template; `specials` are its variables `bos_token`, `eos_token` and so on.
    ///
    /// Errors: `Source` when it is not Jinja.
    pub fn new(
        source: &str,
        specials: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, TemplateError> {
        Self::named([(DEFAULT.to_owned(), source.to_owned())], specials)
    }

    /// The template of a model folder: `config` is its `tokenizer_config.json`, `jinja` its
    /// `chat_template.jinja`, which wins. `None` where the model has none.
    ///
    /// Errors: `TemplateConfig`, `Source`.
    pub fn from_config(config: &str, jinja: Option<&str>) -> Result<Option<Self>, TemplateError> {
        let config = config::read(config)?;
        match jinja {
            Some(source) => Self::new(source, config.specials).map(Some),
            None if config.templates.is_empty() => Ok(None),
            None => Self::named(config.templates, config.specials).map(Some),
        }
    }

    fn named(
        templates: impl IntoIterator<Item = (String, String)>,
        specials: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, TemplateError> {
        let (mut default, mut tool_use) = (None, None);
        for (name, source) in templates {
            match name.as_str() {
                DEFAULT => default = Some(Template::compile(&source)?),
                TOOL_USE => tool_use = Some(Template::compile(&source)?),
                _ => {}
            }
        }
        let default =
            default.ok_or_else(|| TemplateError::Config("no template named `default`".into()))?;
        let specials = specials.into_iter().collect();
        Ok(Self(Arc::new(Templates { default, tool_use, specials })))
    }

    /// Renders the body of a chat request: `messages`, `tools`, `documents`,
    /// `chat_template_kwargs`, `add_generation_prompt`, `reasoning_effort`.
    ///
    /// `now` is what `strftime_now` tells, in UTC. Takes milliseconds for long chats.
    /// Errors: `Request`, `Render` and `Limit`; what the engine would do then is not known.
    pub fn render(&self, body: &[u8], now: Timestamp) -> Result<Rendered, TemplateError> {
        if body.len() > REQUEST_BYTES_MAX {
            return Err(TemplateError::Limit("bytes of the request"));
        }
        let request: Value = serde_json::from_slice(body)
            .map_err(|_| TemplateError::Request("it is not JSON that a template can be given"))?;
        let has_tools = member(&request, "tools").is_some();
        let templates = &*self.0;
        let template = match &templates.tool_use {
            Some(tool_use) if has_tools => tool_use,
            _ => &templates.default,
        };
        if template.shape.names_methods && has_tools {
            return Err(TemplateError::Unsupported("it names methods that it does not call"));
        }
        let conversation = Conversation::read(&request, &template.shape)?;
        let mut variables = IndexMap::new();
        for (name, text) in &templates.specials {
            variables.insert(Value::from(name), Value::from(text));
        }
        conversation::variables(&request, &mut variables)?;
        let messages = Value::from(conversation.messages);
        if template.shape.joins_values && joined_otherwise(&variables, &messages) {
            return Err(TemplateError::Unsupported("it joins values that Python prints otherwise"));
        }
        variables.insert("messages".into(), messages);
        variables.insert("strftime_now".into(), python::strftime(now));
        let text = template.render(Value::from_object(variables))?;
        Ok(Rendered { text, media: conversation.media })
    }
}

impl Template {
    fn compile(source: &str) -> Result<Self, TemplateError> {
        if source.len() > SOURCE_BYTES_MAX {
            return Err(TemplateError::Source("it is longer than 1 MiB".into()));
        }
        let mut environment = Environment::new();
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true);
        environment.set_syntax(syntax.build().map_err(|fault| source_fault(&fault))?);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_recursion_limit(RECURSION_MAX);
        environment.set_fuel(Some(STEPS_MAX));
        dialect::speak(&mut environment);
        environment
            .add_template_owned(DEFAULT, content::in_our_words(source))
            .map_err(|fault| source_fault(&fault))?;
        Ok(Self { environment, shape: content::Shape::of(source) })
    }

    fn render(&self, variables: Value) -> Result<String, TemplateError> {
        let mut out = Bounded(Vec::new());
        self.environment
            .get_template(DEFAULT)
            .and_then(|template| template.render_captured_to(variables, &mut out).map(drop))
            .map_err(|fault| match fault.kind() {
                ErrorKind::OutOfFuel => TemplateError::Limit("steps of the template"),
                ErrorKind::WriteFailure => TemplateError::Limit("bytes of the prompt"),
                kind => TemplateError::Render {
                    reason: kind.to_string(),
                    line: fault.line().unwrap_or_default(),
                },
            })?;
        String::from_utf8(out.0).map_err(|_| TemplateError::Request("it is not UTF-8"))
    }
}

/// Whether tools or their calls have values that `~` would print in another way than Python.
fn joined_otherwise(variables: &IndexMap<Value, Value>, messages: &Value) -> bool {
    let calls = messages.try_iter().into_iter().flatten();
    let calls = calls.filter_map(|message| member(&message, "tool_calls"));
    let tools = variables.get(&Value::from("tools")).cloned();
    tools.into_iter().chain(calls).any(|value| python::prints_otherwise(&value))
}

fn source_fault(fault: &minijinja::Error) -> TemplateError {
    TemplateError::Source(fault.to_string())
}

/// Output that refuses more than [`OUTPUT_BYTES_MAX`].
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > OUTPUT_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
