//! The running totals agree with the fold of all entries.

use super::*;

/// Requests that are reserved and then settled once, in some order.
fn settled_requests() -> impl Strategy<Value = Vec<Entry>> {
    let amount = || proptest::option::of((0..1_000_000i64, 0..9u32)).prop_map(decimal);
    vec((any::<Index>(), 0..5u8, amount()), 1..40).prop_map(|steps| {
        let (mut entries, mut open) = (Vec::new(), Vec::new());
        for (number, (at, kind, amount)) in (0u128..).zip(steps) {
            if kind < 2 || open.is_empty() {
                open.push(number);
                entries.push(Entry::Reserve(Box::new(reserve(number, None))));
            } else {
                let settled = open.remove(at.index(open.len()));
                entries.push(match kind {
                    2 => post(settled, amount),
                    3 => post_in_part(settled, amount),
                    _ => void(settled),
                });
            }
        }
        entries
    })
}

fn owed(replay: &Replay) -> (Decimal, u64) {
    let balances = replay.balances().values();
    let posted = balances.clone().flat_map(|balance| balance.posted.values());
    (posted.sum(), balances.map(|balance| balance.unknown_cost).sum())
}

proptest! {
    #[test]
    fn a_checkpoint_says_what_all_entries_before_it_add_up_to(entries in settled_requests()) {
        let (mut tally, mut replay) = (RunningTotals::default(), Replay::default());
        for (seq, entry) in (1..).zip(&entries) {
            prop_assert!(tally.add(seq, &Change::of(entry)));
            replay.apply(seq, entry.clone()).unwrap();
            let checkpoint = tally.checkpoint(at(0));
            prop_assert_eq!(checkpoint.posts, replay.posts());
            prop_assert_eq!(checkpoint.voids, replay.voids());
            let owed = owed(&replay);
            prop_assert_eq!((checkpoint.costs.values().sum(), checkpoint.unknown_cost), owed);
            prop_assert_eq!(checkpoint.oldest_open.is_some(), !replay.open().is_empty());
        }
    }

    #[test]
    fn from_a_checkpoint_on_all_adds_up_to_the_same(entries in settled_requests(), cut: Index) {
        let mut whole = RunningTotals::default();
        let cut = cut.index(entries.len()) + 1;
        let numbered: Vec<_> = (1..).zip(&entries).collect();
        for (seq, entry) in &numbered[..cut] {
            whole.add(*seq, &Change::of(entry));
        }
        let checkpoint = whole.checkpoint(at(0));
        let from = checkpoint.oldest_open.unwrap_or(cut as u64 + 1);
        // Entries before the checkpoint matter only for the open reservations.
        let mut part = RunningTotals::default();
        for (seq, entry) in numbered.iter().filter(|(seq, _)| *seq >= from) {
            if *seq == cut as u64 + 1 {
                part.restore(&checkpoint);
            }
            part.add(*seq, &Change::of(entry));
        }
        if from > cut as u64 || numbered.len() == cut {
            part.restore(&checkpoint);
            numbered[cut..].iter().for_each(|(seq, entry)| { part.add(*seq, &Change::of(entry)); });
        }
        numbered[cut..].iter().for_each(|(seq, entry)| { whole.add(*seq, &Change::of(entry)); });
        prop_assert_eq!(part, whole);
    }

    #[test]
    fn what_a_start_reads_of_an_entry_is_what_it_changes(entries in entries()) {
        let (bytes, _, _) = segment(&entries, Position::START);
        let (framed, end) = read_whole(&bytes);
        prop_assert_eq!(end, Ok(()));
        for (framed, entry) in framed.iter().zip(&entries) {
            prop_assert_eq!(framed.change().unwrap().1, Change::of(entry));
        }
    }
}

#[test]
fn a_correction_takes_the_place_of_a_cost() {
    let mut tally = RunningTotals::default();
    let correction = |before: Option<i64>, after: Option<i64>| {
        let cost = |amount: Option<i64>| amount.map(|amount| cost(Decimal::from(amount)));
        Entry::Correction(Box::new(Correction {
            id: id(9),
            corrects: id(1),
            started_at: at(0),
            tenant: tenant("acme"),
            made_at: at(1),
            reason: "another price".to_owned(),
            before: cost(before),
            after: cost(after),
            completion: None,
            completed: None,
        }))
    };
    tally.add(1, &Change::of(&Entry::Reserve(Box::new(reserve(1, None)))));
    tally.add(2, &Change::of(&post(1, None)));
    assert_eq!(tally.checkpoint(at(0)).unknown_cost, 1);
    for (seq, (before, after), sum) in [(3, (None, Some(5)), 5), (4, (Some(5), Some(3)), 3)] {
        let entry = correction(before, after);
        tally.add(seq, &Change::of(&entry));
        let checkpoint = tally.checkpoint(at(0));
        assert_eq!((checkpoint.costs["USD"], checkpoint.unknown_cost), (Decimal::from(sum), 0));
        assert_eq!(checkpoint.corrections, seq - 2);
    }
}

#[test]
fn the_known_part_of_a_cost_is_in_the_sums_until_a_correction_makes_it_whole() {
    let part = Some(Decimal::from(2));
    let mut tally = RunningTotals::default();
    let mut replay = Replay::default();
    let entries = [
        Entry::Reserve(Box::new(reserve(1, None))),
        post_in_part(1, part),
        correct(RecordCost { at_least: true, ..cost(Decimal::TWO) }, cost(Decimal::from(5))),
    ];
    for (seq, (entry, owed)) in (1..).zip(entries.into_iter().zip([(0, 0), (2, 1), (5, 0)])) {
        tally.add(seq, &Change::of(&entry));
        replay.apply(seq, entry).unwrap();
        let checkpoint = tally.checkpoint(at(0));
        let sum = checkpoint.costs.get("USD").copied().unwrap_or_default();
        assert_eq!((sum, checkpoint.unknown_cost), (Decimal::from(owed.0), owed.1));
        assert_eq!(self::owed(&replay), (sum, checkpoint.unknown_cost));
    }
}

fn correct(before: RecordCost, after: RecordCost) -> Entry {
    Entry::Correction(Box::new(Correction {
        id: id(9),
        corrects: id(1),
        started_at: at(0),
        tenant: reserve(1, None).tenant,
        made_at: at(1),
        reason: "another price".to_owned(),
        before: Some(before),
        after: Some(after),
        completed: None,
        completion: None,
    }))
}

#[test]
fn a_sum_that_is_too_large_stays_at_the_bound() {
    let mut tally = RunningTotals::default();
    for number in 0..2 {
        tally.add(1, &Change::of(&post(number, Some(Decimal::MAX))));
    }
    assert_eq!(tally.checkpoint(at(0)).costs["USD"], Decimal::MAX);
}
