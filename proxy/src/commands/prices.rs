//! `taximeter prices`: the price book, as it is in force.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use comfy_table::{CellAlignment, Table, presets};
use jiff::Timestamp;
use rust_decimal::Decimal;
use taximeter_pricing::{MeterName, PriceBook, Rates, Row, ServiceTier, Threshold};

/// Prices are shown per so many tokens.
const UNIT_TOKENS: i64 = 1_000_000;

const EXAMPLES: &str = "\
Examples:
  taximeter prices list                       every model, USD per million tokens
  taximeter prices list claude                those with `claude` in their name
  taximeter prices show gpt-5.4               one model: tiers, context, caches
  taximeter prices --overrides prices.yaml show my-model";

/// The price book
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PricesArgs {
    /// File laid over the built-in book.
    #[arg(long, value_name = "FILE")]
    overrides: Option<PathBuf>,
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
    /// Every price of one model.
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
    let mut book = PriceBook::builtin()?;
    if let Some(file) = &args.overrides {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
        book = book.with_overrides(&text, &name)?;
    }
    match &args.command {
        PricesCommand::List { filter } => list(&book, filter.as_deref().unwrap_or(""), out)?,
        PricesCommand::Show { model } => {
            let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
            let rows: Vec<&Row> = book
                .rows()
                .filter(|row| row.model == *model || row.aliases.contains(model))
                .filter(|row| row.from.is_none_or(|from| from <= today))
                .collect();
            if rows.is_empty() {
                bail!("the book has no price for {model:?}; see `taximeter prices list`");
            }
            for row in rows {
                show(row, out)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

const COLUMNS: [(&str, MeterName); 5] = [
    ("input", MeterName::Input),
    ("cache read", MeterName::CacheRead),
    ("cache write", MeterName::CacheWrite),
    ("long write", MeterName::CacheWriteLong),
    ("output", MeterName::Output),
];

fn list(book: &PriceBook, filter: &str, out: &mut impl Write) -> anyhow::Result<()> {
    let mut table = table(&["provider", "model"]);
    let mut rows: Vec<&Row> = book.rows().filter(|row| row.model.contains(filter)).collect();
    rows.sort_by_key(|row| (&row.provider, &row.model));
    for row in &rows {
        let mut cells = vec![row.provider.clone().unwrap_or_default(), row.model.clone()];
        cells.extend(prices(&row.card.rates));
        table.add_row(cells);
    }
    writeln!(out, "{table}")?;
    writeln!(out, "USD per 1,000,000 tokens · {} models · book {}", rows.len(), book.version())?;
    Ok(())
}

fn show(row: &Row, out: &mut impl Write) -> anyhow::Result<()> {
    let mut table = table(&["service tier", "context"]);
    let mut add = |tier: &str, context: &str, rates: &Rates| {
        let mut cells = vec![tier.to_owned(), context.to_owned()];
        cells.extend(prices(rates));
        table.add_row(cells);
    };
    let tiers =
        [ServiceTier::Batch, ServiceTier::Flex, ServiceTier::Priority, ServiceTier::Ultrafast];
    let long = row.long_context.iter().map(|long| {
        let word = match long.threshold {
            Threshold::Over(tokens) => format!("> {tokens}"),
            Threshold::AtLeast(tokens) => format!("≥ {tokens}"),
        };
        (word, &long.card)
    });
    let short = match row.long_context.first().map(|long| long.threshold) {
        Some(Threshold::Over(tokens)) => format!("≤ {tokens}"),
        Some(Threshold::AtLeast(tokens)) => format!("< {tokens}"),
        None => String::new(),
    };
    let cards = std::iter::once((short, &row.card)).chain(long);
    for (context, card) in cards {
        add("standard", &context, &card.rates);
        for tier in tiers {
            if let Some(rates) = card.tiers.rates(tier) {
                add(tier.as_str(), &context, rates);
            }
        }
    }
    if let Some(off_peak) = &row.off_peak {
        add("off-peak", "", &off_peak.rates);
    }
    writeln!(out, "{}", row.price_id)?;
    writeln!(out, "{table}")?;
    writeln!(out, "USD per 1,000,000 tokens; `-` is no price of its own")?;
    Ok(())
}

fn prices(rates: &Rates) -> impl Iterator<Item = String> + '_ {
    COLUMNS.iter().map(|(_, meter)| {
        rates.rate(*meter).map_or_else(
            || "-".to_owned(),
            |rate| (rate * Decimal::from(UNIT_TOKENS)).normalize().to_string(),
        )
    })
}

fn table(first: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(first.iter().copied().chain(COLUMNS.iter().map(|(name, _)| *name)));
    for (index, column) in table.column_iter_mut().enumerate() {
        if index >= first.len() {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices(command: PricesCommand) -> anyhow::Result<String> {
        let args = PricesArgs { overrides: None, command };
        let mut out = Vec::new();
        run(&args, Timestamp::UNIX_EPOCH, &mut out)?;
        Ok(String::from_utf8(out)?)
    }

    #[test]
    fn the_list_can_be_narrowed() {
        let all = prices(PricesCommand::List { filter: None }).unwrap();
        assert!(all.contains("claude-sonnet-5-5") && all.contains("gpt-5.4"));
        let some = prices(PricesCommand::List { filter: Some("claude".into()) }).unwrap();
        assert!(some.contains("claude-sonnet-5-5") && !some.contains("gpt-5.4"));
    }

    #[test]
    fn one_model_shows_its_tiers_and_contexts() {
        let shown = prices(PricesCommand::Show { model: "gpt-5.4".into() }).unwrap();
        for part in ["batch", "flex", "priority", "> 272000", "22.5"] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }

    #[test]
    fn a_model_without_a_price_is_an_error_that_says_so() {
        let fault = prices(PricesCommand::Show { model: "nobody".into() }).unwrap_err();
        assert!(fault.to_string().contains("no price"));
    }
}
