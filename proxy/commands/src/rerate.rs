//! `taximeter rerate`: prices the requests of a period again, and writes corrections to the ledger.
//! It changes no record.

pub(super) mod corrections;
mod show;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Args, ValueEnum};
use jiff::Timestamp;
use taximeter_billing::{Period, Zone, amounts_differ, costs_differ};
use taximeter_gateway::tariffs::Tariffs;
use taximeter_journal::JournalError;
use taximeter_ledger::{Charge, Completed, Completion, Correction, Record, RecordCost, RequestId};
use taximeter_pricing::PriceBook;
use taximeter_store::{Filter, Store};

use self::corrections::Corrections;
use self::show::{Outcome, Run};
use super::failure::Failure;
use super::ledger::{Ledger, LedgerArgs};
use super::load::{self, PriceFileError};
use super::period::PeriodArgs;
use super::progress::Progress;
use super::serve::gateway_id;
use crate::exit::{self, Exit};

const EXAMPLES: &str = "\
Examples:
  taximeter rerate --month 2026-10 --config taximeter.yaml --dry-run        show what would change
  taximeter rerate --month 2026-10 --config taximeter.yaml --reason 'discount of acme was late'
  taximeter rerate --from 2026-11-01 --to 2026-11-08 --tenant acme --book new.yaml --reason typo
  taximeter rerate --month 2026-10 --config taximeter.yaml --reason late --store postgres://…

The command takes the prices that the files have now for the time of each request's admission. If
the cost of a request changes, the ledger gets a correction. The record stays as it is, and bills
show the correction in the month of the request. A request without a price in these files keeps its
cost. A second run with the same files changes nothing. The command works while the gateway runs.

With a shared database, the command prices the requests of all gateways again. It writes the
corrections to the data directory, and from there to the database. Use the data directory of a
gateway that feeds the database, or a new one that you keep. Only one run corrects at a time. If a
run ends early, run it again with the same directory; no other run can start before that. If that
directory is lost, use --lost with the gateway in the error message: --lost pod-7/0.";

/// Prices a period again, and writes the differences to the ledger as corrections
#[derive(Debug, Clone, Args)]
#[command(
    after_help = EXAMPLES,
    group = ArgGroup::new("when").args(["month", "day", "from"]).required(true),
    group = ArgGroup::new("prices").args(["config", "book"]).required(true).multiple(true)
)]
pub(crate) struct RerateArgs {
    #[command(flatten)]
    period: PeriodArgs,

    /// Only this tenant
    #[arg(long)]
    tenant: Option<String>,

    /// Only this model: that of the answer, or that of the request if there was no answer
    #[arg(long)]
    model: Option<String>,

    /// File or folder with prices, instead of the overrides in the configuration. It overrides the
    /// built-in price book. May be repeated
    #[arg(long, value_name = "FILE")]
    book: Vec<PathBuf>,

    /// Only show what would change
    #[arg(long)]
    dry_run: bool,

    /// Reason, for people who read the corrections
    #[arg(long, value_name = "TEXT", required_unless_present = "dry_run")]
    reason: Option<String>,

    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: RerateFormat,

    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// Name of a gateway whose data directory is lost, after a run that ended early
    #[arg(long, value_name = "GATEWAY", conflicts_with = "dry_run")]
    lost: Option<String>,

    #[command(flatten)]
    ledger: LedgerArgs,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum RerateFormat {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}

/// The ledger and the prices to use.
struct Agreed {
    ledger: Ledger,
    tariffs: Tariffs,
    /// Resource attributes of the gateway.
    resource: BTreeMap<String, String>,
    /// The time zone of months and days.
    zone: Zone,
}

/// Writes the corrections, and prints the differences to `out`.
///
/// Errors: a price file cannot be used (exit code 64); another run writes corrections (exit code
/// 75); the ledger cannot be read or written.
pub(crate) fn run(
    args: &RerateArgs,
    now: Timestamp,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    match rerate(args, now, out) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(fault) if matches!(fault.downcast_ref(), Some(JournalError::InUse { .. })) => {
            exit::complain(&format!("taximeter: {}", exit::text(&fault)));
            Ok(Exit::InUse.into())
        }
        Err(fault) => Err(fault),
    }
}

fn rerate(args: &RerateArgs, now: Timestamp, out: &mut dyn Write) -> anyhow::Result<()> {
    let agreed = args.agreed()?;
    let period = args.period.period(&agreed.zone, now).map_err(Failure::from)?;
    let reason = args.reason.as_deref().filter(|_| !args.dry_run);
    let outcome = match reason {
        None => would_change(args, &agreed, period)?,
        Some(reason) => correct(args, &agreed, period, reason, now)?,
    };
    let (zone, dry_run) = (&agreed.zone, args.dry_run);
    let run = Run { period, zone, dry_run, reason: args.reason.as_deref() };
    match if args.json { RerateFormat::Json } else { args.format } {
        RerateFormat::Table => show::table(run, &outcome, out),
        RerateFormat::Json => show::json(run, &outcome, out),
    }
}

fn would_change(args: &RerateArgs, agreed: &Agreed, period: Period) -> anyhow::Result<Outcome> {
    let Agreed { ledger, tariffs, .. } = agreed;
    let mut store = ledger.open(&mut ledger.feeds())?.store;
    store.need_details(period.from()).map_err(Failure::from)?;
    let in_force = InForce::of(args, period, &mut store)?;
    outcome(args, period, tariffs, &mut store, in_force, |_, _, _, _| Ok(()))
}

