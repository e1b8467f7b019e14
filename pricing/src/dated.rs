//! A value that changes on certain days, such as a discount.

use jiff::civil::Date;

/// A value with versions. Each version is in force from its first day until the first day of the
/// next. Before the first version, nothing is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dated<T> {
    /// In the order of their first days. `None` means always.
    versions: Vec<(Option<Date>, T)>,
}

impl<T> Dated<T> {
    /// The versions with their first days, in any order. If two begin on the same day, the later
    /// one in the list is in force.
    #[must_use]
    pub fn new(mut versions: Vec<(Option<Date>, T)>) -> Self {
        taximeter_collections::sort_by_key(&mut versions, |(since, _)| *since);
        Self { versions }
    }

    /// One version that is always in force.
    #[must_use]
    pub fn always(value: T) -> Self {
        Self { versions: vec![(None, value)] }
    }

    /// The version in force on `day`. `None` if there is none yet.
    #[must_use]
    pub fn on(&self, day: Date) -> Option<&T> {
        let has_begun = |since: &Option<Date>| since.is_none_or(|since| since <= day);
        let holds = self.versions.iter().rfind(|(since, _)| has_begun(since));
        holds.map(|(_, value)| value)
    }
}

/// No version.
impl<T> Default for Dated<T> {
    fn default() -> Self {
        Self { versions: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn the_last_version_that_has_begun_holds() {
        let (first, second) = (date(2026, 11, 1), date(2026, 12, 1));
        let dated = Dated::new(vec![(Some(second), 'c'), (None, 'a'), (Some(first), 'b')]);
        for (day, value) in [
            (Date::MIN, 'a'),
            (date(2026, 10, 31), 'a'),
            (first, 'b'),
            (date(2026, 11, 30), 'b'),
            (second, 'c'),
            (Date::MAX, 'c'),
        ] {
            assert_eq!(dated.on(day), Some(&value), "{day}");
        }
        let late = Dated::new(vec![(Some(first), 'b')]);
        assert_eq!((late.on(date(2026, 10, 31)), late.on(first)), (None, Some(&'b')));
        assert_eq!(Dated::always('a').on(Date::MIN), Some(&'a'));
        assert_eq!(Dated::<char>::default().on(Date::MAX), None);
    }
}
