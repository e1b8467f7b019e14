use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;
const LIMITS: RoomLimits = RoomLimits { bytes_max: None, segment_bytes: MIB, serves: false };

fn own(bytes: u64) -> Usage {
    Usage { bytes, files: 10, reusable_bytes: 0 }
}

fn of_bytes(used: u64, available: u64) -> Volume {
    Volume { bytes: Some(Supply { used, available }), files: None }
}

fn of_files(used: u64, available: u64) -> Volume {
    Volume { bytes: None, files: Some(Supply { used, available }) }
}

/// Parts of a history, by what they take.
fn history(bytes: &[u64]) -> Vec<Removable> {
    let part = |(number, bytes): (usize, &u64)| Removable {
        kind: if number % 3 == 2 { HistoryKind::Corrections } else { HistoryKind::Segment },
        path: PathBuf::from(number.to_string()),
        bytes: *bytes,
        files: 1,
    };
    bytes.iter().enumerate().map(part).collect()
}

fn needs(bytes: Option<(u64, Filler)>, files: Option<(u64, Filler)>) -> Room {
    let need = |(amount, filler)| Need { amount, filler };
    Room { short_of_bytes: bytes.map(need), short_of_files: files.map(need), ..Room::default() }
}

#[test]
fn room_is_what_the_limit_or_the_volume_leaves_whichever_is_less() {
    let most = |bytes_max| RoomLimits { bytes_max, ..LIMITS };
    for (limit, volume, max, left) in [
        (None, Volume::default(), None, None),
        (Some(100), Volume::default(), Some(100), Some(60)),
        (None, of_bytes(900, 50), Some(90), Some(50)),
        (Some(100), of_bytes(900, 50), Some(90), Some(50)),
        (Some(100), of_bytes(900, 500), Some(100), Some(60)),
        (Some(30), of_bytes(900, 500), Some(30), Some(0)),
    ] {
        let limits = most(limit.map(|limit: u64| limit * MIB));
        let scale =
            |supply: Supply| Supply { used: supply.used * MIB, available: supply.available * MIB };
        let volume = Volume { bytes: volume.bytes.map(scale), files: None };
        let room = Room::of(&own(40 * MIB), &volume, &limits, false);
        let expected = (max.map(|it: u64| it * MIB), left.map(|it: u64| it * MIB));
        assert_eq!((room.bytes_max, room.bytes_left), expected, "{limit:?} {volume:?}");
        assert_eq!(room.files_left, None);
    }
}

#[test]
fn it_is_short_at_four_fifths_and_full_at_nineteen_twentieths() {
    let limits = RoomLimits { bytes_max: Some(1_000), segment_bytes: 10, serves: false };
    let room = |bytes, was_full| Room::of(&own(bytes), &Volume::default(), &limits, was_full);
    for (bytes, was_full, short, full) in [
        (0, false, None, false),
        (799, false, None, false),
        (800, false, Some(10), false),
        (900, false, Some(110), false),
        (949, false, Some(159), false),
        (950, false, Some(160), true),
        (949, true, Some(159), true),
        (930, true, Some(140), true),
        (929, true, Some(139), false),
        (5_000, false, Some(4_210), true),
    ] {
        let room = room(bytes, was_full);
        let short = short.map(|amount| Need { amount, filler: Filler::Own });
        assert_eq!((room.short_of_bytes, room.is_full), (short, full), "{bytes} {was_full}");
        assert_eq!(room.is_short(), short.is_some());
    }
    // What is long free needs no part of it for new requests.
    let large = RoomLimits { bytes_max: Some(1 << 40), segment_bytes: 64 * MIB, serves: false };
    let room = |left| Room::of(&own((1 << 40) - left), &Volume::default(), &large, false);
    let full = whole(FULL_BYTES_MAX);
    assert!(!room(full + 1).is_full && room(full).is_full);
    assert_eq!(room(full + 5).bytes_until_full, Some(5));
}

#[test]
fn free_pages_are_room_as_long_as_the_last_part_of_the_volume_is_free() {
    let limits = RoomLimits { bytes_max: Some(1_000), segment_bytes: 10, serves: false };
    let room = |bytes, reusable_bytes| {
        let usage = Usage { bytes, files: 1, reusable_bytes };
        Room::of(&usage, &Volume::default(), &limits, false)
    };
    assert!(room(960, 0).is_full && !room(960, 500).is_full && !room(960, 500).is_short());
    assert_eq!(room(960, 500).bytes_left, Some(540));
    // The journal cannot write to them.
    assert!(room(980, 500).is_short() && !room(980, 500).is_full);
    assert_eq!(room(980, 500).short_of_bytes.map(|need| need.amount), Some(10));
    assert!(room(990, 500).is_full);
    // Nobody has more of them than there is.
    assert_eq!(room(100, u64::MAX).bytes_left, Some(1_000));
}

