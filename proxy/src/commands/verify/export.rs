//! An export, as its receiver has it: whether its files are those that were written, and whether
//! they add up to what the ledger says.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::Context as _;
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use taximeter_billing::Period;

use super::findings::Findings;
use crate::commands::hex::hex;
use crate::edge::store::Store;

/// Bytes read at once.
const PIECE_BYTES: usize = 64 << 10;

/// What the manifest of an export says.
#[derive(Debug, Deserialize)]
struct Manifest {
    format: String,
    period: Span,
    tenant: Option<String>,
    files: Vec<Listed>,
    sums: BTreeMap<String, Sum>,
    requests: u64,
}

#[derive(Debug, Deserialize)]
struct Span {
    from: Timestamp,
    to: Timestamp,
    status: String,
}

#[derive(Debug, Deserialize)]
struct Listed {
    path: String,
    bytes: u64,
    sha256: String,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
struct Sum {
    billed_cost: Decimal,
}

/// Charges are of hours, with their corrections; all other formats are of requests as they were
/// posted.
const CHARGES: &str = "focus";

/// Reads the manifest at `path`, the files beside it, and what the store says of the same period.
///
/// Errors: the manifest cannot be read, or the store.
pub(super) fn verify(
    path: &Path,
    store: &mut Store,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let manifest: Manifest = serde_json::from_slice(&text)
        .with_context(|| format!("{} is no manifest of an export", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut bytes = 0;
    for listed in &manifest.files {
        bytes += listed.bytes;
        if let Some(fault) = fault(folder, listed) {
            findings.tell(fault);
        }
    }
    let Span { from, to, status } = &manifest.period;
    findings.hear(format!(
        "export {}: {} {}, {status}, {} files, {bytes} bytes",
        path.display(),
        manifest.format,
        Period::new(*from, *to)?,
        manifest.files.len()
    ));
    compare(&manifest, store, findings)
}

/// What is wrong with a file.
fn fault(folder: &Path, listed: &Listed) -> Option<String> {
    let path = folder.join(&listed.path);
    match read(&path) {
        Err(error) => Some(format!("cannot read {}: {error}", path.display())),
        Ok((bytes, _)) if bytes != listed.bytes => {
            Some(format!("{} has {bytes} bytes, and had {}", path.display(), listed.bytes))
        }
        Ok((_, sha256)) if sha256 != listed.sha256 => Some(format!(
            "{} is not what was written: its SHA-256 is {sha256}, and was {}",
            path.display(),
            listed.sha256
        )),
        Ok(_) => None,
    }
}

/// Length and SHA-256 of a file.
fn read(path: &Path) -> io::Result<(u64, String)> {
    let (mut file, mut piece) = (File::open(path)?, vec![0; PIECE_BYTES]);
    let (mut bytes, mut hash) = (0, Sha256::new());
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            return Ok((bytes, hex(&hash.finalize())));
        }
        bytes += length as u64;
        hash.update(piece.get(..length).unwrap_or_default());
    }
}

fn compare(manifest: &Manifest, store: &mut Store, findings: &mut Findings) -> anyhow::Result<()> {
    let period = Period::new(manifest.period.from, manifest.period.to)?;
    let (mut requests, mut sums) = (0_u64, BTreeMap::<String, Sum>::new());
    store.hours(period, manifest.tenant.as_deref(), |key, hour| {
        if key.correction && manifest.format != CHARGES {
            return Ok(());
        }
        requests += hour.sums.requests;
        if let (Some(currency), Some(cost)) = (&key.currency, hour.sums.cost) {
            let sum = sums.entry(currency.clone()).or_default();
            let added = sum.billed_cost.checked_add(cost);
            sum.billed_cost = added.context("the sums are too large to be kept exactly")?;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    let provisional = manifest.period.status != "final";
    if requests != manifest.requests && !(provisional && requests > manifest.requests) {
        findings.tell(format!(
            "the export has {} requests, and the ledger {requests}",
            manifest.requests
        ));
    } else if requests != manifest.requests {
        findings.note(format!(
            "{} requests have come since the export was made: its period was not over",
            requests - manifest.requests
        ));
        return Ok(());
    }
    for currency in manifest.sums.keys().chain(sums.keys()) {
        let of = |sums: &BTreeMap<String, Sum>| {
            sums.get(currency).map(|sum| sum.billed_cost.normalize()).unwrap_or_default()
        };
        let (exported, owed) = (of(&manifest.sums), of(&sums));
        if exported != owed {
            findings.tell(format!(
                "the export adds up to {exported} {currency}, and the ledger to {owed}"
            ));
        }
    }
    Ok(())
}
