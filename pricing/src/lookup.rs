//! Which row prices a name: the name itself, and then its shorter forms.
//!
//! A shorter form finds only a row of the platform that answers. A row for any provider is found by
//! its own name, by an alias, and by the name of a dated snapshot.

mod found;
mod nearest;
mod outcomes;

use std::borrow::Cow;

use jiff::civil::Date;

use crate::book::{PriceBook, Query, day};
use crate::name::{Form, Kind, Name, Region, says_more};
use crate::row::Row;
use crate::rule::{PriceMatch, Rule};
use crate::usage::Condition;
pub use found::{Found, NoRow};
pub use nearest::Everywhere;
use outcomes::{Key, remembered};

impl PriceBook {
    /// The row that prices a request, and what found it.
    ///
    /// The model of the answer comes before the model of the request. If both are the same model and
    /// only one of them has a region, a variant or an owner, that one counts alone.
    ///
    /// Errors: why there is none.
    pub fn lookup<'q>(&self, query: &Query<'q>) -> Result<Found<'_>, NoRow<'q>> {
        let (day, provider) = (day(query.at), query.provider);
        let (first, second) = match (query.response_model, query.request_model) {
            (Some(response), Some(request)) if response != request => {
                let says_more = |more, less| says_more(provider.unwrap_or_default(), more, less);
                if says_more(request, response) {
                    (request, None)
                } else {
                    (response, Some(request).filter(|request| !says_more(response, request)))
                }
            }
            (Some(name), _) | (None, Some(name)) => (name, None),
            (None, None) => return Err(NoRow::Unknown("")),
        };
        let missing = match (self.named(first, provider, day), second) {
            (Err(missing @ NoRow::Region { .. }), _) | (Err(missing), None) => return Err(missing),
            (Err(missing), Some(second)) => match self.named(second, provider, day) {
                Ok(found) => return Ok(Found { how: found.how.with(Rule::Request), ..found }),
                Err(other @ NoRow::Region { .. }) => other,
                Err(_) => missing,
            },
            (found, _) => return found,
        };
        Err(missing)
    }

    /// The row of one name.
    fn named<'q>(
        &self,
        name: &'q str,
        provider: Option<&'q str>,
        day: Date,
    ) -> Result<Found<'_>, NoRow<'q>> {
        let key = Key { book: self.number(), day, provider, name };
        remembered(self, &key, || self.named_anew(name, provider, day))
    }

    fn named_anew<'q>(
        &self,
        name: &'q str,
        provider: Option<&str>,
        day: Date,
    ) -> Result<Found<'_>, NoRow<'q>> {
        let is_wanted = |row: &Row| row.prices(provider, day) && self.has_rate(row, day);
        if let Some(row) = self.rows_named(name).find(|row| is_wanted(row)) {
            return Ok(Found { row, how: by_name(row.model == name), region: None });
        }
        let provider = provider.unwrap_or_default();
        self.formed(name, provider, day, |_| true).map_err(|missing| match missing {
            NoRow::Region { .. } => missing,
            missing => self.at_another_time(name, provider, day).unwrap_or(missing),
        })
    }

    /// When the rows of a name and its forms were in force that are not on `day`: `None` if it has
    /// no rows.
    fn at_another_time<'q>(&self, name: &'q str, provider: &str, day: Date) -> Option<NoRow<'q>> {
        let parts = Name::of(provider, name);
        let is_own = |row: &&Row| row.provider.as_deref().is_none_or(|of| of == provider);
        let own = self.rows_named(name).filter(is_own);
        let formed = parts.forms().flat_map(|form| {
            self.rows_named(form.text).filter(move |row| is_of(row, provider, &form))
        });
        let rows: Vec<_> = own.chain(formed).filter(|row| !row.holds_on(day)).collect();
        let ends = rows.iter().filter_map(|row| Some((row.until.filter(|at| *at <= day)?, *row)));
        if let Some((until, row)) = ends.max_by_key(|(until, _)| *until) {
            return Some(NoRow::Ended { name, until, price_id: row.price_id.clone() });
        }
        let begin = rows.iter().filter_map(|row| Some((row.from?, *row)));
        let (from, row) = begin.min_by_key(|(from, _)| *from)?;
        Some(NoRow::NotBegun { name, from, price_id: row.price_id.clone() })
    }

    /// The row of a shorter form of a name, or of the name in other letters. Only rows that are
    /// `wanted` count.
    pub(crate) fn formed<'q>(
        &self,
        name: &'q str,
        provider: &str,
        day: Date,
        wanted: impl Fn(&Row) -> bool,
    ) -> Result<Found<'_>, NoRow<'q>> {
        let parts = Name::of(provider, name);
        let holds = |row: &Row| row.holds_on(day) && self.has_rate(row, day) && wanted(row);
        for form in parts.forms() {
            let in_its_letters = || {
                let is_shorter = form.rules != PriceMatch::EXACT;
                let mut rows = is_shorter.then(|| self.rows_named(form.text)).into_iter().flatten();
                let row = rows.find(|row| is_of(row, provider, &form) && holds(row))?;
                Some((row, by_name(row.model == form.text)))
            };
            let in_other_letters = || {
                let row = self.in_other_letters(form.text, provider, &holds)?;
                let how = by_name(row.model.eq_ignore_ascii_case(form.text));
                Some((row, how.with(Rule::Case)))
            };
            let Some((row, how)) = in_its_letters().or_else(in_other_letters) else { continue };
            let how = how.and(form.rules);
            let region = match parts.region().filter(|_| form.lacks_region) {
                None => None,
                Some(region) => priced(row, region).map_err(|region| NoRow::Region {
                    name,
                    region,
                    price_id: row.price_id.clone(),
                })?,
            };
            return Ok(Found { row, how, region });
        }
        let has_model = || {
            let mut rows = self.rows_named(parts.core());
            rows.any(|row| row.provider.as_deref().is_none_or(|of| of == provider))
        };
        Err(match parts.kind() {
            Kind::Tuned => NoRow::Tuned(name),
            Kind::Deployment => NoRow::Deployment(name),
            Kind::Variant if has_model() => NoRow::Variant(name),
            Kind::Plain | Kind::Variant => NoRow::Unknown(name),
        })
    }

    /// The row of `provider` whose name differs from `text` in capitals alone. `None` if several
    /// models do.
    fn in_other_letters<'a>(
        &'a self,
        text: &str,
        provider: &str,
        holds: &impl Fn(&Row) -> bool,
    ) -> Option<&'a Row> {
        let has_capitals = text.bytes().any(|byte| byte.is_ascii_uppercase());
        let small = match has_capitals {
            true => Cow::Owned(text.to_ascii_lowercase()),
            false => Cow::Borrowed(text),
        };
        // Rows that are named by a text without capitals were found by that text.
        let without = has_capitals.then(|| self.rows_named(&small)).into_iter().flatten();
        let rows = self.rows_in_small_letters(&small, provider).chain(without);
        let of_provider = |row: &&Row| row.provider.as_deref() == Some(provider) && holds(row);
        let mut rows = rows.filter(of_provider);
        let first = rows.next()?;
        rows.all(|row| row.model == first.model).then_some(first)
    }
}

/// Whether a form of a name of `provider` may find the row.
fn is_of(row: &Row, provider: &str, form: &Form<'_>) -> bool {
    match row.provider.as_deref() {
        Some(of) => of == provider,
        None => form.rules == Rule::Date.into(),
    }
}

fn by_name(is_own: bool) -> PriceMatch {
    if is_own { PriceMatch::EXACT } else { Rule::Alias.into() }
}

/// The region for which the row has a price. `None` is the region of its plain rates.
///
/// Errors: the region, if the row does not say what it costs.
fn priced(row: &Row, region: &Region) -> Result<Option<String>, String> {
    let words = row.when.get(&Condition::Region).into_iter().flatten().map(|(word, _)| word);
    match words.into_iter().find(|word| word.eq_ignore_ascii_case(&region.word)) {
        Some(word) => Ok(Some(word.clone())),
        None if region.is_base => Ok(None),
        None => Err(region.word.clone()),
    }
}

#[cfg(test)]
mod tests;
