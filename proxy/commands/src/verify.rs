//! `taximeter verify`: checks the ledger, the store, exports and statements.

mod statement;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use taximeter_store::Store;
use taximeter_store::terms::Terms;
use taximeter_store::verify::Findings;
use taximeter_store::{SessionsCure, WrongSessions, feeds, verify};

use self::statement::{Named, StatementArgs};
use super::ledger::{Ledger, LedgerArgs};
use super::progress::Progress;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  taximeter verify                                   check every entry and every sum
  taximeter verify --config taximeter.yaml           check the ledger of that configuration
  taximeter verify --rebuild                         rebuild the store from the journals first
  taximeter verify --store postgres://…              check the local journal and that database
  taximeter verify --export october.csv.manifest.json
  taximeter verify --export acme.csv.manifest.json --config taximeter.yaml   with GPUs and credits
  taximeter keys signing -o signing.pem              make a key for statements, once
  taximeter verify --statement acme --month 2026-10 --signing-key signing.pem -o acme.json
  taximeter verify --statement acme --month 2026-10 --signing-key signing.pem --number 1
                                                     give out the first statement again
  taximeter verify --statement acme.json --public-key public.pem     check a statement
  taximeter verify --statement acme.json --public-key public.pem --data-dir DIR
                                                     also check that the journal is unchanged, and
                                                     whether a later statement exists or is due

A final statement never changes: what comes later is in the next one, which states the difference.

The command works while the gateway runs, and without it. If something is wrong, it prints each
fault with its place, and the exit code is 1.";

/// Checks the whole ledger: gaps, repeats, broken chain, open reservations, sums
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// Rebuild the store from the journals first. Records that the journals no longer have stay
    #[arg(long, conflicts_with = "statement")]
    rebuild: bool,

    /// Also check an export: its manifest, and the files beside it. May be repeated
    #[arg(long, value_name = "MANIFEST", conflicts_with = "statement")]
    export: Vec<PathBuf>,

    #[command(flatten)]
    statement: StatementArgs,

    #[command(flatten)]
    ledger: LedgerArgs,
}

/// Checks everything, and prints the report to `out`. With a fault, the exit code is 1.
///
/// Errors: the ledger or the store cannot be read at all.
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
            let named = Named { data_dir, is_ledger: args.ledger.name_ledger() };
            statement::run(&args.statement, of, (&ledger, named), now, out)
        }
    }
}

fn whole(
    args: &VerifyArgs,
    ledger: &Ledger,
    now: Timestamp,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let mut store = ledger.open_as_its_gateway(args.rebuild)?;
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
        taximeter_export::verify_export(manifest, &mut store, &terms, now, &mut findings)?;
    }
    findings.write(out)?;
    Ok(if findings.wrong() == 0 { ExitCode::SUCCESS } else { Exit::Failed.into() })
}

fn rebuild(ledger: &Ledger, store: &mut Store, findings: &mut Findings) -> anyhow::Result<()> {
    let rebuilt = store.rebuild(&mut feeds(&ledger.data_dir))?;
    findings.hear("store: rebuilt from the journals".to_owned());
    for WrongSessions { file, cure } in rebuilt.wrong_sessions {
        match cure {
            SessionsCure::Written => findings.note(format!(
                "{file} did not have what the requests of its day add up to; it is written again from them"
            )),
            SessionsCure::Counted => findings.note(format!(
                "{file} did not have what the requests of its day add up to; the store has the right sums, \
                 and the gateway writes the file again"
            )),
            SessionsCure::Kept => findings.tell(format!(
                "the sums of {file} cannot be made again, because no file has the requests of its day; the \
                 file is kept: restore the files of that day from a backup"
            )),
        }
    }
    let kept = [(rebuilt.kept_records, "records"), (rebuilt.kept_corrections, "corrections")];
    for (count, what) in kept.into_iter().filter(|(count, _)| *count > 0) {
        findings.note(format!(
            "the store keeps {count} {what} that are in no journal; the gateway deletes old journal \
             segments once the store has them"
        ));
    }
    Ok(())
}
