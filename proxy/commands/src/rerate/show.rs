//! The output of `taximeter rerate`, as a table or as JSON.

use std::io::Write;

use comfy_table::{CellAlignment, Table, presets};
use jiff::Timestamp;
use serde::Serialize;
use taximeter_billing::{Difference, Differences, Period, Zone};

/// The arguments of the run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) period: Period,
    /// The time zone of the period.
    pub(super) zone: &'a Zone,
    pub(super) dry_run: bool,
    pub(super) reason: Option<&'a str>,
}

/// The result of the run.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) differences: Differences,
    /// Requests whose cost changes.
    pub(super) corrected: u64,
    /// Requests without a price in the files, which keep their known cost.
    pub(super) unpriced: u64,
}

/// Prints a table with a line for each tenant, model and currency.
pub(super) fn table(run: Run<'_>, outcome: &Outcome, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "Repriced: {}\n", run.period.heading(run.zone))?;
    if outcome.corrected > 0 {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["tenant", "model", "requests", "before", "after", "difference", ""]);
        for row in outcome.differences.rows() {
            table.add_row([
                printable(row.tenant),
                row.model.map_or_else(|| "(none)".to_owned(), printable),
                row.requests.to_string(),
                row.before.to_string(),
                row.after.to_string(),
                row.difference.to_string(),
                printable(row.currency),
            ]);
        }
        for column in table.column_iter_mut().skip(2).take(4) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        writeln!(out, "{table}\n")?;
    }
    let requests =
        |count: u64| if count == 1 { "1 request".to_owned() } else { format!("{count} requests") };
    match (outcome.corrected, run.dry_run) {
        (0, _) => writeln!(out, "No cost changes.")?,
        (count, true) => writeln!(out, "The cost of {} would change.", requests(count))?,
        (count, false) => writeln!(out, "The cost of {} is corrected.", requests(count))?,
    }
    if outcome.unpriced > 0 {
        let kept = requests(outcome.unpriced);
        writeln!(out, "No price in these files: {kept}. Their cost stays the same.")?;
    }
    Ok(())
}

/// A name from outside, with control characters escaped.
fn printable(name: &str) -> String {
    name.escape_debug().to_string()
}

#[derive(Serialize)]
struct Document<'a> {
    period: Ends<'a>,
    dry_run: bool,
    reason: Option<&'a str>,
    corrected_requests: u64,
    unpriced_requests: u64,
    rows: Vec<Difference<'a>>,
}

#[derive(Serialize)]
struct Ends<'a> {
    from: Timestamp,
    to: Timestamp,
    zone: &'a str,
}

/// Prints one JSON object with exact amounts.
pub(super) fn json(run: Run<'_>, outcome: &Outcome, out: &mut dyn Write) -> anyhow::Result<()> {
    let document = Document {
        period: Ends { from: run.period.from(), to: run.period.to(), zone: run.zone.name() },
        dry_run: run.dry_run,
        reason: run.reason,
        corrected_requests: outcome.corrected,
        unpriced_requests: outcome.unpriced,
        rows: outcome.differences.rows().collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    Ok(writeln!(out)?)
}
