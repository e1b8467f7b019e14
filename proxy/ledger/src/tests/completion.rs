//! Requests whose answers go on after them are completed once.

use super::*;

/// A record whose answer goes on.
fn pending_record(number: u128) -> Record {
    let mut record = gateway_died_record(&reserve(number, None), None, at(5), "g");
    record.response_id = Some(format!("resp_{number}"));
    record.usage = RecordUsage::counted(Some(9), None, &[Flag::Missing]);
    record.usage.flags.push(Flag::Pending);
    record
}

pub(super) fn pending(number: u128) -> PendingRequest {
    PendingRequest::of(&pending_record(number)).unwrap()
}

/// What completes it.
pub(super) fn completing(number: u128, amount: Option<i64>) -> Entry {
    let request = pending(number);
    Entry::Correction(Box::new(Correction {
        id: request.completion_id(),
        corrects: request.id,
        started_at: request.started_at,
        tenant: request.tenant,
        made_at: at(20),
        reason: "usage of the answer in the background".to_owned(),
        before: None,
        after: amount.map(|amount| cost(Decimal::from(amount))),
        completion: Some(Box::new(Completion {
            response_id: request.response_id,
            response_model: Some("m-1".to_owned()),
            service_tier: None,
            finish_reasons: vec!["completed".to_owned()],
            error: None,
            requests: None,
            models: Vec::new(),
            usage: RecordUsage::counted(Some(12), Some(5), &[]),
            reported_cost: None,
        })),
        completed: None,
    }))
}

fn posted(number: u128) -> [Entry; 2] {
    let record = Entry::Post(Box::new(pending_record(number)));
    [Entry::Reserve(Box::new(reserve(number, None))), record]
}

fn totals(entries: &[Entry]) -> RunningTotals {
    let mut totals = RunningTotals::default();
    for (seq, entry) in (1..).zip(entries) {
        totals.add(seq, &Change::of(entry));
    }
    totals
}

#[test]
fn a_request_is_pending_until_it_is_completed_and_belongs_to_its_tenant() {
    let mut totals = totals(&posted(1));
    let find = |totals: &RunningTotals, by: &str, upstream: &str, id: &str| {
        totals.pending().find(&tenant(by), upstream, id).cloned()
    };
    assert_eq!(find(&totals, "acme", "local", "resp_1"), Some(pending(1)));
    for (by, upstream, id) in
        [("beta", "local", "resp_1"), ("acme", "cloud", "resp_1"), ("acme", "local", "resp_2")]
    {
        assert_eq!(find(&totals, by, upstream, id), None, "{by} {upstream} {id}");
    }
    assert!(totals.add(3, &Change::of(&completing(1, Some(2)))));
    assert_eq!(find(&totals, "acme", "local", "resp_1"), None);
    let after = totals.checkpoint(at(30));
    assert_eq!((after.unknown_cost, after.costs["USD"]), (0, Decimal::TWO));
    assert!(!totals.add(4, &Change::of(&completing(1, Some(7)))), "it is completed");
    assert_eq!(totals.checkpoint(at(30)), after);
}

#[test]
fn what_is_not_pending_or_has_no_id_is_not_kept() {
    let mut answered = pending_record(1);
    answered.usage.flags.retain(|flag| *flag != Flag::Pending);
    let mut nameless = pending_record(2);
    nameless.response_id = None;
    for record in [answered, nameless] {
        let totals = totals(&[Entry::Post(Box::new(record.clone()))]);
        assert!(totals.pending().is_empty(), "{record:?}");
    }
}

#[test]
fn the_id_of_a_completion_follows_from_that_of_its_request_and_is_no_other_id() {
    let id = |text: &str| text.parse::<RequestId>().unwrap();
    let of = |id: RequestId| PendingRequest { id, ..pending(1) }.completion_id();
    let request = id("0193e9a0-0000-7000-8000-000000000001");
    assert_eq!(of(request), id("0193e9a0-0000-8000-8000-000000000001"));
    assert_eq!(of(request), of(request));
    assert_ne!(of(request), of(id("0193e9a0-0000-7000-8000-000000000002")));
}

#[test]
fn an_id_that_an_engine_gives_again_belongs_to_the_later_request() {
    let mut again = pending_record(2);
    again.response_id = Some("resp_1".to_owned());
    let [_, first] = posted(1);
    let totals = totals(&[first, Entry::Post(Box::new(again))]);
    let found = totals.pending().find(&tenant("acme"), "local", "resp_1");
    assert_eq!(found.map(|request| request.id), Some(id(2)));
    assert_eq!((totals.pending().len(), totals.pending().dropped()), (1, 1));
}

#[test]
fn the_oldest_goes_where_there_are_too_many_and_where_it_is_too_old() {
    let mut totals = RunningTotals::default();
    let most = PENDING_MAX as u128;
    for number in 0..most + 3 {
        totals.add(1, &Change::of(&Entry::Post(Box::new(pending_record(number)))));
    }
    assert_eq!((totals.pending().len(), totals.pending().dropped()), (PENDING_MAX, 3));
    let kept = totals.pending().iter().map(|request| request.id);
    assert!(kept.eq((3..most + 3).map(id)));
    let checkpoint = totals.checkpoint(at(0));
    let mut payload = Vec::new();
    let entry = Entry::Checkpoint(Box::new(checkpoint.clone()));
    assert!(EncodedEntry::new(&entry, &mut payload).is_ok(), "it is too long for an entry");
    let late = checkpoint.at + PENDING_AGE_MAX + Duration::from_secs(1);
    assert_eq!(totals.checkpoint(late).pending.len(), PENDING_MAX, "a checkpoint judges no age");
    totals.drop_old_pending(late);
    assert!(totals.checkpoint(late).pending.is_empty());
}

