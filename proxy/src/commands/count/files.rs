//! A model's files: its vocabulary and its chat template.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context as _;
use taximeter_tokenizer::{ChatTemplate, Tokenizer};

use crate::counting::Counting;

/// Vocabularies, as model folders call them.
const VOCABULARIES: [&str; 2] = ["tokenizer.json", "tekken.json"];

/// Reads a vocabulary, or a model folder with a template beside it.
pub(super) fn read(path: &Path) -> anyhow::Result<Counting> {
    if !path.is_dir() {
        return Ok(Counting::of_files(vocabulary(path)?, None));
    }
    let found = VOCABULARIES.iter().map(|name| path.join(name)).find(|file| file.is_file());
    let file = found.with_context(|| {
        format!("{} has neither {}", path.display(), VOCABULARIES.join(" nor "))
    })?;
    Ok(Counting::of_files(vocabulary(&file)?, template(path)?))
}

fn vocabulary(file: &Path) -> anyhow::Result<Tokenizer> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let loaded = Tokenizer::from_file(file.display().to_string(), &bytes)
        .with_context(|| file.display().to_string())?;
    Ok(loaded.tokenizer)
}

fn template(folder: &Path) -> anyhow::Result<Option<ChatTemplate>> {
    let jinja = optional(&folder.join("chat_template.jinja"))?;
    let config = optional(&folder.join("tokenizer_config.json"))?;
    let config = config.unwrap_or_else(|| "{}".to_owned());
    ChatTemplate::from_config(&config, jinja.as_deref())
        .with_context(|| folder.display().to_string())
}

/// A file's text; `None` where there is no such file.
fn optional(file: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(fault) if fault.kind() == ErrorKind::NotFound => Ok(None),
        Err(fault) => Err(fault).with_context(|| format!("cannot read {}", file.display())),
    }
}
