//! `taximeter rerate`: prices the requests of a period again, and writes what changes as
//! corrections. Nothing that was written is changed.

mod corrections;
mod show;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Args, ValueEnum};
use jiff::Timestamp;
use taximeter_billing::{Period, Zone, costs_differ};
use taximeter_config::Config;
use taximeter_ledger::{Correction, Record, RecordCost, RequestId};
use taximeter_pricing::PriceBook;

use self::corrections::Corrections;
use self::show::{Outcome, Run};
use super::ledger;
use super::load::{self, LoadError, PriceFileError};
use super::period::PeriodArgs;
use super::progress::Progress;
use crate::edge::journal::{self, JournalError};
use crate::edge::store::{FedStore, Filter, Store};
use crate::exit::{self, Exit};
use crate::tariffs::Tariffs;

const EXAMPLES: &str = "\
Examples:
  taximeter rerate --month 2026-10 --config taximeter.yaml --dry-run        what would change
  taximeter rerate --month 2026-10 --config taximeter.yaml --reason 'discount of acme was late'
  taximeter rerate --from 2026-11-01 --to 2026-11-08 --tenant acme --book new.yaml --reason typo

Every request is priced at the prices that were in force when it was admitted, as the files have
them now. One whose cost changes gets a correction in the ledger; its record stays as it is, and
bills show the correction in the month of the request. One that these files cannot price keeps its
cost. Run again with the same files, nothing changes. Works while the gateway runs.";

/// Prices a period again, and writes the differences as corrections
#[derive(Debug, Clone, Args)]
#[command(
    after_help = EXAMPLES,
    group = ArgGroup::new("when").args(["month", "day", "from"]).required(true)
)]
pub(crate) struct RerateArgs {
    #[command(flatten)]
    period: PeriodArgs,

    /// Only this tenant
    #[arg(long)]
    tenant: Option<String>,

    /// Only this model: the answer's, or the request's when there was no answer
    #[arg(long)]
    model: Option<String>,

    /// Prices and tenants' terms as in this configuration, and its gateway's ledger
    #[arg(long, value_name = "FILE", env = "TAXIMETER_CONFIG", required_unless_present = "book")]
    config: Option<PathBuf>,

    /// A file of prices, or a folder of them, laid over the built-in book in place of those that
    /// the configuration names; several stand side by side
    #[arg(long, value_name = "FILE")]
    book: Vec<PathBuf>,

    /// Only show what would change
    #[arg(long)]
    dry_run: bool,

    /// Why, for those who read the corrections
    #[arg(long, value_name = "TEXT", required_unless_present = "dry_run")]
    reason: Option<String>,

    /// How to show it
    #[arg(long, value_enum, default_value_t)]
    format: Format,

    /// The gateway's data directory [default: data_dir of the configuration, else ./taximeter-data]
    #[arg(long, value_name = "DIR", env = "TAXIMETER_DATA_DIR")]
    data_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}

/// What was agreed.
struct Agreed {
    data_dir: PathBuf,
    tariffs: Tariffs,
    /// Where the gateway runs.
    resource: BTreeMap<String, String>,
    /// Whose month or day it is about.
    zone: Zone,
}

/// Writes the corrections, and shows the differences on `out`.
///
/// Errors: files of prices that cannot be used (exit 64), another run that writes corrections (exit
/// 75), a ledger that cannot be read or written.
pub(crate) fn run(
    args: &RerateArgs,
    now: Timestamp,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    match rerate(args, now, out) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(fault) if matches!(fault.downcast_ref(), Some(JournalError::InUse { .. })) => {
            exit::complain(&format!("taximeter: {}", exit::told(&fault)));
            Ok(Exit::InUse.into())
        }
        Err(fault) if fault.is::<LoadError>() => {
            exit::complain(&exit::told(&fault));
            Ok(Exit::Configuration.into())
        }
        Err(fault) => Err(fault),
    }
}

