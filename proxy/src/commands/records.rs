//! `taximeter records`: one JSON object a line per request.

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use taximeter_billing::instant;
use taximeter_ledger::Record;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::failure::Failure;
use super::ledger::{self, LedgerArgs};
use crate::edge::store::{Feed, Filter, Store};

/// How often `--follow` looks for new records.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

const EXAMPLES: &str = "\
Examples:
  taximeter records --limit 10                       the ten latest requests
  taximeter records --tenant acme --from 2026-11-20  acme's since that day, oldest first
  taximeter records --follow --limit 0               new ones only, as they end
  taximeter records | jq -r 'select(.end != \"complete\") | [.id, .end] | @tsv'

Works while the gateway runs and while it does not. Without --follow, records come in the order of
admission. Money is a decimal string, times are seconds, unknown is null. Where a number of tokens
comes from is in usage.sources, what to know about it in usage.flagged.";

/// One JSON object a line per request
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecordsArgs {
    /// Only this tenant
    #[arg(long)]
    tenant: Option<String>,

    /// Admitted at or after: a date or an RFC 3339 time
    #[arg(long, value_name = "TIME", value_parser = instant)]
    from: Option<Timestamp>,

    /// Admitted before
    #[arg(long, value_name = "TIME", value_parser = instant)]
    to: Option<Timestamp>,

    /// Only the latest
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u32>,

    /// Go on with new ones as requests end, until interrupted
    #[arg(long, short)]
    follow: bool,

    #[command(flatten)]
    ledger: LedgerArgs,
}

impl RecordsArgs {
    /// Where what was recorded is.
    #[must_use]
    pub(crate) const fn ledger(&self) -> &LedgerArgs {
        &self.ledger
    }
}

/// Writes the records to `out`, and to `notes` a sentence when the ledger has none at all.
///
/// `feeds` are those of [`LedgerArgs::feeds`], for what the store lacks.
/// Errors: as [`Failure`] says; a reader of `out` that leaves is none.
pub(crate) fn run(
    args: &RecordsArgs,
    feeds: &mut [Feed<'_>],
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<(), Failure> {
    let mut store = args.ledger.open(feeds)?;
    if store.is_empty()? {
        notes.write_all(args.ledger.empty().as_bytes())?;
    }
    let mut pause = if args.follow { Some(Pause::new().map_err(Failure::Wait)?) } else { None };
    let again = |store: &mut Store| {
        if !pause.as_mut().is_some_and(Pause::wait) {
            return Ok(false);
        }
        store.catch_up(feeds)?;
        Ok(true)
    };
    ledger::unless_reader_left(show(args, &mut store, out, again))
}

/// Shows what is there, then what is new, as often as `again` has waited and fed the store.
fn show(
    args: &RecordsArgs,
    store: &mut Store,
    out: &mut dyn Write,
    mut again: impl FnMut(&mut Store) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let filter = Filter { tenant: args.tenant.clone(), from: args.from, to: args.to };
    let mut newest = store.newest()?;
    store.records(&filter, newest, args.limit, |record| line(out, record))?;
    out.flush()?;
    while again(store)? {
        newest = store.records_after(&filter, newest, |record| line(out, record))?;
        out.flush()?;
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
    fn wait(&mut self) -> bool {
        let look = tokio::time::timeout;
        let interrupt = &mut self.interrupt;
        self.runtime.block_on(async { look(POLL_INTERVAL, interrupt.recv()).await.is_err() })
    }
}

#[cfg(test)]
mod tests;
