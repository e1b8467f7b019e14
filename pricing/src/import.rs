//! Imports the price files of other projects: the JSON of LiteLLM and of genai-prices.
//!
//! The importer leaves out what our format cannot express, and reports it with the reason. A price
//! that is not a number is a mistake, and then nothing is imported.

mod genai;
mod importer;
mod json;
mod litellm;

use jiff::civil::Date;
use serde_json::value::RawValue;
use taximeter_json::Value;

use importer::Importer;
pub use importer::{ImportError, Imported, LeftOut, Mistake};

/// Reads `text`, a price file of another project called `file`, and makes a price file with the
/// date `version`.
///
/// Errors: it is not JSON, it is of an unknown project, or it has values that are not prices. The
/// last error lists all of them.
pub fn import(text: &str, file: &str, version: Date) -> Result<Imported, ImportError> {
    let root: &RawValue = serde_json::from_str(text).map_err(|error| ImportError::NotJson {
        file: file.to_owned(),
        line: error.line(),
        column: error.column(),
        problem: error.to_string(),
    })?;
    let (root, mut importer) = (Value::checked(root.get()), Importer::new(text));
    let source = if litellm::read(root, &mut importer) {
        "LiteLLM"
    } else if genai::read(root, &mut importer) {
        "genai-prices"
    } else {
        return Err(ImportError::Unknown { file: file.to_owned() });
    };
    importer.finish(source, file, version)
}

#[cfg(test)]
mod tests;
