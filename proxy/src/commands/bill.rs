//! `taximeter bill`: what each tenant used and owes.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use taximeter_billing::{Grouping, Zone};
use taximeter_store::Feed;
use taximeter_store::bills::{BillJob, Form, WIDTH};
use taximeter_store::export::Job;
use taximeter_store::format::{Format, Rendering};
use taximeter_store::terms::Terms;

use super::export::{self, ExportArgs};
use super::failure::Failure;
use super::ledger::{Ledger, LedgerArgs, unless_reader_left};
use super::period::PeriodArgs;

const EXAMPLES: &str = "\
Examples:
  taximeter bill                                     this month so far, as an invoice
  taximeter bill --month 2026-10 --by tenant         last month, one line a tenant
  taximeter bill --tenant acme --by day,model        what acme used, day by day
  taximeter bill --month 2026-10 --zone Europe/Berlin --by day       months and days of Berlin
  taximeter bill --by label:team --format csv -o teams.csv
  taximeter bill --from 2026-11-01 --to 2026-11-08 --format json | jq .total.cost
  taximeter bill --config taximeter.yaml             of that file's gateway, with shares of GPUs
                                                     and what is free
  taximeter bill --month 2026-10 --format focus -o october.csv       for FinOps tools
  taximeter bill --month 2026-10 --format parquet -o s3://usage/llm  records, by tenant and hour

A request belongs to the month in which it was admitted, in the zone that --zone or the
configuration names, or else in UTC. Costs in csv and json are exact; the table rounds them.
Formats from focus on are exports, and by UTC whatever the zone, as FOCUS wants it: with -o they
come with a manifest of rows, sums and checksums, NAME.manifest.json. A period that is over is the
same bytes each time; of one that is not, what GPUs cost is what they cost so far. A folder or an
object store (s3://, gs://, az://) gets files that are called after the period, and records in
Parquet by tenant, date and hour; credentials are those of AWS_…, GOOGLE_… and AZURE_… variables.
Works while the gateway runs and while it does not.";

/// What each tenant used and owes
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BillArgs {
    #[command(flatten)]
    period: PeriodArgs,

    /// One line for each: tenant, model, provider, upstream, operation, route, key, month, day,
    /// hour, label:NAME [default: an invoice as a table, else tenant,model]
    #[arg(long, value_name = "NAMES")]
    by: Option<Grouping>,

    /// Only this tenant
    #[arg(long)]
    tenant: Option<String>,

    /// How to write it
    #[arg(long, value_enum, default_value_t)]
    format: Format,

    /// Write to a file, an existing folder, or an object store instead of standard output
    #[arg(short, long, value_name = "FILE|DIR|URL")]
    output: Option<PathBuf>,

    #[command(flatten)]
    export: ExportArgs,

    #[command(flatten)]
    pub(crate) ledger: LedgerArgs,
}

/// Writes the bill to `out`, or to the file that was named.
///
/// `ledger` is what the arguments name, `feeds` are its own, for what the store lacks; `now` decides
/// what the current month is.
/// Errors: as [`Failure`] says; a reader of `out` that leaves is none.
pub(crate) fn run(
    args: &BillArgs,
    ledger: &Ledger,
    now: Timestamp,
    feeds: &mut [Feed<'_>],
    out: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    let config = ledger.config.as_ref();
    let terms = config.map(Terms::of).unwrap_or_default();
    let tenant = args.tenant.clone();
    let form = match args.export.written(args.format)? {
        Rendering::Bill(form) => form,
        Rendering::Export(content) => {
            if let Some(zone) = args.period.zone.named().filter(|zone| !zone.is_utc()) {
                return Err(Failure::ExportZone(zone.clone()));
            }
            if args.by.is_some() {
                return Err(Failure::ExportBy);
            }
            let period = args.period.period(&Zone::UTC, now)?;
            let mut store = ledger.open(feeds)?.store;
            let job = Job { content, period, tenant, now, terms };
            return export::run(&mut store, &job, args.output.as_deref(), out);
        }
    };
    let zone = args.period.zone.zone(config);
    let (by, period) = (args.by.clone(), args.period.period(&zone, now)?);
    let job = BillJob { form, by, period, zone, tenant, now, terms };
    let mut asked = ledger.open(feeds)?;
    let text = if form == Form::Table && asked.store.is_empty()? {
        ledger.empty(&asked)
    } else {
        job.write::<Failure>(&mut asked.store, &asked.name, width(args))?
    };
    match &args.output {
        Some(path) => export::file(path, &text),
        None => unless_reader_left(write(out, &text)),
    }
}

fn write(out: &mut dyn Write, text: &str) -> Result<(), Failure> {
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn width(args: &BillArgs) -> usize {
    let terminal = || terminal_size::terminal_size_of(io::stdout());
    let found = if args.output.is_none() { terminal() } else { None };
    found.map_or(WIDTH, |(width, _)| width.0.into())
}

#[cfg(test)]
mod tests;
