//! `taximeter schema`: what a configuration may look like, for editors.

use std::io::{self, Write};

use taximeter_config::Config;

/// JSON Schema of the configuration, for editors
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  taximeter schema > taximeter.schema.json

  # yaml-language-server: $schema=taximeter.schema.json
      as the first line of a configuration beside it: keys are completed and explained, and mistakes
      marked, by editors with the YAML language server (VS Code, Neovim, Emacs, Helix)")]
pub(crate) struct SchemaArgs {}

/// Writes the schema.
///
/// Errors: only those of writing.
pub(crate) fn run(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:#}", Config::json_schema())
}
