//! Writes a file of a day for other readers: `day FILE REQUESTS`. Prints what its footer says.
//!
//! The requests are streams of four tenants with ids of clients and engines, and each has a price.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use taximeter_columnar::DayWriter;
use taximeter_ledger::{LedgerId, Place, Record, RequestId, Stages, TenantId};
use uuid::{Builder, Uuid};

const LEDGER: LedgerId = LedgerId(Uuid::from_u128(0x5f3f_0c3a_4c1e_4d55_9a6b_0d4a_5e3c_2b1a));
const TENANTS: [&str; 4] = ["acme", "blue", "city", "dock"];
const PATTERN: &str = r#"{
    "id": "0193e9a0-0000-7000-8000-000000000000", "request_id": "", "attempt": 1,
    "gateway": "gw/0", "started_at": "2026-11-20T00:00:00Z", "ended_at": "2026-11-20T00:00:00Z",
    "tenant": "acme", "key_id": "acme", "identity": "api_key", "labels": {"team": "search"},
    "operation": "chat", "route": "/v1/chat/completions", "stream": true, "upstream": "engine",
    "provider": "vllm", "request_model": "m", "response_model": "m", "response_id": null,
    "status": 200, "end": "complete", "finish_reasons": ["stop"],
    "usage": {
        "source": "reported", "sources": {"input_tokens": "reported", "output_tokens": "reported"},
        "conditions": {"speed": "fast"}
    },
    "timing": {"output_chunks": 0, "duration": 0.0, "gateway": 0.0},
    "cost": {
        "currency": "USD", "amount": "0", "list_amount": "0", "price_id": "builtin@2026-11-20#m",
        "price_match": "exact", "lines": [
            {"meter": "input", "unit_price": "0.0000002", "amount": "0"},
            {"meter": "output", "unit_price": "0.0000006", "amount": "0"}
        ]
    }
}"#;

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: day FILE REQUESTS";
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or(usage)?;
    let count: u32 = arguments.next().ok_or(usage)?.parse()?;
    let mut random = Random(0);
    let mut records = BTreeMap::new();
    let mut at: Timestamp = "2026-11-20T00:00:00Z".parse()?;
    let day = at.to_zoned(TimeZone::UTC).date();
    for number in 0..count {
        at += SignedDuration::from_micros(i64::try_from(random.below(20_000))?);
        let record = request(number, at, &mut random)?;
        records.insert((record.tenant.clone(), record.id), record);
    }
    let mut writer = DayWriter::new(BufWriter::new(File::create(path)?), "gw/0", day, Vec::new())?;
    let mut payload = Vec::new();
    for record in records.values() {
        record.encode(&mut payload);
        writer.add(Place { ledger: LEDGER, seq: record.seq }, &payload)?;
    }
    let footer = serde_json::to_string(&writer.finish()?.footer)?;
    writeln!(std::io::stdout(), "{footer}")?;
    Ok(())
}

fn request(number: u32, at: Timestamp, random: &mut Random) -> Result<Record, Box<dyn Error>> {
    let mut record: Record = serde_json::from_str(PATTERN)?;
    let millis = at.as_millisecond().unsigned_abs();
    let [bytes @ .., _, _, _, _, _, _] = random.wide().to_be_bytes();
    record.id = RequestId(Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid());
    record.request_id =
        Builder::from_random_bytes(random.wide().to_be_bytes()).into_uuid().to_string();
    record.response_id = Some(format!("chatcmpl-{:032x}", random.wide()));
    record.seq = u64::from(number) * 3 + 2;
    let tenant = usize::try_from(random.below(4))?;
    record.tenant = TenantId::new(TENANTS.get(tenant).copied().unwrap_or_default())?;
    record.key_id = Some(record.tenant.to_string());
    record.started_at = at;
    let (input, output) = (20 + random.below(4000), 1 + random.below(800));
    (record.usage.input_tokens, record.usage.output_tokens) = (Some(input), Some(output));
    if let Some(cost) = &mut record.cost {
        for (line, tokens) in cost.lines.iter_mut().zip([input, output]) {
            line.tokens = Some(tokens);
            line.amount = Decimal::from(tokens) * line.unit_price;
            cost.amount += line.amount;
        }
        cost.list_amount = cost.amount;
    }
    let mut ended = 0;
    let prefill = 20_000 + input * 20;
    let ends = [20, 25, 15, 200, 60, prefill, output * 9000].map(|most| {
        ended += most / 2 + random.below(most / 2 + 1);
        Some(Duration::from_micros(ended))
    });
    let [identify, body, route, admit, connect, first, last] = ends;
    let settle = last.map(|last| last + Duration::from_micros(random.below(80)));
    let seconds = |end: Option<Duration>| end.unwrap_or_default().as_secs_f64();
    record.timing.time_to_first_chunk = first.map(|first| first.as_secs_f64());
    record.timing.time_to_first_token = first.map(|first| first.as_secs_f64());
    record.timing.output_chunks = output;
    record.timing.longest_stall =
        Some(Duration::from_micros(9000 + random.below(30_000)).as_secs_f64());
    record.timing.duration = seconds(last);
    record.timing.gateway = seconds(connect);
    record.timing.stages =
        Some(Stages::ending([identify, body, route, admit, connect, first, last, None, settle]));
    record.ended_at = at + SignedDuration::try_from(last.unwrap_or_default())?;
    Ok(record)
}

/// SplitMix64.
struct Random(u64);

impl Random {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    const fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
