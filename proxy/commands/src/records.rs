//! `taximeter records`: prints records as JSON, one per line.

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use taximeter_billing::{Moment, Zone};
use taximeter_dimensions as dimensions;
use taximeter_ledger::Record;
use taximeter_store::{Feed, Filter, Store, StoreError};
use taximeter_system::stdout;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::failure::Failure;
use super::ledger::{Ledger, LedgerArgs, unless_reader_left};

/// Time between two searches of `--follow` for new records.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// First wait before a new connection to a lost database. It doubles with each failed attempt.
const RETRY_MIN: Duration = Duration::from_millis(200);
/// Longest wait between two attempts.
const RETRY_MAX: Duration = Duration::from_secs(10);

const EXAMPLES: &str = "\
Examples:
  taximeter records --limit 10                       the ten latest requests
  taximeter records --tenant acme --from 2026-11-20  requests of acme since that day
  taximeter records --session 01a210c8-4a5e-7cc0     requests of a session of agents
  taximeter records --client codex --tag team=search --limit 10
  taximeter records --end-user anna@example.org      also if records have a hash in her place
  taximeter records --follow --limit 0               each new request when it ends
  taximeter records --config taximeter.yaml          the ledger of that configuration
  taximeter records | jq -r 'select(.end != \"complete\") | [.id, .end] | @tsv'

Each line is one record. Without --follow, the records are in order of admission. Money is a decimal
string, times are in seconds, and null means unknown. usage.sources says where each number of tokens
comes from, and usage.flagged says what to know about it.

--session, --agent and --end-user take names as clients send them. Where sessions or end users are
hashed, the key is that of --config, or the one in the data directory. The hash itself does as well.

With --follow and --store, the command reconnects to a lost database. It skips no record, and prints
none twice. The command works while the gateway runs, and without it.";

/// Prints records as JSON, one request per line
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecordsArgs {
    /// Records are always JSON: this changes nothing
    #[arg(long)]
    json: bool,

    /// Only this tenant
    #[arg(long)]
    tenant: Option<String>,

    #[command(flatten)]
    dimensions: DimensionArgs,

    /// Only requests admitted at or after this date or RFC 3339 time
    #[arg(long, value_name = "TIME")]
    from: Option<Moment>,

    /// Only requests admitted before this date or RFC 3339 time
    #[arg(long, value_name = "TIME")]
    to: Option<Moment>,

    /// Time zone of dates, such as Europe/Berlin
    #[arg(long, value_name = "NAME", default_value_t)]
    zone: Zone,

    /// Only the latest records
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u32>,

    /// Print each new record when its request ends, until Ctrl-C or until nobody reads the output
    #[arg(long, short)]
    follow: bool,

    #[command(flatten)]
    pub(crate) ledger: LedgerArgs,
}

/// What clients say of requests
#[derive(Debug, Clone, Args)]
struct DimensionArgs {
    /// Only requests of this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Only requests of this agent
    #[arg(long, value_name = "ID")]
    agent: Option<String>,

    /// Only requests of this client program: a product, or a product and its version
    #[arg(long, value_name = "NAME[/VERSION]")]
    client: Option<String>,

    /// Only requests for this end user
    #[arg(long, value_name = "NAME")]
    end_user: Option<String>,

    /// Only requests with this tag
    #[arg(long, value_name = "KEY=VALUE", value_parser = tag)]
    tag: Option<String>,
}

fn tag(text: &str) -> Result<String, String> {
    let is_tag = dimensions::Filter::is_tag(text);
    is_tag.then(|| text.to_owned()).ok_or_else(|| format!("write {}", dimensions::Filter::TAG))
}

