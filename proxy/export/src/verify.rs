//! Checks an export: whether its files are unchanged, and whether they add up to the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use taximeter_billing::Period;
use taximeter_billing::export::{Entries, Format, SequenceRange};
use taximeter_collections::Gather as _;
use taximeter_store::Store;
use taximeter_store::terms::{Scope, Terms};
use taximeter_store::verify::{Findings, VerifyError};

use crate::content::Content;
use crate::destination::hex;

/// Bytes of one read.
const PIECE_BYTES: usize = 64 << 10;

/// The manifest of an export.
#[derive(Debug, Deserialize)]
struct Manifest {
    format: String,
    period: Span,
    tenant: Option<String>,
    files: Vec<Listed>,
    sums: BTreeMap<String, Sum>,
    #[serde(default)]
    owed: BTreeMap<String, Decimal>,
    requests: u64,
    #[serde(default)]
    sequences: BTreeMap<String, SequenceRange>,
    #[serde(default)]
    corrections: u64,
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

#[derive(Debug, Deserialize)]
struct Sum {
    billed_cost: Decimal,
}

/// Money by currency.
type Money = BTreeMap<String, Decimal>;

/// The sums of the same period in the ledger.
#[derive(Debug, Default)]
struct LedgerSums {
    requests: u64,
    /// Cost of requests before corrections.
    posted: Money,
    /// Cost with corrections, GPU shares and credits.
    owed: Money,
    entries: Entries,
    /// Whether the ledger has all single requests of the period.
    has_details: bool,
}

/// Formats with the cost before corrections. All others have the cost with corrections.
const RECORDS: [Content; 2] = [Content::Records(Format::Ndjson), Content::Parquet];

/// Reads the manifest of an export at `path` and the files beside it, and compares them with the
/// store.
///
/// Errors: the manifest cannot be read, or the store.
pub fn verify_export(
    path: &Path,
    store: &mut Store,
    terms: &Terms,
    now: Timestamp,
    findings: &mut Findings,
) -> Result<(), VerifyError> {
    let text = fs::read(path)
        .map_err(|source| VerifyError::Unreadable { path: path.to_owned(), source })?;
    let manifest: Manifest = serde_json::from_slice(&text)
        .map_err(|source| VerifyError::NoManifest { path: path.to_owned(), source })?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut bytes = 0;
    for listed in &manifest.files {
        bytes += listed.bytes;
        if let Some(fault) = fault(folder, listed) {
            findings.tell(fault);
        }
    }
    let Span { from, to, status } = &manifest.period;
    let period = Period::new(*from, *to)?;
    findings.hear(format!(
        "export {}: {} {}, {status}, {} files, {bytes} bytes",
        path.display(),
        manifest.format,
        period,
        manifest.files.len()
    ));
    let scope = Scope::in_utc(period, manifest.tenant.as_deref(), now);
    let ledger = store.at_one_moment(|store| LedgerSums::read(store, terms, scope))?;
    compare(&manifest, &ledger, terms, findings);
    Ok(())
}

/// What is wrong with a file, if anything is.
fn fault(folder: &Path, listed: &Listed) -> Option<String> {
    let path = folder.join(&listed.path);
    match read(&path) {
        Err(error) => Some(format!("cannot read {}: {error}", path.display())),
        Ok((bytes, _)) if bytes != listed.bytes => {
            Some(format!("{} has {bytes} bytes instead of {}", path.display(), listed.bytes))
        }
        Ok((_, sha256)) if sha256 != listed.sha256 => Some(format!(
            "{} was changed: its SHA-256 is {sha256} instead of {}",
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

impl LedgerSums {
    fn read(store: &mut Store, terms: &Terms, scope: Scope<'_>) -> Result<Self, VerifyError> {
        let mut ledger = Self::default();
        store.hours(scope.period, scope.tenant, |key, hour| {
            if let (false, Some(currency), Some(cost)) =
                (key.correction, &key.currency, hour.sums.cost)
            {
                add(&mut ledger.posted, currency, cost)?;
            }
            Ok::<_, VerifyError>(())
        })?;
        let credits = terms.hours(store, scope, |_, key, hour| {
            ledger.requests += hour.sums.requests;
            if let (Some(currency), Some(cost)) = (&key.currency, hour.sums.cost) {
                add(&mut ledger.owed, currency, cost)?;
            }
            Ok::<_, VerifyError>(())
        })?;
        for credit in &credits {
            add(&mut ledger.owed, &credit.currency, -credit.amount)?;
        }
        ledger.entries = store.entries(scope.period, scope.tenant)?;
        let details_from = store.details_from()?;
        ledger.has_details = details_from.is_none_or(|from| from <= scope.period.from());
        Ok(ledger)
    }
}

fn add(money: &mut Money, currency: &str, amount: Decimal) -> Result<(), VerifyError> {
    let sum = money.entry(currency.to_owned()).or_default();
    let added = sum.checked_add(amount);
    *sum = added.ok_or(VerifyError::TooLarge)?;
    Ok(())
}

fn compare(manifest: &Manifest, ledger: &LedgerSums, terms: &Terms, findings: &mut Findings) {
    let provisional = manifest.period.status != "final";
    let requests = ledger.requests;
    if provisional && requests > manifest.requests {
        findings.note(format!(
            "the export was made before its period was over; {} requests are newer than it",
            requests - manifest.requests
        ));
        return;
    }
    if requests != manifest.requests {
        findings.tell(format!(
            "the export has {} requests, and the ledger has {requests}",
            manifest.requests
        ));
    }
    if ledger.has_details {
        compare_entries(manifest, &ledger.entries, findings);
    } else {
        findings.note(
            "the single requests of the export's period are gone, so which entries it has is not \
             compared"
                .to_owned(),
        );
    }
    if provisional && terms.have_gpus() {
        findings.note(
            "the export was made before its period was over, and GPUs cost more since then; the \
             sums are not compared"
                .to_owned(),
        );
        return;
    }
    let sums = manifest.sums.iter().map(|(currency, sum)| (currency.clone(), sum.billed_cost));
    let sums: Money = sums.gather();
    if is_records(manifest) {
        compare_money("the export adds up to", &sums, &ledger.posted, findings);
        compare_money(
            "the export says that the billed cost is",
            &manifest.owed,
            &ledger.owed,
            findings,
        );
    } else {
        compare_money("the export adds up to", &sums, &ledger.owed, findings);
    }
}

fn is_records(manifest: &Manifest) -> bool {
    RECORDS.iter().any(|content| content.name() == manifest.format)
}

/// Compares the entries of every journal.
fn compare_entries(manifest: &Manifest, entries: &Entries, findings: &mut Findings) {
    let described = |range: Option<&SequenceRange>| match range {
        Some(SequenceRange { first, last, records }) => {
            format!("{records} records with numbers from {first} to {last}")
        }
        None => "no record".to_owned(),
    };
    let gateways: BTreeSet<_> =
        manifest.sequences.keys().chain(entries.sequences.keys()).gather_set();
    for gateway in gateways {
        let (exported, kept) = (manifest.sequences.get(gateway), entries.sequences.get(gateway));
        if exported != kept {
            findings.tell(format!(
                "for {gateway:?}, the export has {}, and the ledger has {}",
                described(exported),
                described(kept)
            ));
        }
    }
    if !is_records(manifest) && manifest.corrections != entries.corrections {
        findings.tell(format!(
            "the export has {} corrections, and the ledger has {}",
            manifest.corrections, entries.corrections
        ));
    }
}

fn compare_money(what: &str, exported: &Money, ledger: &Money, findings: &mut Findings) {
    let currencies: BTreeSet<_> = exported.keys().chain(ledger.keys()).gather_set();
    for currency in currencies {
        let of = |money: &Money| money.get(currency).map(Decimal::normalize).unwrap_or_default();
        let (exported, owed) = (of(exported), of(ledger));
        if exported != owed {
            findings.tell(format!(
                "{what} {exported} {currency}, and the ledger has {owed}; GPUs and credits come \
                 from --config"
            ));
        }
    }
}
