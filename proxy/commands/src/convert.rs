//! `taximeter convert`: makes the ledger of an older version readable.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use taximeter_store::convert::convert;

use super::failure::Failure;
use super::ledger::LedgerArgs;
use super::progress::Progress;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  taximeter convert --config taximeter.yaml       the ledger of that configuration
  taximeter convert --data-dir /var/lib/taximeter
  taximeter convert --data-dir DIR --salvage      leave out what is damaged, and go on
  taximeter convert --data-dir DIR --store postgres://…

Stop the gateway first. The command needs free space for one file of the journal. It can be killed:
run it again, and it goes on. The older version reads the ledger no longer, so make a copy with
taximeter backup if you may want to go back.

A PostgreSQL store is converted with all that its gateways have stored there, in small transactions.
Run the command for the data directory of each gateway. The first run converts the store.";

/// Converts the ledger of an older version, in place
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConvertArgs {
    /// Leave out entries that cannot be read, and keep the damaged files. Without it, nothing is
    /// changed if something is damaged
    #[arg(long)]
    salvage: bool,

    #[command(flatten)]
    ledger: LedgerArgs,
}

/// Converts the ledger. Prints what it did to `out`, and what is damaged to `err`.
///
/// Errors: the ledger is in use, or cannot be read or written.
pub(crate) fn run(
    args: &ConvertArgs,
    now: Timestamp,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let ledger = args.ledger.find()?;
    let fed = ledger.fed_by_its_gateway()?;
    let mut progress = Progress::new("reading");
    let mut steps = |what| progress.advance_in(what);
    let is_done = convert(&ledger.data_dir, &fed, args.salvage, now, &mut steps, (out, err));
    progress.end();
    Ok(if is_done.map_err(Failure::from)? { ExitCode::SUCCESS } else { Exit::Failed.into() })
}
