//! What names led to, so that not every request tries every form of a name again.
//!
//! An outcome depends on the book, the day, the provider and the name, and on nothing else: all four
//! are its key. So a new book and a new day need no outcome to be taken away. Old ones are replaced.
//! Each thread has outcomes of its own, and so none waits for another.

use std::array;
use std::cell::RefCell;

use jiff::civil::Date;

use super::found::{Found, NoRow};
use crate::book::PriceBook;
use crate::rule::PriceMatch;

/// Sets of outcomes of one thread. A key has its place in one of them.
const SETS: usize = 128;

/// Most outcomes in a set. The one that came first leaves.
const SET_OUTCOMES_MAX: usize = 4;

/// Longest name and provider that are remembered together, in bytes. Clients choose names.
const KEY_BYTES_MAX: usize = 256;

/// What an outcome depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key<'a> {
    /// [`PriceBook::number`].
    pub(super) book: u64,
    pub(super) day: Date,
    pub(super) provider: Option<&'a str>,
    pub(super) name: &'a str,
}

thread_local! {
    static OUTCOMES: RefCell<Outcomes> = RefCell::default();
}

/// What `look` returns for a key, or has returned for it before on this thread.
pub(super) fn remembered<'b, 'q>(
    book: &'b PriceBook,
    key: &Key<'q>,
    look: impl FnOnce() -> Result<Found<'b>, NoRow<'q>>,
) -> Result<Found<'b>, NoRow<'q>> {
    let known = OUTCOMES.with_borrow(|outcomes| {
        Some(match outcomes.find(key)? {
            Outcome::Found { position, how, region } => {
                Ok(Found { row: book.row(*position)?, how: *how, region: region.clone() })
            }
            Outcome::Missing(missing) => Err(missing.with_name(key.name)),
        })
    });
    known.unwrap_or_else(|| {
        let outcome = look();
        let kept =
            match &outcome {
                Ok(Found { row, how, region }) => book
                    .position(row)
                    .map(|position| Outcome::Found { position, how: *how, region: region.clone() }),
                Err(missing) => Some(Outcome::Missing(missing.with_name(""))),
            };
        if let Some(kept) = kept {
            OUTCOMES.with_borrow_mut(|outcomes| outcomes.keep(key, kept));
        }
        outcome
    })
}

/// What one key led to.
#[derive(Debug)]
enum Outcome {
    Found {
        /// Of the row in the book.
        position: usize,
        how: PriceMatch,
        region: Option<String>,
    },
    /// Of no name: the key has it.
    Missing(NoRow<'static>),
}

#[derive(Debug)]
struct Kept {
    book: u64,
    day: Date,
    provider: Option<Box<str>>,
    name: Box<str>,
    outcome: Outcome,
}

impl Kept {
    fn key(&self) -> Key<'_> {
        Key { book: self.book, day: self.day, provider: self.provider.as_deref(), name: &self.name }
    }
}

/// The outcomes of one thread. The last one of a set came first.
#[derive(Debug, Default)]
struct Outcomes {
    /// None until the first outcome.
    sets: Vec<[Option<Box<Kept>>; SET_OUTCOMES_MAX]>,
}

impl Outcomes {
    fn find(&self, key: &Key<'_>) -> Option<&Outcome> {
        let set = self.sets.get(place(key))?;
        let kept = set.iter().flatten().find(|kept| kept.key() == *key)?;
        Some(&kept.outcome)
    }

    fn keep(&mut self, key: &Key<'_>, outcome: Outcome) {
        if key.provider.map_or(0, str::len) + key.name.len() > KEY_BYTES_MAX {
            return;
        }
        if self.sets.is_empty() {
            self.sets.resize_with(SETS, || array::from_fn(|_| None));
        }
        let Some(set) = self.sets.get_mut(place(key)) else { return };
        let Key { book, day, provider, name } = *key;
        set.rotate_right(1);
        if let Some(first) = set.first_mut() {
            let (provider, name) = (provider.map(Box::from), name.into());
            *first = Some(Box::new(Kept { book, day, provider, name, outcome }));
        }
    }
}

/// The position of the set of a key. A name has few providers and days, so they share one.
///
/// Who finds names of one set (by FNV-1a) takes some outcomes away and no more.
fn place(key: &Key<'_>) -> usize {
    let hash = key.name.bytes().fold(0xcbf2_9ce4_8422_2325 ^ key.book, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) as usize % SETS
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    const DAY: Date = date(2026, 11, 20);

    fn key(name: &str) -> Key<'_> {
        Key { book: 1, day: DAY, provider: Some("vllm"), name }
    }

    fn unknown() -> Outcome {
        Outcome::Missing(NoRow::Unknown(""))
    }

    #[test]
    fn a_million_names_leave_as_many_outcomes_as_there_is_room_for() {
        let mut outcomes = Outcomes::default();
        for number in 0..1_000_000 {
            outcomes.keep(&key(&format!("model-{number}")), unknown());
        }
        let kept: Vec<_> = outcomes.sets.iter().flatten().flatten().collect();
        assert_eq!(kept.len(), SETS * SET_OUTCOMES_MAX);
        assert_eq!(outcomes.sets.capacity(), SETS);
        assert!(outcomes.find(&key("model-999999")).is_some());
        assert!(outcomes.find(&key("model-0")).is_none());
    }

    #[test]
    fn a_long_name_is_not_remembered() {
        let mut outcomes = Outcomes::default();
        let provider = "vllm".len();
        for (bytes, is_kept) in [(KEY_BYTES_MAX, true), (KEY_BYTES_MAX + 1, false)] {
            let name = "n".repeat(bytes - provider);
            outcomes.keep(&key(&name), unknown());
            assert_eq!(outcomes.find(&key(&name)).is_some(), is_kept, "{bytes}");
        }
    }

    #[test]
    fn each_part_of_the_key_tells_outcomes_apart() {
        let mut outcomes = Outcomes::default();
        outcomes.keep(&key("a"), unknown());
        assert!(outcomes.find(&key("a")).is_some());
        for other in [
            key("b"),
            Key { book: 2, ..key("a") },
            Key { day: date(2026, 11, 21), ..key("a") },
            Key { provider: Some("sglang"), ..key("a") },
            Key { provider: None, ..key("a") },
        ] {
            assert!(outcomes.find(&other).is_none(), "{other:?}");
        }
    }
}
