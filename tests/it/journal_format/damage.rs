//! A segment of several tenants that is damaged at random bytes: of each, at most one request is
//! lost, and what is read is what was written.

use std::collections::BTreeMap;

use serde_json::json;
use taximeter_ledger::{Fault, FramedEntry, LedgerId, Position, Reader, find_resume_point};

use super::sample::{LEDGER, Segment, entry, reserve, whole_post};
use super::{python, written};

const REQUESTS: u32 = 300;
const DAMAGES: usize = 1_000;
const TENANTS: [&str; 5] = ["acme", "blue", "city", "dock", "edge"];

/// Small numbers, the same each time (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        usize::try_from(number).expect("32 bits") % bound
    }
}

/// Requests of several tenants, with strings of their own and shared ones.
fn segment(random: &mut Random) -> Vec<u8> {
    let mut segment = Segment::new();
    segment.append(&entry(json!({
        "entry": "checkpoint", "at": "2026-11-01T00:00:00Z", "posts": 0, "voids": 0,
        "corrections": 0, "unknown_cost": 0
    })));
    for number in 0..REQUESTS {
        let tenant = TENANTS[random.below(TENANTS.len())];
        let id = format!("0193e9a0-7b2c-7def-8123-{:012x}", number);
        let usage = json!({
            "source": "reported", "input_tokens": random.below(100_000),
            "output_tokens": random.below(1_000), "cache_read_input_tokens": null,
            "cache_write_input_tokens": null, "reasoning_output_tokens": null, "modalities": null,
            "passes": null, "counted": null
        });
        let mut post = whole_post();
        for (name, value) in [
            ("id", json!(id)),
            ("request_id", json!(id)),
            ("tenant", json!(tenant)),
            ("key_id", json!(format!("{tenant}-{}", random.below(3)))),
            ("request_model", json!(format!("model-{}", random.below(20)))),
            ("usage", usage),
            (
                "cost",
                json!({
                    "currency": "USD", "amount": format!("0.00{number}"),
                    "list_amount": format!("0.00{number}"), "price_id": "p", "lines": []
                }),
            ),
        ] {
            post[name] = value;
        }
        let mut reserved = reserve();
        for name in ["id", "request_id", "tenant", "key_id", "request_model"] {
            reserved[name] = post[name].clone();
        }
        segment.append(&entry(reserved));
        segment.append(&entry(post));
        if random.below(7) == 0 {
            segment.mark();
        }
    }
    segment.bytes()
}

/// The entries that are left, by their number, as a start that salvages finds them.
fn salvaged(bytes: &[u8]) -> BTreeMap<u64, FramedEntry> {
    let ledger = LedgerId(LEDGER.parse().expect("a UUID"));
    let mut read = BTreeMap::new();
    let mut reader = Reader::new(None, 0);
    let (mut fed, mut base) = (bytes, 0);
    loop {
        reader.feed(fed);
        let fault = loop {
            match reader.next_entry() {
                // Without its strings it cannot be read.
                Ok(Some(framed)) if framed.fault.is_some() => {}
                Ok(Some(framed)) => {
                    read.insert(framed.seq, framed);
                }
                Ok(None) => break reader.finish().err(),
                Err(fault) => break Some(fault),
            }
        };
        let (Some(Fault::Damaged { .. } | Fault::Torn { .. }), header) = (&fault, reader.header())
        else {
            assert_eq!(fault, None);
            return read;
        };
        let offset = base + reader.offset();
        let last = Some(reader.last_frame()).filter(|_| base > 0 || header.is_some());
        let Some(found) = find_resume_point(bytes, ledger, offset, last) else { return read };
        let table = reader.table();
        base = found.offset;
        fed = &bytes[usize::try_from(base).expect("an offset")..];
        // The table comes first, so offsets begin behind it.
        base -= table.len() as u64;
        reader = Reader::resuming(ledger, found.before, &table);
        assert!(found.before.seq >= last.unwrap_or(Position::START).seq);
    }
}

#[test]
fn a_byte_that_is_damaged_costs_at_most_one_request_and_no_fare_goes_to_another_tenant() {
    let mut random = Random(20_261_126);
    let bytes = segment(&mut random);
    let whole = salvaged(&bytes);
    assert_eq!(whole.len(), 1 + 2 * REQUESTS as usize);
    let damages: Vec<(usize, u8)> = (0..DAMAGES)
        .map(|_| (random.below(bytes.len()), u8::try_from(1 + random.below(255)).expect("a byte")))
        .collect();
    let (_folder, path) = written(&bytes);
    let input: String = damages.iter().map(|(at, by)| format!("{at} {by}\n")).collect();
    let python = python("damage.py", &[&path, LEDGER], &input);
    assert_eq!(python.len(), DAMAGES);
    let id = |seq: &u64| whole[seq].payload.to_vec()[..16].to_owned();
    let (mut lost_here, mut lost_in_python) = (0, 0);
    for ((at, by), python) in damages.into_iter().zip(python) {
        let mut damaged = bytes.clone();
        damaged[at] ^= by;
        let left = salvaged(&damaged);
        // What is read is what was written, whatever is lost.
        for (seq, framed) in &left {
            let written = whole.get(seq).expect("it was written");
            assert_eq!((framed.kind, &framed.payload), (written.kind, &written.payload), "at {at}");
        }
        let lost: Vec<_> = whole.keys().filter(|seq| !left.contains_key(seq)).collect();
        let requests: std::collections::BTreeSet<_> = lost.iter().map(|seq| id(seq)).collect();
        assert!(requests.len() <= 1, "at {at} by {by}: {lost:?}");
        lost_here += lost.len();
        assert_eq!(python["changed"], json!([]), "at {at} by {by}");
        let lost = python["lost"].as_array().expect("a list");
        let numbers = lost.iter().map(|seq| seq.as_u64().expect("a number"));
        let requests: std::collections::BTreeSet<_> = numbers.map(|seq| id(&seq)).collect();
        assert!(requests.len() <= 1, "at {at} by {by}: {lost:?}");
        lost_in_python += lost.len();
    }
    assert!(lost_here > DAMAGES / 2 && lost_in_python > DAMAGES / 2);
}
