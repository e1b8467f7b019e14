//! Properties of frames and of the fold of entries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use rust_decimal::Decimal;
use taximeter_pricing::{Condition, Flag, Member, Pass, Source, Usage};
use uuid::Uuid;

use super::*;

mod completion;
mod digest;
mod fold;
mod format;
mod names;
mod record;
mod resume;
mod running_totals;
mod sync_mark;

const LEDGER: LedgerId = LedgerId(Uuid::from_u128(7));

/// Bytes before the first entry: the header, and the frame with which strings begin.
const BEGIN_BYTES: usize = HEADER_BYTES + 17;

fn at(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(1_795_000_000_000_000 + micros).unwrap()
}

fn id(number: u128) -> RequestId {
    RequestId(Uuid::from_u128(number))
}

fn tenant(name: &str) -> TenantId {
    TenantId(Arc::from(name))
}

fn reserve(number: u128, amount: Option<Decimal>) -> Reserve {
    Reserve {
        id: id(number),
        request_id: format!("req-{number}"),
        started_at: at(0),
        tenant: tenant("acme"),
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
        service_tier: None,
        amount,
        input_tokens: None,
        output_tokens: None,
        context: false,
        background: false,
    }
}

fn cost(amount: Decimal) -> RecordCost {
    RecordCost {
        at_least: false,
        currency: "USD".to_owned(),
        amount,
        list_amount: amount,
        price_id: "builtin@2026-11-20#m".to_owned(),
        price_match: Some("exact".into()),
        lines: Vec::new(),
    }
}

fn post(number: u128, amount: Option<Decimal>) -> Entry {
    let mut record = gateway_died_record(&reserve(number, None), None, at(5), "g");
    record.cost = amount.map(cost);
    Entry::Post(Box::new(record))
}

/// A post whose cost is unknown, but for this part.
fn post_in_part(number: u128, amount: Option<Decimal>) -> Entry {
    let mut record = gateway_died_record(&reserve(number, None), None, at(5), "g");
    let reasons = [UnknownCost::new(UnknownCostReason::NoRate, Some("teleport_calls"))];
    record.charge(Charge::unknown(amount.map(cost), reasons));
    Entry::Post(Box::new(record))
}

fn void(number: u128) -> Entry {
    Entry::Void(Void { id: id(number), reason: VoidReason::NotSent, ended_at: at(9) })
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let amount = || proptest::option::of((0..1_000_000i64, 0..9u32)).prop_map(decimal);
    let text = || "\\PC{0,20}";
    vec(
        prop_oneof![
            (any::<u128>(), text(), amount()).prop_map(|(number, text, amount)| {
                Entry::Reserve(Box::new(Reserve { request_id: text, ..reserve(number, amount) }))
            }),
            (any::<u128>(), text(), amount()).prop_map(|(number, text, amount)| {
                let mut entry = post(number, amount);
                if let Entry::Post(record) = &mut entry {
                    record.response_id = Some(text);
                }
                entry
            }),
            (any::<u128>(), amount()).prop_map(|(number, amount)| post_in_part(number, amount)),
            any::<u128>().prop_map(void),
        ],
        1..12,
    )
}

fn decimal(parts: Option<(i64, u32)>) -> Option<Decimal> {
    parts.map(|(digits, scale)| Decimal::new(digits, scale))
}

/// A segment with these entries, and where each frame ends.
fn segment(entries: &[Entry], before: Position) -> (Vec<u8>, Vec<usize>, Position) {
    let mut bytes = Vec::new();
    SegmentHeader {
        gateway: "pod/0".to_owned(),
        ledger: LEDGER,
        before,
        lost: 0,
        has_sync_marks: true,
        follows: None,
        created: at(0),
    }
    .encode(&mut bytes);
    let mut ends = vec![if entries.is_empty() { bytes.len() } else { BEGIN_BYTES }];
    let mut framer = Framer::new(LEDGER, before);
    let mut buffer = Vec::new();
    for entry in entries {
        framer.append(&EncodedEntry::new(entry, &mut buffer).unwrap(), &mut bytes);
        ends.push(bytes.len());
    }
    (bytes, ends, framer.last())
}

