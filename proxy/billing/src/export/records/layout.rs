//! Where entries have what goes into each column.
//!
//! Requests behind each other are alike: most of an entry is, byte by byte, what the one before had
//! there. What has been read once need not be read again to know what it is.

use taximeter_ledger::{Members, Stage};

use super::members::{MEMBERS, Reading, Within, find_column};

/// What goes into each column, as an entry has it.
pub(super) struct Found<'a> {
    /// Whether anything in the entry is escaped.
    pub(super) is_escaped: bool,
    pub(super) values: [Option<&'a [u8]>; MEMBERS.len()],
    /// A bit for each column whose value is known to be that of the entry before.
    again: u64,
}

const _: () = assert!(MEMBERS.len() <= u64::BITS as usize);

impl<'a> Found<'a> {
    const fn nothing(is_escaped: bool) -> Self {
        Self { is_escaped, values: [None; MEMBERS.len()], again: 0 }
    }

    /// Whether the value of a column is known to be that of the entry before.
    pub(super) const fn is_again(&self, column: usize) -> bool {
        self.again >> column & 1 == 1
    }

    /// What the columns of a member, from this one on, are made of; the one behind them.
    fn keep(&mut self, column: usize, value: &'a [u8]) -> Option<usize> {
        match MEMBERS.get(column)?.reading {
            Reading::Value | Reading::Entry => {
                self.keep_one(column, value)?;
                Some(column + 1)
            }
            Reading::Stage => {
                let behind = column + Stage::ALL.len();
                if value != b"null" {
                    // By their words stages are in seconds: that is left to a parser.
                    let micros = value.strip_prefix(b"[")?.strip_suffix(b"]")?;
                    for (column, micros) in (column..behind).zip(micros.split(|sign| *sign == b','))
                    {
                        self.keep_one(column, micros)?;
                    }
                }
                Some(behind)
            }
        }
    }

    /// What a column is made of, which comes once.
    #[inline]
    fn keep_one(&mut self, column: usize, value: &'a [u8]) -> Option<()> {
        let slot = self.values.get_mut(column)?;
        if slot.is_some() {
            return None;
        }
        // Older entries say what is absent.
        *slot = Some(value).filter(|value| !matches!(*value, b"" | b"null" | b"{}" | b"[]"));
        Some(())
    }
}

/// How the entries that were read last are laid out, each differently: a stream and what is none have
/// other members.
#[derive(Default)]
pub(super) struct Layouts<'a> {
    /// That of the last entry first.
    layouts: Vec<Layout<'a>>,
    /// Memory for the next one.
    places: Vec<Place>,
}

/// How many are held.
const LAYOUTS_MAX: usize = 4;

/// Where an entry has its values, in order.
struct Layout<'a> {
    entry: &'a [u8],
    places: Vec<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    /// Those that the value goes into begin here; `None` where it goes into none.
    column: Option<usize>,
    begin: usize,
    end: usize,
}

impl<'a> Layouts<'a> {
    /// What an entry has for each column; `None` where a parser is needed.
    pub(super) fn read(&mut self, entry: &'a [u8]) -> Option<Found<'a>> {
        for (at, layout) in self.layouts.iter_mut().enumerate() {
            if let Some(found) = layout.read_alike(entry, at == 0, &mut self.places) {
                self.layouts.get_mut(..=at)?.rotate_right(1);
                return Some(found);
            }
        }
        let Some((layout, found)) = Layout::read(entry) else {
            // The last one is none of them.
            self.layouts.clear();
            return None;
        };
        self.layouts.truncate(LAYOUTS_MAX - 1);
        self.layouts.insert(0, layout);
        Some(found)
    }
}

impl<'a> Layout<'a> {
    /// An entry, member by member.
    fn read(entry: &'a [u8]) -> Option<(Self, Found<'a>)> {
        let mut layout = Self { entry, places: Vec::with_capacity(MEMBERS.len()) };
        let mut members = Members::of(entry);
        let mut found = Found::nothing(members.is_escaped());
        layout.read_object(Within::Record, &mut members, &mut 0, &mut found)?;
        members.is_at_end().then_some((layout, found))
    }

    /// An entry that has the members of the one before: then the same bytes are between its values.
    /// Its layout takes the place of the other one. `is_last`: none has been read between them.
    fn read_alike(
        &mut self,
        entry: &'a [u8],
        is_last: bool,
        places: &mut Vec<Place>,
    ) -> Option<Found<'a>> {
        let mut members = Members::of(entry);
        let mut found = Found::nothing(members.is_escaped());
        let mut behind = 0;
        places.clear();
        for place in &self.places {
            let member = place.column.and_then(|column| MEMBERS.get(column));
            let is_likely = member.is_none_or(|member| !member.field.distinct);
            let is_again = is_likely && members.is_next(self.entry.get(behind..place.end)?);
            let length = if is_again {
                place.end - place.begin
            } else {
                members.pass(self.entry.get(behind..place.begin)?)?;
                members.value()?.len()
            };
            behind = place.end;
            let end = entry.len() - members.left();
            let begin = end - length;
            places.push(Place { begin, end, ..*place });
            if let Some(column) = place.column {
                found.keep(column, entry.get(begin..end)?)?;
                found.again |= u64::from(is_again && is_last) << column;
            }
        }
        members.pass(self.entry.get(behind..)?)?;
        members.is_at_end().then(|| {
            self.entry = entry;
            std::mem::swap(&mut self.places, places);
            found
        })
    }

    /// The members of one object; the next is likely that of column `next`.
    fn read_object(
        &mut self,
        within: Within,
        members: &mut Members<'a>,
        next: &mut usize,
        found: &mut Found<'a>,
    ) -> Option<()> {
        members.enter()?;
        loop {
            let likely = MEMBERS.get(*next).filter(|member| member.within == within);
            let column = if likely.is_some_and(|member| members.is_named(member.name.as_bytes())) {
                Some(*next)
            } else {
                let Some(name) = members.name()? else { return Some(()) };
                if let Some(inner) = within.inner(name).filter(|_| members.is_object()) {
                    self.read_object(inner, members, next, found)?;
                    continue;
                }
                find_column(within, name, *next)
            };
            let value = members.value()?;
            let end = self.entry.len() - members.left();
            self.places.push(Place { column, begin: end - value.len(), end });
            if let Some(column) = column {
                *next = found.keep(column, value)?;
            }
        }
    }
}
