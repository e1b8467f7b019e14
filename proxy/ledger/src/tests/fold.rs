//! The sums and contradictions of entries.

use super::*;

#[test]
fn entries_that_cannot_all_be_true_are_told() {
    let mut replay = Replay::default();
    let mut seq = 0;
    let mut apply = |entry| {
        seq += 1;
        replay.apply(seq, entry)
    };
    assert_eq!(apply(void(1)), Err(Contradiction::NotReserved { seq: 1, id: id(1) }));
    assert_eq!(apply(Entry::Reserve(Box::new(reserve(1, None)))), Ok(()));
    assert_eq!(apply(Entry::Reserve(Box::new(reserve(1, None)))), Ok(()));
    let mut stranger = gateway_died_record(&reserve(1, None), None, at(0), "g");
    stranger.tenant = tenant("zeta");
    let stranger = apply(Entry::Post(Box::new(stranger)));
    assert_eq!(stranger, Err(Contradiction::TenantDiffers { seq: 4, id: id(1) }));
    assert_eq!(apply(void(1)), Ok(()));
    assert_eq!(apply(post(1, None)), Err(Contradiction::SettledTwice { seq: 6, id: id(1) }));
    let gap = replay.apply(9, void(1));
    assert_eq!(gap, Err(Contradiction::Gap { last: 6, found: 9 }));
    assert_eq!((replay.voids(), replay.posts(), replay.repeats()), (1, 0, 1));
    assert_eq!(replay.settlement(id(1)), Some(Settlement::Void));
}

#[test]
fn a_sum_that_is_too_large_is_an_error_and_changes_nothing() {
    let mut replay = Replay::default();
    replay.apply(1, Entry::Reserve(Box::new(reserve(1, Some(Decimal::MAX))))).unwrap();
    let overflow = replay.apply(2, Entry::Reserve(Box::new(reserve(2, Some(Decimal::ONE)))));
    assert!(matches!(overflow, Err(Contradiction::Overflow { seq: 2, .. })));
    assert_eq!(replay.balances()[&tenant("acme")].reserved, Decimal::MAX);
}

#[test]
fn a_request_that_was_open_when_we_died_costs_unknown_not_zero() {
    let record = gateway_died_record(&reserve(1, Some(Decimal::ONE)), None, at(1_500_000), "pod/0");
    assert_eq!(
        (record.end, record.error_type.as_deref()),
        (End::GatewayDied, Some("gateway_died"))
    );
    assert_eq!((record.cost, record.status, record.usage), (None, None, RecordUsage::default()));
    assert_eq!(record.timing, RecordTiming { duration: 1.5, ..RecordTiming::default() });
    let backwards = gateway_died_record(&reserve(1, None), None, at(-1), "pod/0");
    assert_eq!((backwards.ended_at, backwards.timing.duration), (at(0), 0.0));
}

#[test]
fn what_a_request_used_so_far_is_what_is_known_if_we_die() {
    let mut replay = Replay::default();
    replay.apply(1, Entry::Reserve(Box::new(reserve(1, None)))).unwrap();
    replay.apply(2, progress(1, 5)).unwrap();
    replay.apply(3, progress(1, 40)).unwrap();
    replay.apply(4, progress(2, 9)).unwrap();
    let [open] = replay.open().try_into().unwrap();
    let record = gateway_died_record(&open.reserve, open.progress.as_ref(), at(5), "g");
    assert_eq!((record.usage.input_tokens, record.usage.output_tokens), (Some(7), Some(40)));
    assert_eq!(record.usage.source, Source::Counted);
    let unknown = gateway_died_record(&open.reserve, None, at(5), "g");
    assert_eq!((unknown.usage.source, unknown.usage.output_tokens), (Source::Unknown, None));
}

#[test]
fn what_the_engine_has_reported_so_far_stays_as_reported_if_we_die() {
    let usage = RecordUsage {
        source: Source::Reported,
        sources: [(Member::InputTokens, Source::Reported)].into(),
        input_tokens: Some(100),
        cache_read_input_tokens: Some(60),
        output_tokens: Some(3),
        flagged: [(Member::OutputTokens, vec![Flag::Estimated])].into(),
        flags: vec![Flag::Estimated],
        ..RecordUsage::default()
    };
    let progress = Progress {
        id: id(1),
        at: at(3),
        response_model: Some("m-2026".to_owned()),
        response_id: None,
        service_tier: Some("flex".to_owned()),
        usage: usage.clone(),
    };
    let framed = framed(&Entry::Progress(Box::new(progress)));
    let Entry::Progress(progress) = framed.entry().unwrap() else { panic!("{framed:?}") };
    let reserve = Reserve { service_tier: Some("auto".to_owned()), ..reserve(1, None) };
    let record = gateway_died_record(&reserve, Some(&progress), at(5), "g");
    assert_eq!(record.usage, usage);
    let answered = (record.response_model.as_deref(), record.service_tier.as_deref());
    assert_eq!(answered, (Some("m-2026"), Some("flex")));
}