/// The frame before the first entry of a segment.
fn begin(segment: &[u8]) -> Position {
    let mut reader = Reader::new(None, 1);
    reader.feed(&segment[..BEGIN_BYTES]);
    assert_eq!(reader.next_entry(), Ok(None));
    reader.last_frame()
}

fn read(mut reader: Reader, pieces: &[&[u8]]) -> (Vec<FramedEntry>, Result<(), Fault>) {
    let mut framed = Vec::new();
    for piece in pieces {
        reader.feed(piece);
        loop {
            match reader.next_entry() {
                Ok(Some(entry)) => framed.push(entry),
                Ok(None) => break,
                Err(fault) => return (framed, Err(fault)),
            }
        }
    }
    let end = reader.finish();
    (framed, end)
}

fn read_whole(bytes: &[u8]) -> (Vec<FramedEntry>, Result<(), Fault>) {
    read(Reader::new(None, 1), &[bytes])
}

/// The entries that a reader returns: the records have their sequence numbers.
fn numbered(entries: &[Entry], first: u64) -> Vec<(u64, Entry)> {
    let number = |(seq, entry): (u64, &Entry)| {
        let mut entry = entry.clone();
        if let Entry::Post(record) = &mut entry {
            record.seq = seq;
        }
        (seq, entry)
    };
    (first..).zip(entries).map(number).collect()
}

fn plain(framed: Vec<FramedEntry>) -> Vec<(u64, Entry)> {
    framed.into_iter().map(|framed| (framed.seq, framed.entry().unwrap())).collect()
}

