//! What the room of a data directory is enough for, if all goes that may go. This file reads no clock and
//! no disk.

use super::room::{Filler, Room};

/// The details of days that have left the tables of the store.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Details {
    /// Bytes of all of them.
    pub bytes: u64,
    /// Days since the first instant of the oldest of them.
    pub days: f64,
    /// Bytes of a day, of the newest ones.
    pub bytes_a_day: f64,
}

/// The history that may go.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct History {
    /// Bytes of segments. `None` until somebody has looked.
    pub(super) segments_bytes: Option<u64>,
    /// `None` until somebody has looked, and where a database keeps them.
    pub(super) details: Option<Details>,
}

impl History {
    /// Bytes that may go.
    pub(super) fn bytes(&self) -> u64 {
        let details = self.details.map_or(0, |details| details.bytes);
        self.segments_bytes.unwrap_or(0).saturating_add(details)
    }

    /// Bytes until new requests find no room, if all goes that may go: of what `filler` has filled the
    /// volume with, no more than `allowance`. `None` where nothing limits them.
    pub(super) fn room_left(&self, room: &Room, filler: Filler, allowance: u64) -> Option<u64> {
        let may_go = match filler {
            Filler::Own => self.bytes(),
            Filler::Others => self.bytes().min(allowance),
        };
        Some(room.bytes_until_full?.saturating_add(may_go))
    }

    /// Days of details that the room holds: those that are there, and as many as find room without any
    /// of them going. `None` while nobody knows what a day takes, and where nothing limits them.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn days_held(&self, room: &Room) -> Option<f64> {
        let Details { days, bytes_a_day, .. } = self.details?;
        let more = room.bytes_until_short()?.saturating_add(self.segments_bytes.unwrap_or(0));
        match more {
            0 => Some(days),
            _ => (bytes_a_day > 0.0).then(|| days + more as f64 / bytes_a_day),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::room::Need;
    use super::*;

    fn room(left: u64) -> Room {
        Room {
            bytes_max: Some(1_000),
            bytes_left: Some(left),
            bytes_until_full: Some(left.saturating_sub(50)),
            ..Room::default()
        }
    }

    const HISTORY: History = History {
        segments_bytes: Some(30),
        details: Some(Details { bytes: 200, days: 20.0, bytes_a_day: 10.0 }),
    };

    #[test]
    fn what_may_go_is_room_but_for_others_only_as_much_as_may_go_today() {
        let left = |filler, allowance| HISTORY.room_left(&room(150), filler, allowance);
        assert_eq!(left(Filler::Own, 0), Some(330));
        assert_eq!(left(Filler::Others, 25), Some(125));
        assert_eq!(left(Filler::Others, 999), Some(330));
        assert_eq!(History::default().room_left(&room(40), Filler::Own, 0), Some(0));
        assert_eq!(HISTORY.room_left(&Room::default(), Filler::Own, 0), None);
    }

    #[test]
    fn the_room_holds_the_days_that_are_there_and_those_that_find_room() {
        // A fifth of the room is kept free.
        assert_eq!(HISTORY.days_held(&room(250)), Some(28.0));
        let need = Some(Need { amount: 1, filler: Filler::Own });
        let short = Room { short_of_bytes: need, ..room(250) };
        let none_may_go = History { segments_bytes: None, ..HISTORY };
        assert_eq!(none_may_go.days_held(&short), Some(20.0));
        let none_left = History { segments_bytes: None, details: Some(Details::default()) };
        assert_eq!(none_left.days_held(&short), Some(0.0), "all have gone");
        assert_eq!(none_left.days_held(&room(250)), None, "nobody knows what a day takes");
        assert_eq!(HISTORY.days_held(&Room::default()), None, "nothing limits them");
        assert_eq!(History::default().days_held(&room(250)), None, "nobody knows what a day takes");
    }
}