/// Writes corrections. Each one is in the journal before it is in the store. All earlier ones are in
/// the store before the next run reads it, even if a run ended early.
fn correct(
    args: &RerateArgs,
    agreed: &Agreed,
    period: Period,
    reason: &str,
    now: Timestamp,
) -> anyhow::Result<Outcome> {
    let Agreed { ledger, tariffs, resource, .. } = agreed;
    if args.lost.is_some() && !ledger.is_shared() {
        return Err(Failure::NotShared { dir: ledger.data_dir.clone() }.into());
    }
    let mut store = ledger.open_to_correct(&gateway_id(resource))?;
    store.need_details(period.from()).map_err(Failure::from)?;
    let dir = &ledger.data_dir;
    let mut corrections =
        Corrections::open(&dir.join(taximeter_journal::CORRECTIONS), resource, reason, now)?;
    store.begin_correcting(now, args.lost.as_deref()).map_err(Failure::from)?;
    let mut feeds = taximeter_store::feeds(dir);
    store.catch_up(&mut feeds).map_err(Failure::from)?;
    let in_force = InForce::of(args, period, &mut store)?;
    corrections.go_on_behind(in_force.newest);
    let outcome = outcome(
        args,
        period,
        tariffs,
        &mut store,
        in_force,
        |record, completed, before, after| corrections.write(record, completed, before, after),
    )?;
    corrections.close()?;
    let fed = store.catch_up(&mut feeds).and_then(|_| store.end_correcting());
    fed.map_err(|fault| Failure::Unfed { dir: dir.clone(), fault })?;
    Ok(outcome)
}

/// The costs of requests after their last corrections, and what completed them.
#[derive(Default)]
struct InForce {
    costs: HashMap<RequestId, Option<RecordCost>>,
    completions: HashMap<RequestId, Completion>,
    /// The time of the newest correction.
    newest: Option<Timestamp>,
}

impl InForce {
    fn of(args: &RerateArgs, period: Period, store: &mut Store) -> Result<Self, Failure> {
        let mut found = Self::default();
        store.corrections(period, args.tenant.as_deref(), |_, correction: &Correction| {
            found.costs.insert(correction.corrects, correction.after.clone());
            if let Some(completion) = &correction.completion {
                found.completions.insert(correction.corrects, (**completion).clone());
            }
            found.newest = found.newest.max(Some(correction.made_at));
            Ok::<_, Failure>(())
        })?;
        Ok(found)
    }
}

/// Prices the requests in the store again, and calls `change` for each new cost.
fn outcome(
    args: &RerateArgs,
    period: Period,
    tariffs: &Tariffs,
    store: &mut Store,
    mut in_force: InForce,
    mut change: impl FnMut(
        &Record,
        Option<Completed>,
        Option<RecordCost>,
        Option<RecordCost>,
    ) -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    let filter =
        Filter { tenant: args.tenant.clone(), from: Some(period.from()), to: Some(period.to()) };
    let mut outcome = Outcome::default();
    let mut progress = Progress::new("requests priced again");
    let newest = store.newest()?;
    store.records(&filter, newest, None, |record| {
        progress.advance();
        if record.used_nothing() {
            return Ok(());
        }
        let completion = in_force.completions.remove(&record.id);
        let completed = completion.as_ref().map(Completed::of);
        let record = match &completion {
            Some(completion) => &record.clone().completed(completion),
            None => record,
        };
        let model = record.response_model.as_ref().or(record.request_model.as_ref());
        if args.model.is_some() && args.model.as_ref() != model {
            return Ok(());
        }
        // What a pending request costs is said when it is completed.
        if record.is_pending() {
            return Ok(());
        }
        let before = in_force.costs.remove(&record.id).unwrap_or_else(|| record.owed().cloned());
        let batch = completion.as_ref().filter(|completion| completion.requests.is_some());
        let again = match batch {
            None => Some(tariffs.charge_again(record)),
            // Each of its requests has a price of its own.
            Some(batch) => tariffs.charge_batch_again(record, &batch.models),
        };
        let Some(Charge { cost: after, unknown }) = again else {
            outcome.unpriced += u64::from(before.is_some());
            return Ok(());
        };
        let is_known_in_part = after.is_some() && RecordCost::is_unknown(before.as_ref());
        if !unknown.is_empty() && !is_known_in_part {
            outcome.unpriced += u64::from(before.is_some());
            return Ok(());
        }
        // The lines of a batch are those of its requests, of which only the sum is known.
        let differ = if batch.is_some() { amounts_differ } else { costs_differ };
        if !differ(before.as_ref(), after.as_ref()) {
            return Ok(());
        }
        outcome.differences.add(record, before.as_ref(), after.as_ref())?;
        outcome.corrected += 1;
        change(record, completed, before, after)
    })?;
    progress.end();
    Ok(outcome)
}

impl RerateArgs {
    /// The ledger and the prices in the arguments.
    fn agreed(&self) -> Result<Agreed, Failure> {
        let mut ledger = self.ledger.find()?;
        let zone = self.period.zone.zone(ledger.config.as_ref());
        let Some(config) = &mut ledger.config else {
            let builtin = PriceBook::builtin().map_err(PriceFileError::from)?;
            let book = load::laid_over(builtin, &self.book)?;
            let tariffs = Tariffs::new(book, HashMap::new(), HashMap::new());
            return Ok(Agreed { ledger, tariffs, resource: BTreeMap::new(), zone });
        };
        if !self.book.is_empty() {
            config.prices.overrides.clone_from(&self.book);
        }
        let (tariffs, resource) = (load::tariffs(config)?, config.resource.clone());
        Ok(Agreed { ledger, tariffs, resource, zone })
    }
}
