//! What is agreed from a day on, and from a later one anew.

use jiff::civil::Date;

/// What holds when: each version from its first day on, up to that of the next. Nothing before the
/// first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dated<T> {
    /// In the order of their days; `None` is since ever.
    versions: Vec<(Option<Date>, T)>,
}

impl<T> Dated<T> {
    /// The versions with their first days, in any order; of two of one day the later in the list
    /// holds.
    #[must_use]
    pub fn new(mut versions: Vec<(Option<Date>, T)>) -> Self {
        versions.sort_by_key(|(since, _)| *since);
        Self { versions }
    }

    /// The same since ever.
    #[must_use]
    pub fn always(value: T) -> Self {
        Self { versions: vec![(None, value)] }
    }

    /// What holds on `day`; `None` where nothing does yet.
    #[must_use]
    pub fn on(&self, day: Date) -> Option<&T> {
        let has_begun = |since: &Option<Date>| since.is_none_or(|since| since <= day);
        let holds = self.versions.iter().rfind(|(since, _)| has_begun(since));
        holds.map(|(_, value)| value)
    }
}

/// Nothing, ever.
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
