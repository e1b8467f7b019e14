//! `taximeter verify`: is the ledger whole, and does all that was made of it agree with it?

mod export;
mod statement;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use taximeter_store::Store;
use taximeter_store::terms::Terms;
use taximeter_store::verify::Findings;
use taximeter_store::{feeds, verify};

use self::statement::StatementArgs;
use super::ledger::{Ledger, LedgerArgs};
use super::progress::Progress;

const EXAMPLES: &str = "\
Examples:
  taximeter verify                                   every entry, every sum
  taximeter verify --config taximeter.yaml           of that file's gateway
  taximeter verify --rebuild                         the store anew, from the journals
  taximeter verify --store postgres://…              the directory's journal and that database
  taximeter verify --export october.csv.manifest.json
  taximeter verify --export acme.csv.manifest.json --config taximeter.yaml   with GPUs and credits
  taximeter keys signing -o signing.pem              once: the key that statements are signed with
  taximeter verify --statement acme --month 2026-10 --signing-key signing.pem -o acme.json
  taximeter verify --statement acme.json --public-key public.pem     what the tenant does
  taximeter verify --statement acme.json --public-key public.pem --data-dir DIR   and what it was
      made of: whether the journal there is still what it was then

Works while the gateway runs and while it does not. Ends with 1 when something is wrong, and says
what and where.";

/// Checks the whole ledger: gaps, repeats, broken chain, open reservations, sums
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// Build the store anew from the journals first; what they no longer have is kept
    #[arg(long, conflicts_with = "statement")]
    rebuild: bool,

    /// Check an export too: its manifest, with the files beside it. May be repeated
    #[arg(long, value_name = "MANIFEST", conflicts_with = "statement")]
    export: Vec<PathBuf>,

    #[command(flatten)]
    statement: StatementArgs,

    #[command(flatten)]
    ledger: LedgerArgs,
}

/// Verifies, and says on `out` what was read and what is wrong.
///
/// Errors: what cannot be read at all; what is wrong is no error but an exit code of 1.
pub(crate) fn run(
    args: &VerifyArgs,
    now: Timestamp,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let ledger = args.ledger.find()?;
    match args.statement.of() {
        None => whole(args, &ledger, now, out),
        Some(of) => {
            let data_dir = args.ledger.name_data_dir().then_some(&*ledger.data_dir);
            statement::run(&args.statement, of, &ledger, data_dir, now, out)
        }
    }
}

fn whole(
    args: &VerifyArgs,
    ledger: &Ledger,
    now: Timestamp,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let mut store = ledger.open_as_its_gateway()?;
    let mut findings = Findings::default();
    if args.rebuild {
        rebuild(ledger, &mut store, &mut findings)?;
    }
    let mut progress = Progress::new("reading");
    let mut steps = |what| progress.advance_in(what);
    verify::verify(&ledger.data_dir, &mut store, &mut steps, &mut findings)?;
    progress.end();
    let terms = ledger.config.as_ref().map(Terms::of).unwrap_or_default();
    for manifest in &args.export {
        export::verify(manifest, &mut store, &terms, now, &mut findings)?;
    }
    findings.write(out)?;
    Ok(if findings.wrong() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn rebuild(ledger: &Ledger, store: &mut Store, findings: &mut Findings) -> anyhow::Result<()> {
    let kept = store.rebuild(&mut feeds(&ledger.data_dir))?;
    findings.hear("store: built anew from the journals".to_owned());
    let kept = [(kept.kept_records, "records"), (kept.kept_corrections, "corrections")];
    for (count, what) in kept.into_iter().filter(|(count, _)| *count > 0) {
        findings.note(format!(
            "the store has {count} {what} that the journals do not have; they are kept: older \
             segments are dropped once the store has them"
        ));
    }
    Ok(())
}
