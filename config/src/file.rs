//! Entry points: the text of a file → `Config`, and the schema of such a file.

use std::io;
use std::path::Path;

use taximeter_yaml::{self as yaml, Kind, Node};

use crate::check;
use crate::json_schema::{Described, Schema};
use crate::mistake::{Findings, Mistakes};
use crate::model::Config;
use crate::reader::{Location, Read, Reader};
use crate::running;
use crate::schema::RawConfig;

/// The longest configuration that Taximeter reads, in bytes.
pub const CONFIG_BYTES_MAX: usize = 1 << 20;

impl Config {
    /// The configuration that `text` holds.
    ///
    /// `file_name` is for messages. Relative paths in the text start at its folder. `env` and
    /// `read_file` answer `${env:NAME}` and `${file:PATH}`.
    ///
    /// Errors: every mistake in the text. Text that is not YAML is one mistake, since nothing
    /// behind it can be read.
    pub fn from_yaml(
        text: &str,
        file_name: &str,
        env: &dyn Fn(&str) -> Option<String>,
        read_file: &dyn Fn(&Path) -> io::Result<String>,
    ) -> Result<Self, Mistakes> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let folder = Path::new(file_name).parent().unwrap_or(Path::new(""));
        let mut reader = Reader { env, read_file, folder, findings: Findings::default() };
        let config = tree(text, &mut reader)
            .and_then(|root| RawConfig::read(&root, "", &mut reader))
            .and_then(|raw| check::config(raw, &mut reader));
        reader.findings.into_result(config, text, file_name)
    }

    /// The JSON Schema (draft 7) of a configuration, for editors. It accepts every file that can be
    /// read. Only [`from_yaml`](Self::from_yaml) checks the rules between two keys.
    #[must_use]
    pub fn json_schema() -> serde_json::Value {
        schema().file(&running::effect)
    }
}

/// Every key of a file.
pub(crate) fn schema() -> Schema {
    RawConfig::described()
}

fn tree(text: &str, reader: &mut Reader<'_>) -> Option<Node> {
    if text.len() > CONFIG_BYTES_MAX {
        let hint = format!("expected at most {CONFIG_BYTES_MAX} bytes");
        reader.report(&Location { at: 0..0, path: "the file".to_owned() }, "is too long", hint);
        return None;
    }
    match yaml::parse(text) {
        Ok(Some(root)) if !matches!(root.kind, Kind::Null) => Some(root),
        Ok(_) => Some(Node { at: 0..0, kind: Kind::Map(Vec::new()) }),
        Err(error) => {
            reader.findings.mask_line(text, &error.at);
            let location = Location { at: error.at, path: String::new() };
            reader.report(&location, error.problem, format!("expected {}", error.expected));
            None
        }
    }
}
