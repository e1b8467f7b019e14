//! `taximeter bill`: bills and exports.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use taximeter_billing::{Grouping, Zone};
use taximeter_export::Job;
use taximeter_export::format::{Format, Rendering};
use taximeter_store::Feed;
use taximeter_store::bills::{BillJob, Form, WIDTH};
use taximeter_store::terms::Terms;

use super::export::{self, ExportArgs};
use super::failure::Failure;
use super::ledger::{Ledger, LedgerArgs, unless_reader_left};
use super::period::PeriodArgs;
use crate::exit::complain;

const EXAMPLES: &str = "\
Examples:
  taximeter bill                                     this month so far, as an invoice
  taximeter bill --month 2026-10 --by tenant         one month, one line per tenant
  taximeter bill --tenant acme --by day,model        usage of acme, day by day
  taximeter bill --month 2026-10 --zone Europe/Berlin --by day       months and days in Berlin
  taximeter bill --by label:team --format csv -o teams.csv
  taximeter bill --tenant acme --by session          what each session of agents cost
  taximeter bill --from 2026-11-01 --to 2026-11-08 --format json | jq .total.cost
  taximeter bill --config taximeter.yaml             the ledger of that configuration, with GPU
                                                     shares and allowances
  taximeter bill --month 2026-10 --format focus -o october.csv       for FinOps tools
  taximeter bill --day 2026-11-25 --format stripe --strict           nothing if Stripe takes some
                                                     of the events no more
  taximeter bill --month 2026-10 --format parquet -o s3://usage/llm  records by tenant and hour

Session, agent, client, end user and tags are what clients say. Single requests alone have them, so
such a bill reads all requests of the period, and there is none for a time without their details.
FOCUS can be split by them as well: each has a column then.

A request belongs to the month of its admission. The time zone is that of --zone, else billing.zone
of the configuration, else UTC. Costs in csv and json are exact. The table rounds them.

All formats but table, csv and json are exports. Exports are always in UTC, as FOCUS requires. With
-o, an export comes with a manifest of rows, sums and checksums: NAME.manifest.json. A final period
always gives the same bytes. In a period that is not over, GPUs cost what they cost so far.

A period is final once the longest request time has passed since its end, and all gateways of the
store have written past that. Before that it is provisional, and the bill says what it waits for. A
gateway that has been silent for 24 hours is named and not waited for.

-o can name a file, a folder, or an object store (s3://, gs://, az://). In a folder or an object
store, the period is in the file names, and Parquet records are split by tenant, date and hour. The
credentials of object stores come from the variables AWS_…, GOOGLE_… and AZURE_….

The command works while the gateway runs, and without it.";

/// Shows or exports what each tenant used and owes
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BillArgs {
    #[command(flatten)]
    period: PeriodArgs,

    /// What the lines are split by: names with commas between them, out of tenant, model, provider,
    /// upstream, operation, route, key, label:NAME, session, agent, client, end_user, tag:NAME,
    /// month, day, hour [default: an invoice as a table, else tenant,model]
    #[arg(long, value_name = "NAMES")]
    by: Option<Grouping>,

    /// Only this tenant
    #[arg(long)]
    tenant: Option<String>,

    /// Format of the bill or export
    #[arg(long, value_enum, default_value_t)]
    format: Format,

    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// Write to a file, an existing folder, or an object store instead of standard output
    #[arg(short, long, value_name = "FILE|DIR|URL")]
    output: Option<PathBuf>,

    #[command(flatten)]
    export: ExportArgs,

    #[command(flatten)]
    pub(crate) ledger: LedgerArgs,
}

/// Writes the bill to `out`, or to the file in the arguments.
///
/// `ledger` is the ledger in the arguments. `feeds` are its journals, for entries that the store
/// does not have yet. `now` decides which month is the current one.
/// Errors: as [`Failure`] says. A reader of `out` that leaves is no error.
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
    let format = if args.json { Format::Json } else { args.format };
    let form = match args.export.written(format)? {
        Rendering::Bill(_) if args.export.has_window() => return Err(Failure::Window),
        Rendering::Bill(form) => form,
        Rendering::Export(content) => {
            if let Some(zone) = args.period.zone.named().filter(|zone| !zone.is_utc()) {
                return Err(Failure::ExportZone(zone.clone()));
            }
            let split_by = content.split_by(args.by.as_ref()).ok_or(Failure::ExportBy)?;
            let period = args.period.period(&Zone::UTC, now)?;
            let mut store = ledger.open(feeds)?.store;
            if let Some(tenant) = &tenant {
                let found = BillJob::absence::<Failure>(tenant, period, now, &terms, &mut store)?;
                found.as_deref().map(complain);
            }
            let (age_max, strict) = args.export.window(&content)?;
            let job = Job { content, period, tenant, split_by, now, age_max, strict, terms };
            return export::run(&mut store, &job, args.output.as_deref(), out);
        }
    };
    let zone = args.period.zone.zone(config);
    let (by, period) = (args.by.clone(), args.period.period(&zone, now)?);
    let job = BillJob { form, by, period, zone, tenant, now, terms };
    let mut named = ledger.open(feeds)?;
    let text = if form == Form::Table && named.store.is_empty()? {
        ledger.empty(&named)
    } else {
        let written = job.write::<Failure>(&mut named.store, &named.name, width(args))?;
        if let Some(note) = written.note {
            complain(&note);
        }
        written.text
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
