//! `taximeter prices diff FILE`: compares a price file with the price book.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::ValueEnum;
use comfy_table::CellAlignment;
use jiff::civil::Date;
use serde_json::{Value, json};
use taximeter_pricing::{Change, Difference, PriceBook, PriceChange, diff as differences, import};

use super::import::{file_fault, tell};
use super::list::table;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::load;

/// The output format.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(super) enum DiffFormat {
    /// For people: one line per price
    #[default]
    Table,
    /// For programs: one JSON object
    Json,
}

/// Prints the differences between `file` and `book`. The exit code is 1 if there are any. What is left
/// out of a file of another project is told to `err`, since it counts as missing.
///
/// Errors: the file cannot be read, or is no price file.
pub(super) fn diff(
    book: &PriceBook,
    file: &Path,
    format: DiffFormat,
    today: Date,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let other = read(file, today, err)?;
    let found = differences(book, &other, today);
    match format {
        DiffFormat::Table => as_table(book, &found, out)?,
        DiffFormat::Json => {
            let shown = json!({"book": book.version(), "differences": as_json(&found)});
            writeln!(out, "{shown}")?;
        }
    }
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { Exit::Failed.into() })
}

/// Reads a price file, or a JSON file that `import` can read.
fn read(file: &Path, today: Date, err: &mut impl Write) -> anyhow::Result<PriceBook> {
    let name = file.display().to_string();
    let text = load::price_file(file).map_err(Failure::from)?;
    let text = match text.trim_start().starts_with(['{', '[']) {
        true => {
            let imported = import(&text, &name, today).map_err(file_fault)?;
            tell(&imported, err)?;
            imported.text
        }
        false => text,
    };
    Ok(PriceBook::empty().with_overrides(&text, &name).map_err(file_fault)?)
}

fn as_table(book: &PriceBook, found: &[Difference], out: &mut impl Write) -> anyhow::Result<()> {
    let mut table = table(&["", "provider", "model", "price", "old", "new", "change"]);
    let (mut added, mut removed, mut changed) = (0, 0, 0);
    for Difference { provider, model, change } in found {
        let (mark, prices) = match change {
            Change::Added(prices) => {
                added += 1;
                ("+", prices.as_slice())
            }
            Change::Removed => {
                removed += 1;
                ("-", &[][..])
            }
            Change::Changed(prices) => {
                changed += 1;
                ("~", prices.as_slice())
            }
        };
        let name = [mark, provider.as_deref().unwrap_or("any"), model];
        if prices.is_empty() {
            table.add_row(name);
        }
        for change in prices {
            let price = [
                change.price.clone(),
                change.old.clone().unwrap_or_default(),
                change.new.clone().unwrap_or_default(),
                change.percent().map_or_else(String::new, |percent| format!("{percent:+} %")),
            ];
            table.add_row(name.map(str::to_owned).into_iter().chain(price));
        }
    }
    for column in table.column_iter_mut().skip(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    if !found.is_empty() {
        writeln!(out, "{table}")?;
    }
    writeln!(
        out,
        "{added} models added, {removed} removed, {changed} changed against {}",
        book.version()
    )?;
    Ok(())
}

fn as_json(found: &[Difference]) -> Vec<Value> {
    let price = |change: &PriceChange| {
        json!({
            "price": change.price,
            "old": change.old,
            "new": change.new,
            "percent": change.percent().map(|percent| percent.to_string()),
        })
    };
    let difference = |one: &Difference| {
        let (kind, prices) = match &one.change {
            Change::Added(prices) => ("added", prices.as_slice()),
            Change::Removed => ("removed", &[][..]),
            Change::Changed(prices) => ("changed", prices.as_slice()),
        };
        let prices: Vec<Value> = prices.iter().map(price).collect();
        json!({"change": kind, "provider": one.provider, "model": one.model, "prices": prices})
    };
    found.iter().map(difference).collect()
}
