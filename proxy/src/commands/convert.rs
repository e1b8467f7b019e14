//! `taximeter convert`: makes the ledger of an older version readable.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use taximeter_store::StoreError;
use taximeter_store::convert::convert;

use super::failure::Failure;
use super::ledger::data_dir;
use super::load;
use super::progress::Progress;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  taximeter convert --config taximeter.yaml       the ledger of that configuration
  taximeter convert --data-dir /var/lib/taximeter
  taximeter convert --data-dir DIR --salvage      leave out what is damaged, and go on

Stop the gateway first. The command needs free space for one file of the journal. It can be killed:
run it again, and it goes on. The older version reads the ledger no longer, so make a copy with
taximeter backup if you may want to go back.";

/// Converts the ledger of an older version, in place
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConvertArgs {
    /// Leave out entries that cannot be read, and keep the damaged files. Without it, nothing is
    /// changed if something is damaged
    #[arg(long)]
    salvage: bool,

    /// Configuration of the gateway, which has the path of the ledger
    #[arg(long, value_name = "FILE", env = "TAXIMETER_CONFIG")]
    config: Option<PathBuf>,

    /// Data directory of the gateway [default: data_dir of the configuration, else ./taximeter-data]
    #[arg(long, value_name = "DIR", env = "TAXIMETER_DATA_DIR")]
    data_dir: Option<PathBuf>,
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
    let config = args.config.as_deref().map(load::config).transpose().map_err(Failure::from)?;
    let dir = data_dir(args.data_dir.as_deref(), config.as_ref());
    if !dir.is_dir() {
        return Err(Failure::from(StoreError::NoDataDir(dir)).into());
    }
    let mut progress = Progress::new("reading");
    let mut steps = |what| progress.advance_in(what);
    let is_done = convert(&dir, args.salvage, now, &mut steps, (out, err));
    progress.end();
    Ok(if is_done.map_err(Failure::from)? { ExitCode::SUCCESS } else { Exit::Failed.into() })
}
