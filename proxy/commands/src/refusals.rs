//! `taximeter refusals`: counts the requests that have no record.

use std::io::Write;

use clap::Args;
use jiff::Timestamp;
use taximeter_store::Feed;
use taximeter_store::refusals::{Every, RefusalQuestion, RefusalSums, RefusalsFormat};

use super::failure::Failure;
use super::ledger::{Ledger, LedgerArgs, unless_reader_left};
use super::period::PeriodArgs;

const EXAMPLES: &str = "\
Examples:
  taximeter refusals                                 this month so far, by tenant and reason
  taximeter refusals --day 2026-11-25 --by hour      one day, hour by hour
  taximeter refusals --tenant acme                   what was refused to acme
  taximeter refusals --reason invalid_api_key --by day
  taximeter refusals --json | jq .total

A request has a record or is counted here, never both. Counted are the requests that the gateway
refused itself, for example without a valid API key; and requests that were admitted, used nothing
and came in a flood: beyond 100 in a second of one tenant and status, such requests have no records.
The column \"admitted\" tells them apart. A request without a known tenant has none here.

The gateway writes the counts once a minute and at its end. If it is killed, the counts of its last
minute are lost. The command works while the gateway runs, and without it. The last hundred refusals of each reason are at /api/v1/refusals and in the console.";

/// Counts the requests that were refused and have no record
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RefusalsArgs {
    #[command(flatten)]
    period: PeriodArgs,

    /// A line for each minute, hour or day
    #[arg(long, value_enum)]
    by: Option<Every>,

    /// Only this tenant
    #[arg(long)]
    tenant: Option<String>,

    /// Only this reason, such as invalid_api_key
    #[arg(long)]
    reason: Option<String>,

    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: RefusalsFormat,

    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,

    #[command(flatten)]
    pub(crate) ledger: LedgerArgs,
}

/// Writes the counts to `out`.
///
/// `ledger` is the ledger in the arguments. `feeds` are its journals, for entries that the store
/// does not have yet. `now` decides which month is the current one.
/// Errors: as [`Failure`] says. A reader of `out` that leaves is no error.
pub(crate) fn run(
    args: &RefusalsArgs,
    ledger: &Ledger,
    now: Timestamp,
    feeds: &mut [Feed<'_>],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let zone = args.period.zone.zone(ledger.config.as_ref());
    let period = args.period.period(&zone, now)?;
    let (every, tenant, reason) = (args.by, args.tenant.clone(), args.reason.clone());
    let mut sums = RefusalSums::new(RefusalQuestion { period, zone, every, tenant, reason });
    ledger.open(feeds)?.store.add_refusals(&mut sums, |_| Ok::<_, Failure>(()))?;
    let format = if args.json { RefusalsFormat::Json } else { args.format };
    let text = sums.write(format);
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    unless_reader_left(written.map_err(Failure::from))
}
