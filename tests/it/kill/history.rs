//! A ledger with requests of many days that are over, and what is left of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use taximeter_ledger::{Checkpoint, Dimensions, End, Entry, Record, Settled};
use taximeter_store::{SealPolicy, Sealer, Store};

use super::judge::{self, Met, SentRequest};
use super::two_gateways::{billed, sums};
use crate::gateway::{records, taximeter};
use crate::old_details::post;
use crate::pacing::Log;
use crate::segments::write_journal;

/// Its gateway.
pub(super) const GATEWAY: &str = "gw";
/// Requests of each day. Each costs a cent, and has 1000 tokens in.
const EACH_DAY: u32 = 6;
pub(super) const DAY: SignedDuration = SignedDuration::from_hours(24);

/// The ledger of a folder before the first gateway.
pub(super) struct History {
    /// Its first day begins then.
    pub(super) begin: Timestamp,
    requests: u32,
}

impl History {
    /// Writes the journal. The last day is the one before yesterday.
    pub(super) fn write(folder: &Path, days: u32) -> Self {
        let begin = today(folder) - DAY * i32::try_from(days + 1).expect("few");
        let requests = days * EACH_DAY;
        let at = |number: u32| {
            let day = i32::try_from(number / EACH_DAY).expect("few");
            begin + DAY * day + SignedDuration::from_mins(37 * i64::from(number % EACH_DAY))
        };
        let mut entries: Vec<_> =
            (0..requests).flat_map(|number| post(number, at(number))).collect();
        for entry in &mut entries {
            if let Entry::Post(record) = entry {
                record.end = End::Complete;
                record.dimensions = dimensions(number_of(record));
            }
        }
        let now = begin + DAY * i32::try_from(days).expect("few");
        let settled = Some(Settled { at: now, until: now, request_seconds_max: 3600 });
        let checkpoint = Checkpoint { at: now, settled, ..Checkpoint::default() };
        entries.push(Entry::Checkpoint(Box::new(checkpoint)));
        write_journal(&folder.join("data"), 1, &entries);
        Self { begin, requests }
    }

    /// Fails unless each request of the history and of `sent` is there once, and is billed once, now and
    /// when all of it is sealed. `log` is what the engine has written.
    pub(super) fn judge(
        &self,
        kills: usize,
        data_dir: &Path,
        log: &Log,
        mut sent: Vec<SentRequest>,
    ) -> Met {
        let ids: BTreeSet<_> = (0..self.requests).map(|number| format!("r-{number}")).collect();
        let of_history = |id: &String| SentRequest { request_id: id.clone(), finished: false };
        sent.extend(ids.iter().map(of_history));
        let met = judge::judge(kills, data_dir, log, &sent);

        let all = records(data_dir);
        let is_old = |id: &str| ids.contains(id);
        let (old, new): (Vec<_>, Vec<_>) =
            all.iter().partition(|record| record["request_id"].as_str().is_some_and(is_old));
        let gone = Store::open(data_dir).and_then(|mut store| store.gone_days()).expect("days");
        let gone = gone.iter().map(|day| day.requests).sum::<u64>();
        println!("{} requests of old days in detail, {gone} without", old.len());
        assert_eq!(old.len() as u64 + gone, u64::from(self.requests));
        // What used nothing has a record and is on no bill.
        let used = new.into_iter().filter(|record| record["usage"]["source"] != "none");
        let (requests, input, output, cost) = sums(used);
        let requests = requests + u64::from(self.requests);
        let input = input + 1000 * u64::from(self.requests);
        let cost = cost + Decimal::new(i64::from(self.requests), 2);
        let expected = (requests, input, output, cost);
        let place = ["--data-dir", data_dir.to_str().expect("UTF-8")];
        assert_eq!(billed(&place), expected);
        let sessions = judge::sessions(data_dir, &all);

        seal_all(data_dir);
        assert_eq!(billed(&place), expected);
        assert_eq!(records(data_dir), all);
        assert_eq!(judge::sessions(data_dir, &all), sessions);
        let verified = taximeter(["verify"].iter().chain(&place));
        let said = String::from_utf8_lossy(&verified.stdout);
        assert!(said.ends_with("Nothing is wrong.\n"), "{said}");
        met
    }
}

/// The number of a request.
fn number_of(record: &Record) -> u32 {
    let number = record.request_id.strip_prefix("r-").and_then(|number| number.parse().ok());
    number.expect("a number")
}

/// What the client of a request says: sessions of several days and agents. Some have none.
fn dimensions(number: u32) -> Option<Box<Dimensions>> {
    let agent = format!("agent-{}", number % 3);
    let dimensions = Dimensions {
        session: (!number.is_multiple_of(5)).then(|| format!("old-{}", number / 9)),
        parent_agent: (agent != "agent-0").then(|| "agent-0".to_owned()),
        agent: Some(agent),
        turn: Some(format!("turn-{}", number / 2)),
        client: Some("codex/0.169".to_owned()),
        ..Dimensions::default()
    };
    dimensions.if_any()
}

/// The first instant of the day.
pub(super) fn today(folder: &Path) -> Timestamp {
    let made = fs::metadata(folder).and_then(|folder| folder.modified()).expect("a time");
    let made = Timestamp::try_from(made).expect("a time").as_second();
    Timestamp::from_second(made - made.rem_euclid(DAY.as_secs())).expect("a time")
}

/// Seals all that there is. Each day has one file then, besides what came late.
fn seal_all(data_dir: &Path) {
    let mut sealer = Sealer::open(data_dir, GATEWAY).expect("a store").expect("nobody seals");
    let closed_until = today(data_dir) + DAY * 4;
    let policy = SealPolicy { closed_until, ..SealPolicy::default() };
    for _ in 0..2 {
        let newest = sealer.newest().expect("a number");
        let work = sealer.work(&policy, newest, &|| true).expect("to seal");
        assert_eq!(work.fault(), None);
    }
    for folder in ["days", "hours"] {
        let Ok(files) = fs::read_dir(data_dir.join(folder)) else { continue };
        for file in files {
            let name = file.expect("a file").file_name().into_string().expect("UTF-8");
            assert!(!name.contains("part") && !name.ends_with(".tmp"), "{folder}/{name} is left");
        }
    }
}
