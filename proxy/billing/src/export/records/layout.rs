//! Where entries have what goes into each column.
//!
//! Requests behind each other are alike: most of an entry is, byte by byte, what the one before had
//! there. What has been read once need not be read again to know what it is.

use std::ops::Range;

use taximeter_ledger::{Members, Stage};

use super::members::{MEMBERS, Reading, Within, find_column};

/// What goes into each column, as an entry has it.
pub(super) struct Found<'a> {
    /// Whether anything in the entry is escaped.
    pub(super) is_escaped: bool,
    pub(super) values: [Option<&'a [u8]>; MEMBERS.len()],
    /// A bit for each column whose value is that of the entry before.
    again: u64,
}

const _: () = assert!(MEMBERS.len() <= u64::BITS as usize);

impl<'a> Found<'a> {
    const fn nothing(is_escaped: bool) -> Self {
        Self { is_escaped, values: [None; MEMBERS.len()], again: 0 }
    }

    /// Whether the value of a column is that of the entry before.
    pub(super) const fn is_again(&self, column: usize) -> bool {
        self.again >> column & 1 == 1
    }

    /// What the columns of a member, from this one on, are made of; the one behind them.
    fn keep(&mut self, column: usize, value: &'a [u8], is_again: bool) -> Option<usize> {
        let behind = match MEMBERS.get(column)?.reading {
            Reading::Value | Reading::Entry => {
                self.keep_one(column, value)?;
                column + 1
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
                behind
            }
        };
        if is_again {
            (column..behind).for_each(|column| self.again |= 1 << column);
        }
        Some(behind)
    }

    /// What a column is made of, which comes once.
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

/// Where the entry that was read last has its values, in order.
#[derive(Default)]
pub(super) struct Layout<'a> {
    entry: &'a [u8],
    values: Vec<Place>,
}

struct Place {
    /// Those that the value goes into begin here; `None` where it goes into none.
    column: Option<usize>,
    /// Of the entry.
    value: Range<usize>,
}

impl<'a> Layout<'a> {
    /// What an entry has for each column; `None` where a parser is needed.
    pub(super) fn read(&mut self, entry: &'a [u8]) -> Option<Found<'a>> {
        let found = self.read_alike(entry).or_else(|| self.read_apart(entry));
        if found.is_none() {
            self.values.clear();
        }
        found
    }

    /// The same of an entry that has the members of the last one: then the same bytes are between
    /// its values.
    fn read_alike(&mut self, entry: &'a [u8]) -> Option<Found<'a>> {
        if self.values.is_empty() {
            return None;
        }
        let last = std::mem::replace(&mut self.entry, entry);
        let mut members = Members::of(entry);
        let mut found = Found::nothing(members.is_escaped());
        let mut behind = 0;
        for Place { column, value: place } in &mut self.values {
            let member = column.and_then(|column| MEMBERS.get(column));
            let is_likely = member.is_none_or(|member| !member.field.distinct);
            let is_again = is_likely && members.is_next(last.get(behind..place.end)?);
            let value = if is_again {
                let end = entry.len() - members.left();
                entry.get(end - place.len()..end)?
            } else {
                members.pass(last.get(behind..place.start)?)?;
                members.value()?
            };
            behind = place.end;
            let end = entry.len() - members.left();
            *place = end - value.len()..end;
            if let Some(column) = *column {
                found.keep(column, value, is_again)?;
            }
        }
        members.pass(last.get(behind..)?)?;
        members.is_at_end().then_some(found)
    }

    /// The same, member by member.
    fn read_apart(&mut self, entry: &'a [u8]) -> Option<Found<'a>> {
        self.entry = entry;
        self.values.clear();
        let mut members = Members::of(entry);
        let mut found = Found::nothing(members.is_escaped());
        self.read_object(Within::Record, &mut members, &mut 0, &mut found)?;
        members.is_at_end().then_some(found)
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
            self.values.push(Place { column, value: end - value.len()..end });
            if let Some(column) = column {
                *next = found.keep(column, value, false)?;
            }
        }
    }
}
