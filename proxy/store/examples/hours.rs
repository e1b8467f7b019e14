//! Makes a store whose hours are in files, for other readers: `hours DIR REQUESTS`. Prints its month.
//!
//! The requests are those of four tenants in November of a year ago, one every minute.

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use taximeter_ledger::{Record, TenantId};
use taximeter_store::samples::{feed, journal, record};
use taximeter_store::{SealPolicy, Sealer, Store};

const TENANTS: [&str; 4] = ["acme", "blue", "city", "dock"];
/// From the samples back to a month that is over.
const AGO: SignedDuration = SignedDuration::from_hours(24 * 365);
/// The hours of a month are old by then.
const LATER: SignedDuration = SignedDuration::from_hours(24 * 120);

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: hours DIR REQUESTS";
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().ok_or(usage)?);
    let count: u32 = arguments.next().ok_or(usage)?.parse()?;
    std::fs::create_dir(&dir)?;
    let mut store = Store::open(&dir)?;
    let entries = journal((0..count).map(request));
    store.catch_up(&mut [feed(&entries)])?;
    let first = request(0).started_at;
    let mut sealer = Sealer::open(&dir, "pod-7f9c/0")?.ok_or("somebody else seals")?;
    let policy = SealPolicy { closed_until: first + LATER, ..SealPolicy::default() };
    // What was replaced goes at the next sealing.
    for _ in 0..2 {
        let newest = sealer.newest()?;
        sealer.work(&policy, newest, &|| true)?;
    }
    writeln!(std::io::stdout(), "{}", first.strftime("%Y-%m"))?;
    Ok(())
}

fn request(number: u32) -> Record {
    let plain = record(number);
    let moved = |at: Timestamp| at - AGO + SignedDuration::from_secs(59 * i64::from(number));
    let tenant = TENANTS.iter().cycle().nth(number as usize).copied().unwrap_or_default();
    let mut record = Record {
        started_at: moved(plain.started_at),
        ended_at: moved(plain.ended_at),
        tenant: TenantId(tenant.into()),
        ..plain
    };
    record.usage.input_tokens = Some(100 + u64::from(number % 97));
    if let Some(cost) = &mut record.cost {
        cost.amount += Decimal::new(i64::from(number % 89), 9);
    }
    record
}
