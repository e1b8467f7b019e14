//! Records and journals for tests.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use taximeter_ledger::{
    EncodedEntry, End, Entry, FramedEntry, Framer, Identity, LedgerId, Position, Reader, Record,
    RecordCost, RecordLine, RecordTiming, RecordUsage, RequestId, SegmentHeader, TenantId, Void,
    VoidReason,
};
use taximeter_pricing::Source;
use uuid::Uuid;

use super::Feed;

/// 2026-11-01T00:00:00Z, in microseconds since 1970.
const NOVEMBER: i64 = 1_793_491_200_000_000;

/// The `number`th request of November, one each second: 100 tokens in, 10 out, 0.00012340 USD.
pub fn record(number: u32) -> Record {
    let started_at = NOVEMBER + i64::from(number) * 1_000_000;
    let amount = Decimal::new(12_340, 8);
    Record {
        id: RequestId(Uuid::from_u128(0x0193_0000_0000_7000_8000 << 48 | u128::from(number))),
        request_id: format!("client-{number}"),
        attempt: 1,
        seq: 0,
        gateway: "pod-7f9c/0".to_owned(),
        started_at: Timestamp::from_microsecond(started_at).unwrap(),
        ended_at: Timestamp::from_microsecond(started_at + 1_180_000).unwrap(),
        tenant: TenantId("acme".into()),
        key_id: Some("acme-prod".to_owned()),
        identity: Identity::ApiKey,
        labels: BTreeMap::from([("team".to_owned(), "search".to_owned())]),
        dimensions: None,
        operation: "chat".to_owned(),
        route: "/v1/chat/completions".to_owned(),
        stream: true,
        upstream: "local".to_owned(),
        provider: "vllm".to_owned(),
        request_model: Some("m".to_owned()),
        response_model: Some("m-2026".to_owned()),
        response_id: Some(format!("chatcmpl-{number}")),
        service_tier: None,
        status: Some(200),
        end: End::Complete,
        error_type: None,
        error: None,
        finish_reasons: vec!["stop".to_owned()],
        usage: RecordUsage {
            source: Source::Reported,
            input_tokens: Some(100),
            cache_read_input_tokens: Some(60),
            cache_write_input_tokens: Some(0),
            output_tokens: Some(10),
            reasoning_output_tokens: Some(0),
            ..RecordUsage::default()
        },
        timing: RecordTiming {
            time_to_first_token: Some(0.043),
            output_chunks: 10,
            duration: 1.18,
            gateway: 0.0004,
            ..RecordTiming::default()
        },
        cost: Some(RecordCost {
            at_least: false,
            currency: "USD".to_owned(),
            amount,
            list_amount: amount,
            price_id: "builtin@2026-11-20#m".to_owned(),
            price_match: Some("date".into()),
            lines: vec![RecordLine {
                meter: "input".to_owned(),
                model: None,
                price_match: None,
                tokens: Some(40),
                quantity: None,
                unit: None,
                unit_price: Decimal::new(5, 7),
                list_unit_price: None,
                amount: Decimal::new(200, 7),
            }],
        }),
        cost_known: None,
        cost_unknown: Vec::new(),
        reported_cost: None,
        resource: BTreeMap::from([("k8s.pod.name".to_owned(), "pod-7f9c".to_owned())]),
    }
}

/// The posts of `records`, numbered from 1.
pub fn journal(records: impl IntoIterator<Item = Record>) -> Vec<FramedEntry> {
    segment(1, records.into_iter().map(|record| Entry::Post(Box::new(record))))
}

/// `entries` as they stand in a segment that begins with number `first`.
pub fn segment(first: u64, entries: impl IntoIterator<Item = Entry>) -> Vec<FramedEntry> {
    let position = Position { seq: first - 1, chain: 0 };
    let (mut bytes, mut payload) = (Vec::new(), Vec::new());
    let created = record(0).started_at;
    SegmentHeader {
        gateway: "pod-7f9c/0".to_owned(),
        ledger: LedgerId::default(),
        before: position,
        lost: 0,
        has_sync_marks: false,
        follows: None,
        created,
    }
    .encode(&mut bytes);
    let mut framer = Framer::new(LedgerId::default(), position);
    for entry in entries {
        framer.append(&EncodedEntry::new(&entry, &mut payload).unwrap(), &mut bytes);
    }
    let mut reader = Reader::new(None, first);
    reader.feed(&bytes);
    std::iter::from_fn(|| reader.next_entry().unwrap()).collect()
}

/// An entry that leaves no record.
pub fn void(number: u32) -> Entry {
    let Record { id, ended_at, .. } = record(number);
    Entry::Void(Void { id, reason: VoidReason::NotSent, ended_at })
}

/// `entries` as the journal of requests.
pub fn feed(entries: &[FramedEntry]) -> Feed<'_> {
    feed_as("journal", entries)
}

/// `entries` as the journal `name`.
pub(crate) fn feed_as<'a>(name: &'a str, entries: &'a [FramedEntry]) -> Feed<'a> {
    Feed::new(name, |from| {
        let entries: Vec<_> = entries.iter().filter(|framed| framed.seq >= from).cloned().collect();
        Ok(Box::new(entries.into_iter().map(Ok)))
    })
}
