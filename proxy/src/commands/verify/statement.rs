//! A tenant's statement: made and signed by who runs the gateway, checked by the tenant.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use clap::Args;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taximeter_billing::{Hour, HourKey, Period, Statement};

use crate::commands::ledger;
use crate::edge::journal;
use crate::edge::signing::{PublicKey, SigningKey};

/// The only way in which statements are signed.
const ALGORITHM: &str = "Ed25519";

/// What is to be done with which statement.
#[derive(Debug, Clone, Args)]
pub(super) struct StatementArgs {
    /// The statement of a tenant: its name to make one, a file to check one
    #[arg(long, value_name = "TENANT|FILE")]
    statement: Option<String>,

    /// The month of the statement, in UTC
    #[arg(long, value_name = "YYYY-MM", value_parser = Period::month, requires = "signing_key")]
    month: Option<Period>,

    /// Sign with this key: PEM, Ed25519
    #[arg(long, value_name = "FILE", requires = "statement", requires = "month")]
    signing_key: Option<PathBuf>,

    /// Check with this key: PEM, Ed25519
    #[arg(long, value_name = "FILE", requires = "statement", conflicts_with = "signing_key")]
    public_key: Option<PathBuf>,

    /// Write the statement to a file instead of standard output
    #[arg(short, long, value_name = "FILE", requires = "signing_key")]
    output: Option<PathBuf>,
}

impl StatementArgs {
    /// The tenant or file that was named.
    pub(super) fn of(&self) -> Option<&str> {
        self.statement.as_deref()
    }
}

/// A statement as it is handed over.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signed {
    statement: Statement,
    signature: Signature,
}

/// Of the statement's canonical JSON (RFC 8785).
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signature {
    algorithm: String,
    /// Base64: tells which key it was; whoever checks has it from elsewhere.
    public_key: String,
    /// Base64.
    value: String,
}

/// Makes the statement of the tenant `of`, or checks the one in the file `of`.
///
/// Errors: no key is named; files that cannot be read or written; the store says no.
pub(super) fn run(
    args: &StatementArgs,
    of: &str,
    data_dir: &Path,
    now: Timestamp,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    match (&args.public_key, &args.signing_key, args.month) {
        (Some(key), ..) => check(Path::new(of), key, out),
        (None, Some(key), Some(month)) => {
            let key = SigningKey::read(key)?;
            let text = make(data_dir, of, month, now, &key)?;
            match &args.output {
                Some(path) => fs::write(path, text)
                    .with_context(|| format!("cannot write {}", path.display()))?,
                None => out.write_all(text.as_bytes())?,
            }
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!(
            "to make a statement give --month and --signing-key, to check one --public-key; see \
             `taximeter verify --help`"
        ),
    }
}

fn make(
    data_dir: &Path,
    tenant: &str,
    month: Period,
    now: Timestamp,
    key: &SigningKey,
) -> anyhow::Result<String> {
    let hours = hours(data_dir, tenant, month)?;
    if hours.is_empty() {
        bail!("{tenant:?} has no request in {month}; see `taximeter bill --month {month}`");
    }
    let statement = Statement::new(tenant, month, month.to() > now, &hours)?;
    let signature = Signature {
        algorithm: ALGORITHM.to_owned(),
        public_key: key.public().base64(),
        value: BASE64.encode(key.sign(statement.canonical().as_bytes())),
    };
    Ok(serde_json::to_string_pretty(&Signed { statement, signature })? + "\n")
}

fn hours(data_dir: &Path, tenant: &str, month: Period) -> anyhow::Result<BTreeMap<HourKey, Hour>> {
    let mut store = ledger::open(data_dir, &mut journal::feeds(data_dir))?;
    let mut hours: BTreeMap<HourKey, Hour> = BTreeMap::new();
    store.hours(month, Some(tenant), |key, hour| {
        hours.entry(key.clone()).or_default().add(hour)?;
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(hours)
}

fn check(path: &Path, key: &Path, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let key = PublicKey::read(key)?;
    let text = fs::read_to_string(path)
        .with_context(|| format!("cannot read the statement {}", path.display()))?;
    let Signed { statement, signature } = serde_json::from_str(&text)
        .with_context(|| format!("{} is no statement of taximeter", path.display()))?;
    let mut wrong = Vec::new();
    let value = BASE64.decode(&signature.value).unwrap_or_default();
    if signature.algorithm != ALGORITHM {
        wrong.push(format!("it is signed with {:?}, not with {ALGORITHM}", signature.algorithm));
    } else if !key.verifies(statement.canonical().as_bytes(), &value) {
        wrong.push(if signature.public_key == key.base64() {
            "its signature does not fit: it was changed after it was signed".to_owned()
        } else {
            "it was signed with another key".to_owned()
        });
    }
    wrong.extend(statement.check().err().map(|fault| fault.to_string()));
    writeln!(
        out,
        "Statement of {} from {} to {}{}",
        statement.tenant,
        statement.from,
        statement.to,
        if statement.provisional { ", provisional: made before the period was over" } else { "" }
    )?;
    writeln!(out, "  {} requests, {} lines", statement.requests, statement.lines.len())?;
    for (currency, total) in &statement.totals {
        writeln!(out, "  {total} {currency}")?;
    }
    if statement.unknown_cost_requests > 0 {
        writeln!(out, "  the cost of {} requests is unknown", statement.unknown_cost_requests)?;
    }
    for fault in &wrong {
        writeln!(out, "wrong: {fault}")?;
    }
    if wrong.is_empty() {
        writeln!(out, "The signature fits, and every line and total adds up.")?;
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}