proptest! {
    #[test]
    fn entries_are_read_as_they_were_written(entries in entries(), split in any::<Index>()) {
        let before = Position { seq: 41, chain: 7 };
        let (bytes, ends, _) = segment(&entries, before);
        let (head, tail) = bytes.split_at(split.index(bytes.len() + 1));
        let (framed, end) = read(Reader::new(Some(before), 1), &[head, tail]);
        prop_assert_eq!(end, Ok(()));
        let offsets: Vec<_> = framed.iter().map(|framed| framed.offset).collect();
        let starts: Vec<_> = ends[..ends.len() - 1].iter().map(|&start| start as u64).collect();
        prop_assert_eq!(offsets, starts);
        prop_assert_eq!(plain(framed), numbered(&entries, 42));
    }

    #[test]
    fn a_cut_leaves_the_whole_entries_before_it(
        entries in entries(),
        cut in any::<Index>(),
        zeros in 0..100usize,
    ) {
        let (mut bytes, ends, _) = segment(&entries, Position::START);
        let cut = cut.index(bytes.len());
        bytes.truncate(cut);
        bytes.resize(cut + zeros, 0);
        let whole = ends.iter().rposition(|&end| end <= cut);
        let (framed, end) = read_whole(&bytes);
        prop_assert_eq!(plain(framed), numbered(&entries[..whole.unwrap_or(0)], 1));
        let begun = if cut < HEADER_BYTES { 0 } else { HEADER_BYTES };
        let offset = whole.map_or(begun, |whole| ends[whole]);
        let left = (bytes.len() - offset) as u64;
        if left == 0 && cut >= HEADER_BYTES {
            prop_assert_eq!(end, Ok(()));
        } else {
            prop_assert_eq!(end, Err(Fault::Torn { offset: offset as u64, bytes: left }));
        }
    }

    #[test]
    fn a_flipped_bit_before_the_end_is_damage(
        entries in entries(),
        at in any::<Index>(),
        bit in 0..8u32,
    ) {
        let (mut bytes, ends, _) = segment(&entries, Position::START);
        let at = at.index(ends[ends.len() - 2].max(ends[0]));
        bytes[at] ^= 1 << bit;
        let (framed, end) = read_whole(&bytes);
        let frame = ends.iter().rposition(|&end| end <= at);
        prop_assert_eq!(framed.len(), frame.unwrap_or(0));
        match end {
            Err(Fault::Damaged { offset, .. }) => {
                let begun = if at < HEADER_BYTES { 0 } else { HEADER_BYTES };
                prop_assert_eq!(offset, frame.map_or(begun, |frame| ends[frame]) as u64);
            }
            Err(Fault::Format { .. }) => prop_assert!((8..10).contains(&at)),
            other => prop_assert!(false, "byte {at} bit {bit}: {other:?}"),
        }
    }

    #[test]
    fn replaying_rebuilds_the_balance(
        amounts in vec((0..1_000i64, proptest::option::of(0..1_000i64), 0..3u8), 1..30),
    ) {
        let mut replay = Replay::default();
        let mut seq = 0;
        let mut apply = |replay: &mut Replay, entry: Entry| {
            seq += 1;
            replay.apply(seq, entry).unwrap();
        };
        let mut expected = Balance::default();
        for (number, (amount, paid, fate)) in (0u128..).zip(&amounts) {
            let amount = Decimal::new(*amount, 4);
            apply(&mut replay, Entry::Reserve(Box::new(reserve(number, Some(amount)))));
            match (fate, paid) {
                (0, _) => expected.reserved += amount,
                (1, _) => apply(&mut replay, void(number)),
                (_, paid) => {
                    let paid = paid.map(|paid| Decimal::new(paid, 4));
                    apply(&mut replay, post(number, paid));
                    apply(&mut replay, post(number, paid));
                    match paid {
                        None => expected.unknown_cost += 1,
                        Some(paid) => *expected.posted.entry("USD".to_owned()).or_default() += paid,
                    }
                }
            }
        }
        prop_assert_eq!(&replay.balances()[&tenant("acme")], &expected);
        let open = amounts.iter().filter(|(_, _, fate)| *fate == 0).count();
        prop_assert_eq!(replay.open().len(), open);
        prop_assert_eq!(replay.posts(), replay.repeats());
        prop_assert_eq!(replay.posts() + replay.voids(), (amounts.len() - open) as u64);
    }
}

#[test]
fn a_removed_or_moved_entry_shows() {
    let entries = [void(1), void(2), void(3)];
    let (bytes, ends, _) = segment(&entries, Position::START);
    let frame = |index: usize| &bytes[ends[index]..ends[index + 1]];
    let begin = &bytes[..ends[0]];
    for order in [&[0, 2][..], &[1, 2], &[1, 0, 2], &[0, 0, 1, 2]] {
        let frames: Vec<_> = order.iter().map(|&index| frame(index)).collect();
        let (framed, end) = read_whole(&[begin, &frames.concat()].concat());
        assert!(framed.len() <= 1, "{order:?}");
        assert!(matches!(end, Err(Fault::Damaged { what: "sequence", .. })), "{order:?}: {end:?}");
    }
}

#[test]
fn entries_of_another_journal_do_not_fit() {
    let (other, ends, _) = segment(&[void(9), void(2)], Position::START);
    let (mut bytes, _, _) = segment(&[void(1)], Position::START);
    bytes.extend_from_slice(&other[ends[1]..]);
    let (framed, end) = read_whole(&bytes);
    assert_eq!(framed.len(), 1);
    assert!(matches!(end, Err(Fault::Damaged { what: "chain", .. })), "{end:?}");
}

