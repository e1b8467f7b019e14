//! `taximeter bill`: what each tenant used and owes.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use taximeter_billing::{Bill, Biller, Grouping, Invoicer, Unit, Zone, csv, invoice, json, table};
use taximeter_config::Config;

use super::export::{self, ExportArgs};
use super::failure::Failure;
use super::ledger::{self, Asked, LedgerArgs};
use super::load;
use super::period::PeriodArgs;
use crate::edge::export::{Content, Job};
use crate::edge::store::{Feed, Store};
use crate::terms::{Scope, Terms};

/// Characters a line when the output is no terminal.
const WIDTH: usize = 120;

const EXAMPLES: &str = "\
Examples:
  taximeter bill                                     this month so far, as an invoice
  taximeter bill --month 2026-10 --by tenant         last month, one line a tenant
  taximeter bill --tenant acme --by day,model        what acme used, day by day
  taximeter bill --month 2026-10 --zone Europe/Berlin --by day       months and days of Berlin
  taximeter bill --by label:team --format csv -o teams.csv
  taximeter bill --from 2026-11-01 --to 2026-11-08 --format json | jq .total.cost
  taximeter bill --config taximeter.yaml             with shares of GPUs, and what is free
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

    /// The gateway's configuration, for what GPUs cost and what is free for whom each month
    #[arg(long, value_name = "FILE", env = "TAXIMETER_CONFIG")]
    config: Option<PathBuf>,

    #[command(flatten)]
    pub(super) ledger: LedgerArgs,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people; costs rounded
    #[default]
    Table,
    /// For spreadsheets; exact
    Csv,
    /// For programs; exact
    Json,
    /// FinOps FOCUS as CSV: a row per meter, tenant, model and hour
    Focus,
    /// The same as Parquet
    FocusParquet,
    /// Records as Parquet
    Parquet,
    /// Records as JSON, one a line
    Ndjson,
    /// CloudEvents for OpenMeter and others, one batch a line
    Cloudevents,
    /// Stripe meter events, one call's body a line
    Stripe,
    /// Lago events, one call's body a line
    Lago,
    /// Orb events, one call's body a line
    Orb,
}

impl BillArgs {
    /// Where what was recorded is.
    #[must_use]
    pub(crate) const fn ledger(&self) -> &LedgerArgs {
        &self.ledger
    }

    /// What is exported; `None` for a bill.
    fn content(&self) -> Option<Content> {
        let format = self.format.to_possible_value()?;
        self.export.content(format.get_name())
    }

    fn config(&self) -> Result<Option<Config>, Failure> {
        Ok(self.config.as_deref().map(load::config).transpose()?)
    }
}

/// Writes the bill to `out`, or to the file that was named.
///
/// `feeds` are those of [`LedgerArgs::feeds`], for what the store lacks; `now` decides what
/// the current month is.
/// Errors: as [`Failure`] says; a reader of `out` that leaves is none.
pub(crate) fn run(
    args: &BillArgs,
    now: Timestamp,
    feeds: &mut [Feed<'_>],
    out: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    let config = args.config()?;
    let terms = config.as_ref().map(Terms::of).unwrap_or_default();
    if let Some(content) = args.content() {
        if let Some(zone) = args.period.zone.named().filter(|zone| !zone.is_utc()) {
            return Err(Failure::ExportZone(zone.clone()));
        }
        let period = args.period.period(&Zone::UTC, now)?;
        let mut store = args.ledger.open(config.as_ref(), feeds)?.store;
        let job = Job { content, period, tenant: args.tenant.clone(), now, terms };
        return export::run(&mut store, &job, args.output.as_deref(), out);
    }
    let zone = args.period.zone.zone(config.as_ref());
    let scope = Scope {
        period: args.period.period(&zone, now)?,
        zone: &zone,
        unit: args.by.as_ref().and_then(Grouping::unit).unwrap_or(Unit::Month),
        tenant: args.tenant.as_deref(),
        now,
    };
    let mut asked = args.ledger.open(config.as_ref(), feeds)?;
    let text = render(args, scope, &terms, &mut asked)?;
    match &args.output {
        Some(path) => export::file(path, &text),
        None => ledger::unless_reader_left(write(out, &text)),
    }
}

fn render(
    args: &BillArgs,
    scope: Scope<'_>,
    terms: &Terms,
    asked: &mut Asked,
) -> Result<String, Failure> {
    let Asked { store, name } = asked;
    let source = format!("From {name}.\n");
    Ok(match args.format {
        Format::Table if store.is_empty()? => args.ledger.empty(asked),
        Format::Table if args.by.is_none() => {
            let mut invoicer = Invoicer::new(scope.period, scope.zone.clone(), scope.now);
            let credits = terms
                .hours(store, scope, |_, key, hour| Ok::<_, Failure>(invoicer.add(key, hour)?))?;
            for credit in credits {
                invoicer.add_credit(credit);
            }
            invoice(&invoicer.finish()?, width(args)) + &source
        }
        Format::Table => table(&bill(args, scope, terms, store)?, width(args)) + &source,
        Format::Csv => csv(&bill(args, scope, terms, store)?),
        // Exports are written elsewhere.
        _ => json(&bill(args, scope, terms, store)?),
    })
}

fn bill(
    args: &BillArgs,
    scope: Scope<'_>,
    terms: &Terms,
    store: &mut Store,
) -> Result<Bill, Failure> {
    let by = args.by.clone().unwrap_or_default();
    let mut biller = Biller::new(scope.period, scope.zone.clone(), by);
    let credits =
        terms.hours(store, scope, |_, key, hour| Ok::<_, Failure>(biller.add_hour(key, hour)?))?;
    for credit in credits {
        biller.add_credit(credit)?;
    }
    Ok(biller.finish())
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
