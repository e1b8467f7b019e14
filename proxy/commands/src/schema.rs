//! `taximeter schema`: prints the JSON Schema of the configuration.

use std::io::{self, Write};

use taximeter_config::Config;

/// Prints the JSON Schema of the configuration, for editors
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  taximeter schema > taximeter.schema.json

Editors with the YAML language server (VS Code, Neovim, Emacs, Helix) then complete and explain keys,
and mark mistakes. Write this as the first line of a configuration in the same folder:

  # yaml-language-server: $schema=taximeter.schema.json")]
pub(crate) struct SchemaArgs {}

/// Writes the schema.
///
/// Errors: only those of writing.
pub(crate) fn run(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:#}", Config::json_schema())
}
