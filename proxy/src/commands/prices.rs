//! `taximeter prices`: the price book, as it is in force.

mod list;
mod show;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use taximeter_pricing::PriceBook;

use super::load;

const EXAMPLES: &str = "\
Examples:
  taximeter prices list                       every model, USD per million tokens
  taximeter prices list claude                those with `claude` in their name
  taximeter prices show gpt-5.4               one model: tiers, context, caches, versions
  taximeter prices --overrides prices.yaml show my-model";

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
}

/// Prints prices.
///
/// Errors: the overrides cannot be read; the model is not in the book.
pub(crate) fn run(
    args: &PricesArgs,
    now: Timestamp,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let book = load::laid_over(PriceBook::builtin()?, &args.overrides)?;
    let today = now.to_zoned(TimeZone::UTC).date();
    match &args.command {
        PricesCommand::List { filter } => {
            list::list(&book, filter.as_deref().unwrap_or(""), today, out)?;
        }
        PricesCommand::Show { model } => show::show(&book, model, today, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