impl DimensionArgs {
    /// The filter. Writes to `notes` if a name may be hashed and the key cannot be read.
    fn filter(&self, ledger: &Ledger, notes: &mut dyn Write) -> io::Result<dimensions::Filter> {
        let Self { session, agent, client, end_user, tag } = self.clone();
        let hasher = if session.is_some() || agent.is_some() || end_user.is_some() {
            ledger.hasher().or_else(|fault| {
                writeln!(notes, "taximeter: {fault}; names are compared as they are").map(|()| None)
            })?
        } else {
            None
        };
        let asked = dimensions::Asked { session, agent, client, end_user, tag };
        Ok(dimensions::Filter::new(asked, hasher.as_ref()))
    }
}

/// Writes the records to `out`. If the ledger is empty, writes a note to `notes`.
///
/// `ledger` is the ledger in the arguments. `feeds` are its journals, for entries that the store
/// does not have yet.
/// Errors: as [`Failure`] says. A reader of `out` that leaves is no error.
pub(crate) fn run(
    args: &RecordsArgs,
    ledger: &Ledger,
    feeds: &mut [Feed<'_>],
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<(), Failure> {
    let mut named = ledger.open(feeds)?;
    if named.store.is_empty()? {
        notes.write_all(ledger.empty(&named).as_bytes())?;
    }
    let wanted = args.dimensions.filter(ledger, notes)?;
    let mut pause = if args.follow { Some(Pause::new().map_err(Failure::Wait)?) } else { None };
    let mut retry = RETRY_MIN;
    let again = |store: &mut Store, fault: Option<Failure>| {
        let Some(pause) = &mut pause else { return Ok(false) };
        let Some(fault) = fault else {
            retry = RETRY_MIN;
            let goes_on = pause.wait(POLL_INTERVAL);
            if goes_on && !store.is_fed_elsewhere() {
                store.catch_up(feeds)?;
            }
            return Ok(goes_on);
        };
        if !(store.is_fed_elsewhere() && is_passing(&fault)) {
            return Err(fault);
        }
        if retry == RETRY_MIN {
            writeln!(notes, "taximeter: {fault}; reconnecting until it answers")?;
        }
        while pause.wait(retry) {
            retry = RETRY_MAX.min(retry * 2);
            match ledger.open(&mut []) {
                Ok(named) => {
                    *store = named.store;
                    return Ok(true);
                }
                Err(fault) if is_passing(&fault) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(false)
    };
    unless_reader_left(show(args, &wanted, &mut named.store, out, again))
}

/// Whether a later attempt may succeed.
const fn is_passing(fault: &Failure) -> bool {
    matches!(fault, Failure::Store(StoreError::Unavailable { .. }))
}

/// Prints the records that are there, then new ones. `again` waits and feeds the store before each
/// search, and opens the store again after a failed one.
fn show(
    args: &RecordsArgs,
    wanted: &dimensions::Filter,
    store: &mut Store,
    out: &mut dyn Write,
    mut again: impl FnMut(&mut Store, Option<Failure>) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let at = |moment: Option<Moment>| moment.map(|moment| moment.at(&args.zone)).transpose();
    let filter = Filter { tenant: args.tenant.clone(), from: at(args.from)?, to: at(args.to)? };
    let mut newest = store.newest()?;
    store.records_of(&filter, wanted, newest, args.limit, |record| line(out, record))?;
    out.flush()?;
    let mut fault = None;
    while again(store, fault.take())? {
        let looked = store.records_after(&filter, &mut newest, |record| {
            let is_wanted = wanted.matches(record.dimensions.as_deref());
            if is_wanted { line(out, record) } else { Ok(()) }
        });
        out.flush()?;
        fault = looked.err();
    }
    Ok(())
}

fn line(out: &mut dyn Write, record: &Record) -> Result<(), Failure> {
    serde_json::to_writer(&mut *out, record).map_err(io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

/// Waits between two searches. Ctrl-C ends the wait, and so does a reader of the output that leaves.
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

    /// Waits. Returns whether to continue.
    fn wait(&mut self, time: Duration) -> bool {
        let interrupt = &mut self.interrupt;
        self.runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => false,
                () = stdout::reader_left() => false,
                () = tokio::time::sleep(time) => true,
            }
        })
    }
}

#[cfg(test)]
mod tests;