#[test]
fn a_request_of_which_nothing_more_was_said_owes_its_prompt_by_its_length() {
    let reserve = Reserve { input_tokens: Some(25), output_tokens: Some(0), ..reserve(1, None) };
    let framed = framed(&Entry::Reserve(Box::new(reserve)));
    let Entry::Reserve(reserve) = framed.entry().unwrap() else { panic!("{framed:?}") };
    let usage = gateway_died_record(&reserve, Some(&reserve.admitted()), at(5), "g").usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(25), Some(0)));
    assert_eq!(
        (usage.source, &usage.flags[..]),
        (Source::Counted, &[Flag::Estimated, Flag::Missing, Flag::MaybeUnsent][..])
    );
    let members = [Member::InputTokens, Member::OutputTokens];
    let flags = &usage.flags[..2];
    assert_eq!(usage.flagged, members.map(|member| (member, flags.to_vec())).into());
    let embedding = Reserve { output_tokens: None, ..Reserve::clone(&reserve) }.admitted().usage;
    assert_eq!(embedding.sources, [(Member::InputTokens, Source::Counted)].into());
    let opaque = Reserve { input_tokens: None, output_tokens: None, ..*reserve };
    let nothing = RecordUsage { flags: vec![Flag::MaybeUnsent], ..RecordUsage::default() };
    assert_eq!(opaque.admitted().usage, nothing);
}

fn framed(entry: &Entry) -> FramedEntry {
    let (bytes, _, _) = segment(std::slice::from_ref(entry), Position::START);
    let mut reader = Reader::new(None, 1);
    reader.feed(&bytes);
    reader.next_entry().unwrap().unwrap()
}

#[test]
fn a_correction_changes_the_balance_once_and_no_post() {
    let mut replay = Replay::default();
    let tenant = reserve(1, None).tenant;
    let mut record = gateway_died_record(&reserve(1, None), None, at(5), "g");
    record.cost = Some(cost(Decimal::from(10)));
    replay.apply(1, Entry::Reserve(Box::new(reserve(1, None)))).unwrap();
    let early = replay.apply(2, correction(50, 1, Some(10), Some(8)));
    assert!(matches!(early, Err(Contradiction::NotPosted { .. })));
    replay.apply(3, Entry::Post(Box::new(record))).unwrap();
    replay.apply(4, correction(50, 1, Some(10), Some(8))).unwrap();
    replay.apply(5, correction(50, 1, Some(10), Some(8))).unwrap();
    replay.apply(6, correction(51, 1, Some(8), None)).unwrap();
    replay.apply(7, correction(52, 1, None, Some(9))).unwrap();
    let balance = &replay.balances()[&tenant];
    assert_eq!(balance.posted["USD"], Decimal::from(9));
    assert_eq!((balance.unknown_cost, replay.posts(), replay.corrections()), (0, 1, 3));
    assert_eq!(replay.repeats(), 1);
}

#[test]
fn a_clock_that_stepped_back_before_we_died_makes_no_negative_duration() {
    let reserve = Reserve { started_at: at(3_600_000_000), ..reserve(1, None) };
    let record = gateway_died_record(&reserve, None, at(0), "pod/0");
    assert_eq!((record.ended_at, record.timing.duration), (reserve.started_at, 0.0));
}

#[test]
fn entries_are_in_the_order_of_their_numbers_whatever_their_times_say() {
    let late = Reserve { started_at: at(3_600_000_000), ..reserve(1, None) };
    let mut replay = Replay::default();
    let ended = Void { id: id(1), reason: VoidReason::NotSent, ended_at: at(0) };
    for (seq, entry) in (1..).zip([Entry::Reserve(Box::new(late)), Entry::Void(ended)]) {
        replay.apply(seq, entry).unwrap();
    }
    assert!(replay.open().is_empty());
}

#[test]
fn a_post_whose_reservation_is_among_entries_that_are_gone_counts() {
    let mut replay = Replay::default();
    assert_eq!(replay.apply(7, post(1, Some(Decimal::TWO))), Ok(()));
    assert_eq!(replay.apply(8, post(1, Some(Decimal::TWO))), Ok(()));
    assert_eq!((replay.posts(), replay.repeats()), (1, 1));
}

#[test]
fn a_count_of_tokens_that_the_gateway_died_in_has_used_nothing() {
    let count = Reserve { operation: COUNT_TOKENS.to_owned(), ..reserve(1, Some(Decimal::ZERO)) };
    for progress in [None, Some(count.admitted())] {
        let record = gateway_died_record(&count, progress.as_ref(), at(5), "g");
        assert_eq!((record.usage.source, record.end), (Source::None, End::GatewayDied));
        assert!(record.used_nothing());
    }
}
