//! For people who ask for a price: what every provider's rows say to a name, and the names that are
//! most like one without a row.

use std::collections::BTreeSet;

use jiff::Timestamp;
use taximeter_collections::Gather as _;

use super::{Found, NoRow};
use crate::book::{PriceBook, Query, day};

/// Longest names that are compared, in bytes. Longer ones are like none.
const NAME_BYTES_MAX: usize = 256;

/// The rows for one name, whoever answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Everywhere<'a> {
    /// The row of each provider that has one. The first of them is of any provider, if there is one.
    pub found: Vec<Found<'a>>,
    /// Why other providers' rows do not price it. It says nothing of rows without such a name.
    pub missing: Vec<(Option<&'a str>, NoRow<'a>)>,
}

impl PriceBook {
    /// What the rows of every provider say to a name.
    #[must_use]
    pub fn everywhere<'a>(&'a self, name: &'a str, at: Timestamp) -> Everywhere<'a> {
        let providers: BTreeSet<_> = self.rows().map(|row| row.provider.as_deref()).gather_set();
        let mut all = Everywhere { found: Vec::new(), missing: Vec::new() };
        for provider in providers {
            let query = Query {
                provider,
                response_model: Some(name),
                request_model: None,
                service_tier: None,
                at,
            };
            match self.lookup(&query) {
                // A row for any provider is found for each of them.
                Ok(found) if found.row.provider.as_deref() == provider => all.found.push(found),
                Ok(_) | Err(NoRow::Unknown(_)) => {}
                // So is one that has ended.
                Err(missing) if all.missing.iter().any(|(_, told)| *told == missing) => {}
                Err(missing) => all.missing.push((provider, missing)),
            }
        }
        all
    }

    /// At most `most` models with a price at `at` whose names are like `name`, as `PROVIDER/MODEL` or
    /// `MODEL`. The most similar comes first.
    #[must_use]
    pub fn nearest(&self, name: &str, at: Timestamp, most: usize) -> Vec<String> {
        let asked = core(name);
        let near_enough = (asked.len() / 4).max(1);
        let rows = self.rows().filter(|row| row.holds_on(day(at)));
        let mut near: Vec<_> = rows
            .filter_map(|row| {
                let model = core(&row.model);
                let apart = apart(&asked, &model)?;
                let is_part = asked.len().min(model.len()) > 3
                    && (asked.contains(&model) || model.contains(&asked));
                (apart <= near_enough || is_part).then(|| {
                    let owner = row.provider.as_deref();
                    let owner = owner.map_or_else(String::new, |owner| format!("{owner}/"));
                    (apart, format!("{owner}{}", row.model))
                })
            })
            .collect();
        taximeter_collections::sort(&mut near);
        near.dedup();
        near.into_iter().take(most).map(|(_, name)| name).collect()
    }
}

/// The part of a name behind its last `/`, in small letters, with one kind of separator.
fn core(name: &str) -> String {
    let model = name.rsplit('/').next().unwrap_or(name);
    model.to_ascii_lowercase().replace(['.', '_', ':', '@'], "-")
}

/// How many bytes must be changed, added or taken away to make one of the other. `None` if the names
/// are too long to compare.
fn apart(one: &str, other: &str) -> Option<usize> {
    if one.len().max(other.len()) > NAME_BYTES_MAX {
        return None;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, a) in one.bytes().enumerate() {
        let mut diagonal = line;
        let mut left = line + 1;
        for (b, cell) in other.bytes().zip(row.iter_mut().skip(1)) {
            let changed = diagonal + usize::from(a != b);
            diagonal = *cell;
            left = changed.min(left + 1).min(*cell + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_far_apart_as_the_bytes_that_differ() {
        for (one, other, expected) in [
            ("", "", 0),
            ("gpt-5", "gpt-5", 0),
            ("gpt-5", "", 5),
            ("", "gpt-5", 5),
            ("gpt-5.4", "gpt-5.5", 1),
            ("gpt-5.4", "gpt-54", 1),
            ("kitten", "sitting", 3),
            ("opus-claude", "claude-opus", 10),
        ] {
            assert_eq!(apart(one, other), Some(expected), "{one} {other}");
        }
        assert_eq!(apart(&"a".repeat(257), ""), None);
    }

    #[test]
    fn a_name_without_a_row_is_told_those_that_are_like_it() {
        let book = PriceBook::builtin().unwrap();
        let at: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        assert_eq!(book.nearest("gpt5.4", at, 1), ["openai/gpt-5.4"]);
        assert_eq!(
            book.nearest("anthropic/Claude-Sonet-4.5", at, 1),
            ["anthropic/claude-sonnet-4-5"]
        );
        let served = book.nearest("gpt-oss-120b", at, 9);
        assert!(
            served.len() > 2 && served.iter().all(|name| name.contains("gpt-oss")),
            "{served:?}"
        );
        assert!(book.nearest("zzzzzzzzzzzz", at, 9).is_empty());
    }
}
