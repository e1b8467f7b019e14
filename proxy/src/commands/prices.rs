//! `taximeter prices`: the price book as it is in force, and other files beside it.

mod diff;
mod import;
mod list;
mod show;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use taximeter_pricing::PriceBook;

use super::failure::Failure;
use super::load;

const EXAMPLES: &str = "\
Examples:
  taximeter prices list                       every model, USD per million tokens
  taximeter prices list claude                those with `claude` in their name
  taximeter prices show gpt-5.4               one model: tiers, context, caches, versions
  taximeter prices --overrides prices.yaml show my-model
  taximeter prices import model_prices_and_context_window.json -o litellm.yaml
  taximeter prices diff litellm.yaml          what another file would change

Exit code of `diff`: 0 where nothing differs, 1 where something does, 64 for a file that cannot be used.";

/// The price book
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PricesArgs {
    /// File laid over the built-in book, or a folder of them; several stand side by side.
    #[arg(long, value_name = "FILE")]
    overrides: Vec<PathBuf>,
    #[command(subcommand)]
    command: PricesCommand,
}

#[derive(Debug, Subcommand)]
enum PricesCommand {
    /// Every model with its standard prices.
    List {
        /// Only models with this in their name.
        filter: Option<String>,
    },
    /// Every price of one model, in all versions.
    Show {
        /// Model, as in a request.
        model: String,
    },
    /// LiteLLM's or genai-prices' JSON as a price file of ours; what was left out goes to stderr.
    Import {
        /// `model_prices_and_context_window.json`, or genai-prices' `data.json` or `data_slim.json`.
        file: PathBuf,
        /// Where the price file goes; standard output unless told.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// What a price file, ours or one that can be imported, has else than the book in force.
    Diff {
        /// The file.
        file: PathBuf,
        /// How it is shown.
        #[arg(long, value_enum, default_value_t)]
        format: diff::Format,
    },
}

/// Prints prices.
///
/// Errors: a file cannot be read; the model is not in the book.
pub(crate) fn run(
    args: &PricesArgs,
    now: Timestamp,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let book = load::laid_over(PriceBook::builtin()?, &args.overrides).map_err(Failure::from)?;
    let today = now.to_zoned(TimeZone::UTC).date();
    match &args.command {
        PricesCommand::List { filter } => {
            list::list(&book, filter.as_deref().unwrap_or(""), today, out)?;
        }
        PricesCommand::Show { model } => show::show(&book, model, today, out)?,
        PricesCommand::Import { file, output } => {
            import::import(file, output.as_deref(), today, out, err)?;
        }
        PricesCommand::Diff { file, format } => {
            return diff::diff(&book, file, *format, today, out);
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
