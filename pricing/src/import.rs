//! Other projects' price files → rows of ours: LiteLLM's and genai-prices' JSON.
//!
//! What cannot be said in our form is left out and told, with the reason; a number that is none is
//! a mistake, and nothing is imported.

mod genai;
mod json;
mod litellm;
mod taker;

use jiff::civil::Date;
use serde_json::value::RawValue;
use taximeter_json::Value;

use taker::Taker;
pub use taker::{ImportError, Imported, LeftOut, Mistake};

/// Reads `text`, a price file of another project called `file`, as a file of ours of the day
/// `version`.
///
/// Errors: it is no JSON, none that is known, or has values that are no prices – all of them.
pub fn import(text: &str, file: &str, version: Date) -> Result<Imported, ImportError> {
    let root: &RawValue = serde_json::from_str(text).map_err(|error| ImportError::NotJson {
        file: file.to_owned(),
        line: error.line(),
        column: error.column(),
        problem: error.to_string(),
    })?;
    let (root, mut taker) = (Value::checked(root.get()), Taker::new(text));
    let source = if litellm::read(root, &mut taker) {
        "LiteLLM"
    } else if genai::read(root, &mut taker) {
        "genai-prices"
    } else {
        return Err(ImportError::Unknown { file: file.to_owned() });
    };
    taker.finish(source, file, version)
}

#[cfg(test)]
mod tests;
