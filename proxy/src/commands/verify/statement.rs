//! Statements: the operator makes and signs them, and the tenant checks them.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use jiff::Timestamp;
use taximeter_billing::{Month, Statement, StatementJournal, Unit, Zone};
use taximeter_store::signing::{PublicKey, SigningKey};
use taximeter_store::statements::{self, Signed};
use taximeter_store::terms::{Scope, Terms};
use taximeter_store::verify;

use crate::commands::ledger::Ledger;
use crate::commands::period::configured_zone;
use crate::exit::Exit;

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

/// Makes the statement of the tenant `of`, or checks the statement in the file `of`. With
/// `data_dir`, the check also compares its journals.
///
/// Errors: no key is named; a file cannot be read or written; the store cannot answer.
pub(super) fn run(
    args: &StatementArgs,
    of: &str,
    ledger: &Ledger,
    data_dir: Option<&Path>,
    now: Timestamp,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    match (&args.public_key, &args.signing_key, args.month) {
        (Some(key), ..) => check(Path::new(of), key, data_dir, out),
        (None, Some(key), Some(month)) => {
            let key = SigningKey::read(key)?;
            let config = ledger.config.as_ref();
            let zone = args.zone.clone().unwrap_or_else(|| configured_zone(config));
            let period = month.period(&zone)?;
            let scope = Scope { period, zone: &zone, unit: Unit::Month, tenant: Some(of), now };
            let mut store = ledger.open(&mut ledger.feeds())?.store;
            let terms = config.map(Terms::of).unwrap_or_default();
            let mut statement = statements::make(&mut store, of, &terms, scope)?;
            // The journals are read after the store, so they have every entry that the store has.
            if let Some(data_dir) = ledger.feeding()? {
                statement.journals = verify::journals(data_dir)?;
            }
            let text = Signed::new(statement, &key).text()?;
            match &args.output {
                Some(path) => fs::write(path, text)
                    .with_context(|| format!("cannot write {}", path.display()))?,
                None => out.write_all(text.as_bytes())?,
            }
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
    data_dir: Option<&Path>,
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
    tell(&statement, out)?;
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
    Ok(ExitCode::SUCCESS)
}

/// Prints what is in a statement.
fn tell(statement: &Statement, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "Statement of {} from {} to {} ({}){}",
        statement.tenant,
        statement.from,
        statement.to,
        statement.zone,
        if statement.provisional { ", provisional: made before the end of the period" } else { "" }
    )?;
    writeln!(out, "  {} requests, {} lines", statement.requests, statement.lines.len())?;
    for credit in &statement.credits {
        let month = credit.month.strftime("%Y-%m");
        writeln!(out, "  allowance in {month}: {} {}", credit.amount, credit.currency)?;
    }
    for (currency, total) in &statement.totals {
        writeln!(out, "  {total} {currency}")?;
    }
    if statement.unknown_cost_requests > 0 {
        writeln!(out, "  requests of unknown cost: {}", statement.unknown_cost_requests)?;
    }
    for StatementJournal { name, gateway, last_seq, sha256 } in &statement.journals {
        writeln!(out, "  {name} of {gateway} up to entry {last_seq}: {sha256}")?;
    }
    Ok(())
}
