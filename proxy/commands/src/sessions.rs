//! `taximeter sessions`: what tasks of agents cost.

use std::io::{self, Write};

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use taximeter_billing::{Moment, Period, Zone};
use taximeter_sessions::{Listing, Session, TopBy, listing_table, table};
use taximeter_store::Feed;
use taximeter_store::bills::WIDTH;

use super::failure::Failure;
use super::ledger::{Ledger, LedgerArgs, unless_reader_left};
use super::period::configured_zone;

/// The period of a list without `--from`.
const PERIOD: SignedDuration = SignedDuration::from_hours(29 * 24);

const EXAMPLES: &str = "\
Examples:
  taximeter sessions                                 the dearest sessions of the last 30 days
  taximeter sessions --top latest --tenant acme      what acme's agents do now
  taximeter sessions --from 2026-11-20 --to 2026-11-21 --limit 100
  taximeter sessions 01a210c8-4a5e-7cc0-91a8-27f7a1c0d2b1        why this one was so dear
  taximeter sessions 01a210c8-4a5e-7cc0-91a8-27f7a1c0d2b1 --json | jq '.[0].waste'
  taximeter sessions --json | jq -r '.sessions[] | [.session, .cost] | @tsv'

A session is one task of a coding agent with all its sub-agents, as its client names it in a header
or in the body of its requests. A client that names none has none. The same name of two tenants is
two sessions.

A list has what sessions add up to on whole UTC days: all days that the period has a part of. One
session shows its agents as a tree, its turns, what was wasted, and where it stalled. Costs are those
after corrections. The command works while the gateway runs, and without it.";

/// Shows what sessions of agents cost, or why one did
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SessionsArgs {
    /// The session to open, by its name [default: a list of sessions]
    #[arg(value_name = "ID")]
    session: Option<String>,

    /// Which sessions come first
    #[arg(long, value_enum, default_value_t, conflicts_with = "session")]
    top: TopBy,

    /// Most sessions in the list
    #[arg(long, value_name = "NUMBER", default_value_t = 20, conflicts_with = "session")]
    limit: u32,

    /// Only this tenant
    #[arg(long)]
    tenant: Option<String>,

    /// Only days from this date or RFC 3339 time on [default: 30 days up to now]
    #[arg(long, value_name = "TIME", conflicts_with = "session")]
    from: Option<Moment>,

    /// Only days before this date or RFC 3339 time [default: now]
    #[arg(long, value_name = "TIME", requires = "from", conflicts_with = "session")]
    to: Option<Moment>,

    /// Print JSON, with exact costs
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    pub(crate) ledger: LedgerArgs,
}

/// A list with its period.
#[derive(Serialize)]
struct Document<'a> {
    from: Timestamp,
    to: Timestamp,
    #[serde(flatten)]
    listing: &'a Listing,
}

/// Writes the sessions to `out`.
///
/// `ledger` is the ledger in the arguments. `feeds` are its journals, for entries that the store
/// does not have yet. `now` is the end of the period without `--to`.
/// Errors: as [`Failure`] says. A reader of `out` that leaves is no error.
pub(crate) fn run(
    args: &SessionsArgs,
    ledger: &Ledger,
    now: Timestamp,
    feeds: &mut [Feed<'_>],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let period = args.period(&configured_zone(ledger.config.as_ref()), now)?;
    let mut named = ledger.open(feeds)?;
    let text = if named.store.is_empty()? && !args.json {
        ledger.empty(&named)
    } else if let Some(session) = &args.session {
        let found = named.store.session(session, args.tenant.as_deref())?;
        if found.is_empty() {
            return Err(Failure::NoSession(session.clone()));
        }
        opened(&found, args.json)?
    } else {
        let most = usize::try_from(args.limit).unwrap_or(usize::MAX);
        let top = (args.top, most);
        let listing = named.store.sessions(period, args.tenant.as_deref(), top, || false)?;
        listed(&listing.unwrap_or_default(), args, period)?
    };
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    unless_reader_left(written.map_err(Failure::from))
}

impl SessionsArgs {
    fn period(&self, zone: &Zone, now: Timestamp) -> Result<Period, Failure> {
        let from = match self.from {
            Some(from) => from.at(zone)?,
            None => now.saturating_sub(PERIOD).unwrap_or(Timestamp::MIN),
        };
        Ok(Period::new(from, self.to.map_or(Ok(now), |to| to.at(zone))?)?)
    }
}

fn opened(sessions: &[Session], json: bool) -> Result<String, Failure> {
    if json {
        return pretty(&sessions);
    }
    let tables: Vec<_> = sessions.iter().map(|session| table(session, width())).collect();
    Ok(tables.join("\n"))
}

fn listed(listing: &Listing, args: &SessionsArgs, period: Period) -> Result<String, Failure> {
    let (from, to) = (period.from(), period.to());
    if args.json {
        return pretty(&Document { from, to, listing });
    }
    let last = to.saturating_sub(SignedDuration::from_micros(1)).unwrap_or(to);
    let days = format!("{} to {} (UTC days)", from.strftime("%Y-%m-%d"), last.strftime("%Y-%m-%d"));
    Ok(listing_table(listing, args.top, &days, width()))
}

fn pretty(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
    Ok(text + "\n")
}

fn width() -> usize {
    terminal_size::terminal_size_of(io::stdout()).map_or(WIDTH, |(width, _)| width.0.into())
}

#[cfg(test)]
mod tests;
