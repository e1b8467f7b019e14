//! Imports the price files of other projects: the JSON of LiteLLM and of genai-prices.
//!
//! The importer leaves out what our format cannot express, and reports it with the reason. A model
//! with a wrong value, such as a price that is not a number, is left out as a whole.

mod genai;
mod importer;
mod json;
mod litellm;

use jiff::civil::Date;
use serde_json::value::RawValue;
use taximeter_json::Value;

use importer::Importer;
pub use importer::{ImportError, Imported, LeftOut};

/// Reads `text`, a price file of another project called `file`, and makes a price file with the
/// date `version`.
///
/// Errors: it is not JSON, it is of an unknown project, or not one of its models can be taken.
pub fn import(text: &str, file: &str, version: Date) -> Result<Imported, ImportError> {
    let root: &RawValue =
        serde_json::from_slice(text.as_bytes()).map_err(|error| ImportError::NotJson {
            file: file.to_owned(),
            line: error.line(),
            column: error.column(),
            problem: error.to_string(),
        })?;
    let (root, mut importer) = (Value::checked(root.get()), Importer::new(text, version));
    let source = if litellm::read(root, &mut importer) {
        "LiteLLM"
    } else if genai::read(root, &mut importer) {
        "genai-prices"
    } else {
        return Err(ImportError::Unknown { file: file.to_owned() });
    };
    importer.finish(source, file)
}

#[cfg(test)]
mod tests;
