//! `taximeter prices`: shows the price book, imports other price files, and compares them with it.

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
  taximeter prices list                       all models, in USD per million tokens
  taximeter prices list claude                models with `claude` in their names
  taximeter prices show gpt-5.4               all prices of one model
  taximeter prices --overrides prices.yaml show my-model
  taximeter prices import model_prices_and_context_window.json -o litellm.yaml
  taximeter prices diff litellm.yaml          compare another file with the price book

Exit code of `diff`: 0 if nothing differs, 1 if something differs, 64 if the file cannot be used.";

/// Shows, imports and compares prices
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PricesArgs {
    /// File or folder with prices that override the built-in price book. May be repeated
    #[arg(long, value_name = "FILE")]
    overrides: Vec<PathBuf>,
    #[command(subcommand)]
    command: PricesCommand,
}

#[derive(Debug, Subcommand)]
enum PricesCommand {
    /// Lists all models with their standard prices
    List {
        /// Only models with this text in their names
        filter: Option<String>,
    },
    /// Shows all prices of one model, in all versions
    Show {
        /// Name of the model, as in a request
        model: String,
    },
    /// Converts a price file of LiteLLM or genai-prices. Prices that it leaves out are on stderr
    Import {
        /// `model_prices_and_context_window.json` of LiteLLM, or `data.json` or `data_slim.json` of
        /// genai-prices
        file: PathBuf,
        /// File for the result [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Compares a price file with the price book. The file may be one that `import` reads
    Diff {
        /// The price file
        file: PathBuf,
        /// Output format
        #[arg(long, value_enum, default_value_t)]
        format: diff::DiffFormat,
        /// The same as --format json
        #[arg(long, conflicts_with = "format")]
        json: bool,
    },
}

/// Runs the subcommand.
///
/// Errors: a file cannot be read; the price book does not have the model.
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
        PricesCommand::Show { model } => show::show(&book, model, now, out)?,
        PricesCommand::Import { file, output } => {
            import::import(file, output.as_deref(), today, out, err)?;
        }
        PricesCommand::Diff { file, format, json } => {
            let format = if *json { diff::DiffFormat::Json } else { *format };
            return diff::diff(&book, file, format, today, out, err);
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