fn rerate(args: &RerateArgs, now: Timestamp, out: &mut dyn Write) -> anyhow::Result<()> {
    let Agreed { data_dir, tariffs, resource, zone } = args.agreed()?;
    let period = args.period.period(&zone, now)?;
    let mut store = Store::open(&data_dir)?;
    if let Some(fed) = FedStore::of(&data_dir)? {
        exit::complain(&format!(
            "taximeter: of what {} has, only the requests are priced again that are in {}",
            fed.store,
            data_dir.display()
        ));
    }
    // Whoever else corrects has ended before it is asked what is in force.
    let dir = data_dir.join(journal::CORRECTIONS);
    let reason = args.reason.as_deref().filter(|_| !args.dry_run);
    let mut corrections =
        reason.map(|reason| Corrections::open(&dir, &resource, reason, now)).transpose()?;
    store.catch_up(&mut journal::feeds(&data_dir))?;
    let outcome = outcome(args, period, &tariffs, &mut store, |record, before, after| {
        corrections.as_mut().map_or(Ok(()), |to| to.write(record, before, after))
    })?;
    if let Some(corrections) = corrections {
        corrections.close()?;
    }
    let run = Run { period, zone: &zone, dry_run: args.dry_run, reason: args.reason.as_deref() };
    match args.format {
        Format::Table => show::table(run, &outcome, out),
        Format::Json => show::json(run, &outcome, out),
    }
}

/// Prices again what the store has, and hands on what changes.
fn outcome(
    args: &RerateArgs,
    period: Period,
    tariffs: &Tariffs,
    store: &mut Store,
    mut change: impl FnMut(&Record, Option<RecordCost>, Option<RecordCost>) -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    let mut in_force: HashMap<RequestId, Option<RecordCost>> = HashMap::new();
    store.corrections(period, args.tenant.as_deref(), |_, correction: &Correction| {
        in_force.insert(correction.corrects, correction.after.clone());
        Ok::<_, anyhow::Error>(())
    })?;
    let filter =
        Filter { tenant: args.tenant.clone(), from: Some(period.from()), to: Some(period.to()) };
    let mut outcome = Outcome::default();
    let mut progress = Progress::new("pricing again");
    let newest = store.newest()?;
    store.records(&filter, newest, None, |record| {
        progress.advance();
        let model = record.response_model.as_ref().or(record.request_model.as_ref());
        if args.model.is_some() && args.model.as_ref() != model {
            return Ok(());
        }
        let before = in_force.remove(&record.id).unwrap_or_else(|| record.cost.clone());
        let Ok(after) = tariffs.cost_again(record) else {
            outcome.unpriced += u64::from(before.is_some());
            return Ok(());
        };
        if !costs_differ(before.as_ref(), after.as_ref()) {
            return Ok(());
        }
        outcome.differences.add(record, before.as_ref(), after.as_ref())?;
        outcome.corrected += 1;
        change(record, before, after)
    })?;
    progress.end();
    Ok(outcome)
}

impl RerateArgs {
    /// What the configuration says, as far as there is one.
    fn agreed(&self) -> Result<Agreed, LoadError> {
        let Some(path) = &self.config else {
            let builtin = PriceBook::builtin().map_err(PriceFileError::from)?;
            let book = load::laid_over(builtin, &self.book)?;
            let tariffs = Tariffs::new(book, HashMap::new(), HashMap::new());
            let zone = self.period.zone.zone(None);
            let data_dir = ledger::data_dir(self.data_dir.as_deref(), None);
            return Ok(Agreed { data_dir, tariffs, resource: BTreeMap::new(), zone });
        };
        let mut config: Config = load::config(path)?;
        if !self.book.is_empty() {
            config.prices.overrides.clone_from(&self.book);
        }
        let data_dir = ledger::data_dir(self.data_dir.as_deref(), Some(&config));
        let zone = self.period.zone.zone(Some(&config));
        let tariffs = load::tariffs(&config)?;
        Ok(Agreed { data_dir, tariffs, resource: config.resource, zone })
    }
}