#[test]
fn long_names_make_fewer_and_a_checkpoint_still_fits_an_entry() {
    let mut totals = RunningTotals::default();
    for number in 0..PENDING_MAX as u128 {
        let mut record = pending_record(number);
        record.request_model = Some("\u{1}".repeat(512));
        totals.add(1, &Change::of(&Entry::Post(Box::new(record))));
    }
    assert!((1..PENDING_MAX).contains(&totals.pending().len()));
    let entry = Entry::Checkpoint(Box::new(totals.checkpoint(at(0))));
    assert!(EncodedEntry::new(&entry, &mut Vec::new()).is_ok());
    let mut huge = pending_record(9);
    huge.request_model = Some("m".repeat(PENDING_BYTES_MAX));
    let before = totals.pending().clone();
    totals.add(1, &Change::of(&Entry::Post(Box::new(huge))));
    assert_eq!(totals.pending().len(), before.len());
}

#[test]
fn a_gateway_that_dies_in_a_background_stream_leaves_it_pending() {
    let Entry::Progress(mut progress) = progress(1, 0) else { panic!() };
    progress.response_id = Some("resp_1".to_owned());
    progress.usage.output_tokens = None;
    progress.usage.flags.push(Flag::Pending);
    let record = gateway_died_record(&reserve(1, None), Some(&progress), at(9), "g");
    assert_eq!(PendingRequest::of(&record).map(|it| it.response_id), Some("resp_1".to_owned()));
}

#[test]
fn a_record_that_is_completed_has_the_usage_and_the_cost_of_its_correction() {
    let Entry::Correction(correction) = completing(1, Some(2)) else { panic!() };
    let record = correction.apply_to(pending_record(1));
    assert!(!record.is_pending());
    assert_eq!((record.usage.input_tokens, record.usage.output_tokens), (Some(12), Some(5)));
    assert_eq!(record.response_model.as_deref(), Some("m-1"));
    assert_eq!(record.cost, Some(cost(Decimal::TWO)));
}

/// Entries of some pending requests, and their completions in any order, some of them more than
/// once.
fn completed_requests() -> impl Strategy<Value = (Vec<Entry>, usize)> {
    (1..12usize, vec((any::<Index>(), 1..9i64), 0..30)).prop_map(|(requests, completions)| {
        let mut entries: Vec<_> = (0..requests as u128).flat_map(posted).collect();
        for (at, amount) in &completions {
            let number = at.index(requests) as u128;
            let is_post =
                |entry: &Entry| matches!(entry, Entry::Post(post) if post.id == id(number));
            let behind = entries.iter().position(is_post).unwrap() + 1;
            let place = behind + at.index(entries.len() - behind + 1);
            entries.insert(place, completing(number, Some(*amount)));
        }
        (entries, requests)
    })
}

proptest! {
    #[test]
    fn completions_in_any_order_and_number_make_one_bill((entries, requests) in completed_requests()) {
        let (mut totals, mut replay) = (RunningTotals::default(), Replay::default());
        let mut first = BTreeMap::new();
        for (seq, entry) in (1..).zip(&entries) {
            let counts = match entry {
                Entry::Correction(correction) => {
                    let amount = correction.after.as_ref().map(|cost| cost.amount);
                    first.insert(correction.corrects, amount).is_none_or(|before| {
                        first.insert(correction.corrects, before);
                        false
                    })
                }
                _ => true,
            };
            prop_assert_eq!(totals.add(seq, &Change::of(entry)), counts);
            prop_assert_eq!(replay.apply(seq, entry.clone()), Ok(()));
        }
        let checkpoint = totals.checkpoint(at(30));
        let owed: Decimal = first.values().flatten().sum();
        prop_assert_eq!(checkpoint.costs.get("USD").copied().unwrap_or_default(), owed);
        let left = requests - first.len();
        prop_assert_eq!(checkpoint.unknown_cost, left as u64);
        prop_assert_eq!(checkpoint.pending.len(), left);
        let balance = &replay.balances()[&tenant("acme")];
        prop_assert_eq!(balance.posted.get("USD").copied().unwrap_or_default(), owed);
        prop_assert_eq!(balance.unknown_cost, left as u64);
    }

    #[test]
    fn a_start_from_any_checkpoint_knows_what_is_pending(
        (entries, _) in completed_requests(),
        cut: Index,
    ) {
        let cut = cut.index(entries.len() + 1);
        let whole = totals(&entries);
        let checkpoint = totals(&entries[..cut]).checkpoint(at(0));
        let json = serde_json::to_vec(&checkpoint).unwrap();
        let checkpoint: Checkpoint = serde_json::from_slice(&json).unwrap();
        let mut part = RunningTotals::default();
        part.restore(&checkpoint);
        for (seq, entry) in (1..).zip(&entries).skip(cut) {
            part.add(seq, &Change::of(entry));
        }
        prop_assert!(part.pending().iter().eq(whole.pending().iter()));
    }

    #[test]
    fn what_is_read_of_a_pending_post_and_its_completion_is_what_they_change(
        (entries, _) in completed_requests(),
    ) {
        let (bytes, _, _) = segment(&entries, Position::START);
        for (framed, entry) in read_whole(&bytes).0.iter().zip(&entries) {
            prop_assert_eq!(framed.change().unwrap().1, Change::of(entry));
        }
    }
}
