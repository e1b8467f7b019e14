//! Statements: the operator makes and signs them, and the tenant checks them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use jiff::Timestamp;
use taximeter_billing::{Month, SplitBy, Statement, Unit, Zone};
use taximeter_store::signing::{PublicKey, SigningKey};
use taximeter_store::statements::{self, Later, MadeStatement, Signed};
use taximeter_store::terms::{Scope, Terms};
use taximeter_store::verify;

use crate::exit::{Exit, complain, text as text_of};
use crate::ledger::Ledger;
use crate::period::configured_zone;

/// The arguments for statements.
#[derive(Debug, Clone, Args)]
pub(super) struct StatementArgs {
    /// Make the statement of this tenant, or check the statement in this file
    #[arg(long, value_name = "TENANT|FILE")]
    statement: Option<String>,

    /// Month of the statement
    #[arg(long, value_name = "YYYY-MM", requires = "signing_key")]
    month: Option<Month>,

    /// Time zone of the month, such as Europe/Berlin [default: billing.zone of the configuration,
    /// else UTC]
    #[arg(long, value_name = "NAME", requires = "month")]
    zone: Option<Zone>,

    /// PEM file with the private key (Ed25519) that signs the statement
    #[arg(long, value_name = "FILE", requires = "statement", requires = "month")]
    signing_key: Option<PathBuf>,

    /// PEM file with the public key (Ed25519) that checks the statement
    #[arg(long, value_name = "FILE", requires = "statement", conflicts_with = "signing_key")]
    public_key: Option<PathBuf>,

    /// Give out the statement with this number again. The first final statement of a month is no. 1;
    /// what came later is in no. 2, and so on [default: the last one, or a further one if that is due]
    #[arg(long, value_name = "N", requires = "signing_key")]
    number: Option<u32>,

    /// Write the statement to this file instead of standard output
    #[arg(short, long, value_name = "FILE", requires = "signing_key")]
    output: Option<PathBuf>,
}

impl StatementArgs {
    /// The tenant or the file in the arguments.
    pub(super) fn of(&self) -> Option<&str> {
        self.statement.as_deref()
    }
}

/// What the arguments name, for a check.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    /// The data directory, whose journals are compared.
    pub(super) data_dir: Option<&'a Path>,
    /// Whether a ledger is named. It knows what came later.
    pub(super) is_ledger: bool,
}

/// Makes the statement of the tenant `of`, or checks the statement in the file `of`.
///
/// Errors: no key is named; a file cannot be read or written; the store cannot answer.
pub(super) fn run(
    args: &StatementArgs,
    of: &str,
    (ledger, named): (&Ledger, Named<'_>),
    now: Timestamp,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    match (&args.public_key, &args.signing_key, args.month) {
        (Some(key), ..) => check(Path::new(of), key, (ledger, named), now, out),
        (None, Some(key), Some(month)) => {
            let key = SigningKey::read(key)?;
            let config = ledger.config.as_ref();
            let zone = args.zone.clone().unwrap_or_else(|| configured_zone(config));
            let period = month.period(&zone)?;
            let scope = Scope {
                period,
                zone: &zone,
                unit: Unit::Month,
                tenant: Some(of),
                now,
                split_by: SplitBy::NONE,
            };
            let mut store = ledger.open(&mut ledger.feeds())?.store;
            let terms = config.map(Terms::of).unwrap_or_default();
            // The journals are read after the store, so they have every entry that the store has.
            let journals = || match ledger.feeding()? {
                Some(data_dir) => Ok::<_, anyhow::Error>(verify::journals(data_dir)?),
                None => Ok(Vec::new()),
            };
            let MadeStatement { text, note } = match args.number {
                Some(number) => statements::recorded(&mut store, of, scope, number, &key)?,
                None => statements::issue(&mut store, of, &terms, scope, &key, journals)?,
            };
            match &args.output {
                Some(path) => fs::write(path, text)
                    .with_context(|| format!("cannot write {}", path.display()))?,
                None => out.write_all(text.as_bytes())?,
            }
            note.as_deref().map(complain);
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!(
            "use --month and --signing-key to make a statement, or --public-key to check one; see \
             `taximeter verify --help`"
        ),
    }
}

fn check(
    path: &Path,
    key: &Path,
    (ledger, Named { data_dir, is_ledger }): (&Ledger, Named<'_>),
    now: Timestamp,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let key = PublicKey::read(key)?;
    let text = fs::read_to_string(path)
        .with_context(|| format!("cannot read the statement {}", path.display()))?;
    let signed = Signed::parse(&text)
        .with_context(|| format!("{} is not a statement of taximeter", path.display()))?;
    let mut wrong = signed.faults(&key);
    let statement = signed.statement;
    for (journal, data_dir) in statement.journals.iter().zip(data_dir.into_iter().cycle()) {
        wrong.extend(verify::fault(journal, data_dir)?);
    }
    let later = if is_ledger && !statement.provisional {
        later(ledger, &statement, now).unwrap_or_else(|fault| Later::unknown(&text_of(&fault)))
    } else {
        Later::default()
    };
    wrong.extend(later.wrong);
    out.write_all(statements::summary(&statement).as_bytes())?;
    for fault in &wrong {
        writeln!(out, "wrong: {fault}")?;
    }
    if !wrong.is_empty() {
        return Ok(Exit::Failed.into());
    }
    writeln!(out, "The signature is right, and every line and total adds up.")?;
    match (data_dir, statement.journals.len()) {
        (None, _) => {}
        (Some(_), 0) => writeln!(out, "The statement names no journal.")?,
        (Some(dir), _) => writeln!(
            out,
            "The journals behind the statement are unchanged in {}. `taximeter verify` checks them.",
            dir.display()
        )?,
    }
    for note in &later.notes {
        writeln!(out, "{note}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the ledger knows of a statement.
fn later(ledger: &Ledger, statement: &Statement, now: Timestamp) -> anyhow::Result<Later> {
    let terms = ledger.config.as_ref().map(Terms::of).unwrap_or_default();
    let mut store = ledger.open(&mut ledger.feeds())?.store;
    Ok(statements::later(&mut store, statement, &terms, now)?)
}