#[test]
fn a_segment_must_fit_to_what_was_read_before() {
    let (bytes, _, last) = segment(&[void(1), void(2), void(3)], Position::START);
    let (framed, end) = read(Reader::new(Some(last), 1), &[&bytes]);
    assert_eq!((framed.len(), end), (0, Ok(())));
    let other = Position { seq: 2, chain: 5 };
    let (_, end) = read(Reader::new(Some(other), 1), &[&bytes]);
    assert!(matches!(end, Err(Fault::Damaged { what: "joining chain", .. })), "{end:?}");
    let (later, _, _) = segment(&[void(6)], Position { seq: 5, chain: 1 });
    let (_, end) = read(Reader::new(Some(last), 1), &[&later]);
    let gap = Fault::Damaged { offset: 0, what: "first sequence", expected: 4, found: 6 };
    assert_eq!(end, Err(gap));
}

#[test]
fn reading_may_begin_anywhere() {
    let entries = [void(1), void(2), void(3)];
    let (bytes, _, _) = segment(&entries, Position::START);
    for from in 1..=4 {
        let (framed, end) = read(Reader::new(None, from), &[&bytes]);
        let rest = usize::try_from(from - 1).unwrap();
        assert_eq!((plain(framed), end), (numbered(&entries[rest..], from), Ok(())));
    }
}

#[test]
fn an_entry_that_is_whole_and_not_known_is_named() {
    let (bytes, ends, _) = segment(&[void(1), void(2)], Position::START);
    let (mut framed, _) = read_whole(&bytes);
    framed[1].kind = Kind::Post;
    let offset = ends[1] as u64;
    let fault = framed[1].entry().unwrap_err();
    assert!(
        matches!(fault, Fault::Unreadable { offset: at, seq: 2, .. } if at == offset),
        "{fault}"
    );
    assert_eq!(framed[0].entry(), Ok(void(1)));
}

#[test]
fn an_entry_without_bounds_is_refused() {
    let text = "x".repeat(ENTRY_BYTES_MAX);
    let entry = Entry::Reserve(Box::new(Reserve { request_id: text, ..reserve(1, None) }));
    let error = EncodedEntry::new(&entry, &mut Vec::new()).unwrap_err();
    let EncodeError::TooLong { bytes } = error;
    assert!(bytes > ENTRY_BYTES_MAX);
}

#[test]
fn words_are_the_same_written_by_hand_and_by_serde() {
    fn agrees(word: &str, value: &impl serde::Serialize) {
        assert_eq!(serde_json::to_value(value).unwrap(), word);
    }
    use {End::*, VoidReason as Reason};
    for end in [
        Complete,
        ClientLeft,
        ClientStalled,
        Truncated,
        UpstreamError,
        UpstreamStalled,
        UpstreamRefused,
        Deadline,
        BudgetCut,
        Shutdown,
        GatewayDied,
        Refused,
    ] {
        agrees(end.as_str(), &end);
    }
    for identity in [Identity::ApiKey, Identity::Header, Identity::Unknown] {
        agrees(identity.as_str(), &identity);
    }
    for source in [Source::Reported, Source::Counted, Source::Unknown] {
        agrees(source.as_str(), &source);
    }
    for reason in
        [Reason::NotSent, Reason::UpstreamRefused, Reason::UpstreamAuth, Reason::ClientLeft]
    {
        agrees(reason.as_str(), &reason);
    }
}

fn progress(number: u128, output_tokens: u64) -> Entry {
    Entry::Progress(Box::new(Progress {
        id: id(number),
        at: at(3),
        response_model: None,
        response_id: None,
        service_tier: None,
        usage: RecordUsage::counted(Some(7), Some(output_tokens), &[]),
    }))
}

fn correction(own: u128, corrects: u128, before: Option<i64>, after: Option<i64>) -> Entry {
    let money = |amount: Option<i64>| amount.map(|amount| cost(Decimal::from(amount)));
    Entry::Correction(Box::new(Correction {
        id: id(own),
        corrects: id(corrects),
        started_at: at(0),
        tenant: reserve(corrects, None).tenant,
        made_at: at(9),
        reason: "a later price book".to_owned(),
        before: money(before),
        after: money(after),
        completion: None,
        completed: None,
    }))
}
