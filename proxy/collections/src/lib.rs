//! Sorting and maps for what is short, or made seldom, by code that all types share.
//!
//! The compiler makes a copy of the standard library's sort for each type and each order: five to twelve
//! kilobytes, and a `BTreeMap` or `BTreeSet` that is collected is sorted too. Here the numbers of the
//! places are sorted, by one copy, and the values are moved into their places after that. What is long,
//! or sorted for each request, each entry or each row of a file, is for the standard library.

use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Sorts; equal values keep their order.
pub fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, T::cmp);
}

/// Sorts by a key; values of the same key keep their order.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], mut key: impl FnMut(&T) -> K) {
    sort_by(items, |one, other| key(one).cmp(&key(other)));
}

/// Sorts in this order; values that are equal in it keep theirs.
pub fn sort_by<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let places = sorted(items.len(), &mut |one, other| match (items.get(one), items.get(other)) {
        (Some(one), Some(other)) => compare(one, other),
        _ => Ordering::Equal,
    });
    put(places, &mut |one, other| items.swap(one, other));
}

/// The places of so many values, in their order.
fn sorted(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_unstable_by(|one, other| compare(*one, *other).then_with(|| one.cmp(other)));
    places
}

/// Moves the value of `places[0]` to the first place, and so on, cycle by cycle.
fn put(mut places: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for first in 0..places.len() {
        let mut at = first;
        // A place that has its value says its own number.
        while let Some(from) = places.get_mut(at).map(|from| std::mem::replace(from, at))
            && from != first
            && from != at
        {
            swap(at, from);
            at = from;
        }
    }
}

/// Collects into maps and sets, one value after the other.
pub trait Gather: Iterator + Sized {
    /// As `collect` into a set.
    fn gather_set(self) -> BTreeSet<Self::Item>
    where
        Self::Item: Ord,
    {
        let mut all = BTreeSet::new();
        for item in self {
            all.insert(item);
        }
        all
    }

    /// As `collect`. Of two values of one key, the later one stays.
    fn gather<C: Default + Extend<Self::Item>>(self) -> C {
        let mut all = C::default();
        all.extend(self);
        all
    }
}

impl<I: Iterator> Gather for I {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_is_sorted_as_the_standard_library_does_it(
            items in vec((0..9_u8, ".{0,3}"), 0..90),
        ) {
            let (mut ours, mut theirs) = (items.clone(), items.clone());
            sort(&mut ours);
            theirs.sort();
            prop_assert_eq!(&ours, &theirs);
            let (mut ours, mut theirs) = (items.clone(), items.clone());
            sort_by_key(&mut ours, |(key, _)| *key);
            theirs.sort_by_key(|(key, _)| *key);
            prop_assert_eq!(&ours, &theirs);
            let (mut ours, mut theirs) = (items.clone(), items.clone());
            sort_by(&mut ours, |(one, _), (other, _)| other.cmp(one));
            theirs.sort_by(|(one, _), (other, _)| other.cmp(one));
            prop_assert_eq!(&ours, &theirs);
        }

        #[test]
        fn maps_and_sets_are_those_that_the_standard_library_collects(
            items in vec((0..9_u8, ".{0,3}"), 0..90),
        ) {
            let theirs: BTreeMap<_, _> = items.iter().cloned().collect();
            prop_assert_eq!(items.iter().cloned().gather::<BTreeMap<_, _>>(), theirs);
            let theirs: BTreeSet<_> = items.iter().collect();
            prop_assert_eq!(items.iter().gather_set(), theirs);
        }
    }
}