#[test]
fn who_takes_less_than_half_of_what_is_used_has_not_filled_the_volume() {
    for (used, filler) in [(799, Filler::Own), (800, Filler::Own), (801, Filler::Others)] {
        let volume = of_bytes(used * MIB, 10 * MIB);
        let room = Room::of(&own(400 * MIB), &volume, &LIMITS, false);
        assert_eq!(room.short_of_bytes.map(|need| need.filler), Some(filler), "{used}");
        // Its own limit is nobody else's doing.
        let limits = RoomLimits { bytes_max: Some(405 * MIB), ..LIMITS };
        let room = Room::of(&own(400 * MIB), &volume, &limits, false);
        assert_eq!(room.short_of_bytes.map(|need| need.filler), Some(Filler::Own));
    }
}

#[test]
fn inodes_are_room_too_and_their_end_alone_refuses_nobody() {
    for (used, left, expected) in [
        (100, 16, None),
        (100, 15, Some((5, Filler::Others))),
        (100, 0, Some((20, Filler::Others))),
        (20, 0, Some((20, Filler::Own))),
    ] {
        let room = Room::of(&own(MIB), &of_files(used, left), &LIMITS, false);
        let expected = expected.map(|(amount, filler)| Need { amount, filler });
        assert_eq!((room.short_of_files, room.files_left), (expected, Some(left)));
        assert!(!room.is_full && room.short_of_bytes.is_none());
    }
}

#[test]
fn as_much_goes_as_is_needed_and_no_more_and_a_tenth_where_others_fill_the_volume() {
    use Filler::{Others, Own};
    let ten = history(&[10; 10]);
    for (bytes, files, allowance, expected) in [
        (None, None, 1_000, (0, 0)),
        (Some((1, Own)), None, 0, (1, 0)),
        (Some((10, Own)), None, 0, (1, 0)),
        (Some((11, Own)), None, 0, (2, 0)),
        (Some((1_000, Own)), None, 0, (10, 0)),
        (Some((1_000, Others)), None, 9, (0, 0)),
        (Some((1_000, Others)), None, 10, (1, 10)),
        (Some((1_000, Others)), None, 35, (3, 30)),
        (Some((15, Others)), None, 100, (2, 20)),
        (None, Some((3, Own)), 0, (3, 0)),
        (None, Some((3, Others)), 20, (2, 20)),
        // What goes for the one is there for the other.
        (Some((20, Own)), Some((2, Others)), 0, (2, 0)),
        (Some((20, Own)), Some((4, Others)), 10, (3, 10)),
        (Some((40, Others)), Some((2, Own)), 10, (3, 10)),
    ] {
        let plan = plan(&needs(bytes, files), &ten, allowance);
        let found = (plan.count, plan.bytes_for_others);
        assert_eq!(found, expected, "{bytes:?} {files:?} {allowance}");
        assert_eq!(plan.bytes, 10 * plan.count as u64);
    }
    assert_eq!(plan(&needs(Some((5, Own)), None), &[], 5), Plan::default());
}

#[test]
fn a_day_grants_a_tenth_and_what_it_leaves_over_until_it_is_enough_for_one_file() {
    const DAY: u64 = DAY_SECONDS;
    let many = history(&[10; 50]);
    let mut allowance = Allowance::default();
    allowance.pass(5 * DAY);
    assert_eq!(allowance.grant(&many), 50);
    allowance.spend(40);
    assert_eq!(allowance.grant(&many), 10);
    allowance.pass(DAY - 1);
    assert_eq!(allowance.grant(&many), 10, "it is the same day");
    allowance.pass(1);
    assert_eq!(allowance.grant(&many), 50, "no more than a tenth");

    // Of four files, one goes in three days.
    let few = history(&[100; 4]);
    let mut allowance = Allowance::default();
    let mut days = Vec::new();
    for _ in 0..4 {
        days.push(allowance.grant(&few));
        allowance.pass(DAY);
    }
    assert_eq!(days, [40, 80, 100, 100]);
    allowance.spend(100);
    assert_eq!((allowance.grant(&few), allowance.grant(&[])), (40, 40));
}

proptest! {
    #[test]
    fn no_plan_takes_more_than_it_needs_or_than_it_may(
        sizes in prop::collection::vec(0..100_u64, 0..40),
        bytes in prop::option::of((0..2_000_u64, any::<bool>())),
        files in prop::option::of((0..50_u64, any::<bool>())),
        allowance in 0..2_000_u64,
    ) {
        let filler = |own| if own { Filler::Own } else { Filler::Others };
        let with = |(amount, own)| (amount, filler(own));
        let history = history(&sizes);
        let room = needs(bytes.map(with), files.map(with));
        let plan = plan(&room, &history, allowance);
        prop_assert!(plan.bytes_for_others <= allowance);
        prop_assert_eq!(plan.bytes, sizes[..plan.count].iter().sum::<u64>());
        // Without the last one, something would still be lacking.
        if let Some(before) = plan.count.checked_sub(1) {
            let freed = sizes[..before].iter().sum::<u64>();
            let lacks = bytes.is_some_and(|(amount, _)| freed < amount)
                || files.is_some_and(|(amount, _)| (before as u64) < amount);
            prop_assert!(lacks);
        }
        // What we fill ourselves is freed whatever the allowance says.
        if let Some((amount, true)) = bytes && plan.count < history.len() {
            prop_assert!(plan.bytes >= amount);
        }
    }
}
