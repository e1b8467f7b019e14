//! `taximeter records`: one JSON object a line per request.

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use taximeter_billing::{Moment, Zone};
use taximeter_ledger::Record;
use taximeter_store::{Feed, Filter, Store, StoreError};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::failure::Failure;
use super::ledger::{Ledger, LedgerArgs, unless_reader_left};

/// How often `--follow` looks for new records.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How long after a database was lost it is looked for; twice as long each time that it is not
/// there.
const RETRY_MIN: Duration = Duration::from_millis(200);
/// The longest that nobody looks.
const RETRY_MAX: Duration = Duration::from_secs(10);

const EXAMPLES: &str = "\
Examples:
  taximeter records --limit 10                       the ten latest requests
  taximeter records --tenant acme --from 2026-11-20  acme's since that day, oldest first
  taximeter records --follow --limit 0               new ones only, as they end
  taximeter records --config taximeter.yaml          of that file's gateway
  taximeter records | jq -r 'select(.end != \"complete\") | [.id, .end] | @tsv'

Works while the gateway runs and while it does not. Without --follow, records come in the order of
admission. Money is a decimal string, times are seconds, unknown is null. Where a number of tokens
comes from is in usage.sources, what to know about it in usage.flagged. With --follow and --store, a
database that is lost is looked for until it is back, and no record is left out or shown twice.";

/// One JSON object a line per request
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecordsArgs {
    /// Only this tenant
    #[arg(long)]
    tenant: Option<String>,

    /// Admitted at or after: a date or an RFC 3339 time
    #[arg(long, value_name = "TIME")]
    from: Option<Moment>,

    /// Admitted before
    #[arg(long, value_name = "TIME")]
    to: Option<Moment>,

    /// Time zone in which dates begin, such as Europe/Berlin
    #[arg(long, value_name = "NAME", default_value_t)]
    zone: Zone,

    /// Only the latest
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u32>,

    /// Go on with new ones as requests end, until interrupted
    #[arg(long, short)]
    follow: bool,

    #[command(flatten)]
    pub(crate) ledger: LedgerArgs,
}

/// Writes the records to `out`, and to `notes` a sentence when the ledger has none at all.
///
/// `ledger` is what the arguments name, `feeds` are its own, for what the store lacks.
/// Errors: as [`Failure`] says; a reader of `out` that leaves is none.
pub(crate) fn run(
    args: &RecordsArgs,
    ledger: &Ledger,
    feeds: &mut [Feed<'_>],
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<(), Failure> {
    let mut asked = ledger.open(feeds)?;
    if asked.store.is_empty()? {
        notes.write_all(ledger.empty(&asked).as_bytes())?;
    }
    let mut pause = if args.follow { Some(Pause::new().map_err(Failure::Wait)?) } else { None };
    let mut retry = RETRY_MIN;
    let again = |store: &mut Store, fault: Option<Failure>| {
        let Some(pause) = &mut pause else { return Ok(false) };
        let Some(fault) = fault else {
            retry = RETRY_MIN;
            let goes_on = pause.wait(POLL_INTERVAL);
            if goes_on {
                store.catch_up(feeds)?;
            }
            return Ok(goes_on);
        };
        if !(store.is_shared() && is_passing(&fault)) {
            return Err(fault);
        }
        if retry == RETRY_MIN {
            writeln!(notes, "taximeter: {fault}; trying again until it answers")?;
        }
        while pause.wait(retry) {
            retry = RETRY_MAX.min(retry * 2);
            match ledger.open(&mut []) {
                Ok(asked) => {
                    *store = asked.store;
                    return Ok(true);
                }
                Err(fault) if is_passing(&fault) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(false)
    };
    unless_reader_left(show(args, &mut asked.store, out, again))
}

/// Whether a later look may succeed.
const fn is_passing(fault: &Failure) -> bool {
    matches!(fault, Failure::Store(StoreError::Unavailable { .. }))
}

/// Shows what is there, then what is new, as often as `again` has waited and fed the store, or, where
/// a look failed, opened it anew.
fn show(
    args: &RecordsArgs,
    store: &mut Store,
    out: &mut dyn Write,
    mut again: impl FnMut(&mut Store, Option<Failure>) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let at = |moment: Option<Moment>| moment.map(|moment| moment.at(&args.zone)).transpose();
    let filter = Filter { tenant: args.tenant.clone(), from: at(args.from)?, to: at(args.to)? };
    let mut newest = store.newest()?;
    store.records(&filter, newest, args.limit, |record| line(out, record))?;
    out.flush()?;
    let mut fault = None;
    while again(store, fault.take())? {
        let looked = store.records_after(&filter, &mut newest, |record| line(out, record));
        out.flush()?;
        fault = looked.err();
    }
    Ok(())
}

fn line(out: &mut dyn Write, record: &Record) -> Result<(), Failure> {
    serde_json::to_writer(&mut *out, record).map_err(io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

/// Waits between two looks, and hears the interrupt in between as well.
struct Pause {
    runtime: Runtime,
    interrupt: Signal,
}

impl Pause {
    fn new() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let interrupt = {
            let _inside = runtime.enter();
            signal(SignalKind::interrupt())?
        };
        Ok(Self { runtime, interrupt })
    }

    /// Whether to go on.
    fn wait(&mut self, time: Duration) -> bool {
        let look = tokio::time::timeout;
        let interrupt = &mut self.interrupt;
        self.runtime.block_on(async { look(time, interrupt.recv()).await.is_err() })
    }
}

#[cfg(test)]
mod tests;
