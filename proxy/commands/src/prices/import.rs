//! `taximeter prices import FILE`: converts price files of other projects.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use comfy_table::CellAlignment;
use jiff::civil::Date;
use taximeter_pricing::{Imported, LeftOut, import as read_foreign};

use super::list::table;
use crate::failure::Failure;
use crate::load::{self, PriceFileError};

/// Models in the examples of each reason.
const EXAMPLES_MAX: usize = 2;

/// Writes the price file to `output` or `out`, and a report of what is left out to `err`.
///
/// Errors: a file cannot be read or written; the format is unknown.
pub(super) fn import(
    file: &Path,
    output: Option<&Path>,
    today: Date,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<()> {
    let name = file.display().to_string();
    let text = load::price_file(file).map_err(Failure::from)?;
    let imported = read_foreign(&text, &name, today).map_err(file_fault)?;
    match output {
        Some(path) => std::fs::write(path, &imported.text)
            .map_err(|source| Failure::File { path: path.to_owned(), source })?,
        None => out.write_all(imported.text.as_bytes())?,
    }
    tell(&imported, err)
}

/// The error for a price file that cannot be used.
pub(super) fn file_fault(fault: impl Into<PriceFileError>) -> Failure {
    Failure::PriceFile(fault.into())
}

/// Says what is left out, and why.
///
/// Errors: `err` cannot be written.
pub(super) fn tell(imported: &Imported, err: &mut impl Write) -> anyhow::Result<()> {
    let Imported { source, models, taken, left_out, .. } = imported;
    let whole = left_out.iter().filter(|left_out| left_out.field.is_none()).count();
    let parts = left_out.len() - whole;
    writeln!(
        err,
        "{source}: {models} models, {taken} imported, {whole} skipped, {parts} prices of imported \
         models skipped"
    )?;
    if left_out.is_empty() {
        return Ok(());
    }
    let mut reasons: BTreeMap<_, Vec<&LeftOut>> = BTreeMap::new();
    for one in left_out {
        reasons.entry((one.field.as_deref(), one.why.as_ref())).or_default().push(one);
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    // Whole models come first, then the most frequent reasons.
    taximeter_collections::sort_by_key(&mut reasons, |((field, _), of)| {
        (field.is_some(), std::cmp::Reverse(of.len()))
    });
    let mut table = table(&["skipped", "models", "reason", "examples"]);
    for ((field, why), of) in reasons {
        let examples =
            of.iter().take(EXAMPLES_MAX).map(|one| format!("{}:{}", one.line, one.model));
        table.add_row([
            field.unwrap_or("model").to_owned(),
            of.len().to_string(),
            why.to_owned(),
            examples.collect::<Vec<_>>().join(", "),
        ]);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(err, "{table}")?;
    Ok(())
}
