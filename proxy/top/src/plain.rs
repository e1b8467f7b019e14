//! The same data as plain text, for files and pipes.

use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};

use super::headline::{self, Segment};
use super::listing::{Listing, of_names, of_running, of_upstreams};
use super::screen::Screen;
use super::snapshot::Snapshot;

/// Width of the tables: enough for every column.
const COLUMNS: usize = 200;

/// Writes everything.
pub(super) fn write(snapshot: &Snapshot, url: &str, out: &mut dyn Write) -> io::Result<()> {
    for pieces in [headline::who(snapshot), headline::what(snapshot), headline::money(snapshot)] {
        writeln!(out, "{}", joined(&pieces))?;
    }
    writeln!(out, "{}, {}", headline::first_tokens(snapshot), headline::window(snapshot))?;
    if let Some(trouble) = headline::trouble(snapshot, url) {
        writeln!(out, "{trouble}")?;
    }
    let screen = Screen::default();
    let named = |what, all| of_names(snapshot, what, all, &screen, COLUMNS, 0..usize::MAX);
    for listing in [
        named("tenants", &snapshot.tenants),
        named("models", &snapshot.models),
        of_running(snapshot, &screen, COLUMNS, 0..usize::MAX),
        of_upstreams(snapshot, COLUMNS, 0..usize::MAX),
    ] {
        writeln!(out, "\n{}", table(listing))?;
    }
    Ok(())
}

fn joined(pieces: &[Segment]) -> String {
    let texts: Vec<_> = pieces.iter().map(|piece| &*piece.text).collect();
    texts.join("  ")
}

fn table(listing: Listing) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(listing.columns.iter().map(|column| column.head.clone()));
    if listing.rows.is_empty() {
        table.add_row([listing.nothing]);
    }
    table.add_rows(listing.rows);
    for (column, head) in table.column_iter_mut().zip(listing.columns) {
        if head.is_figure {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines = table.to_string();
    let lines: Vec<_> = lines.lines().map(str::trim_end).collect();
    lines.join("\n")
}
