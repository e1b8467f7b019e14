//! The text of a price file → rows, or the mistake with its line and column.

use std::collections::HashSet;

use jiff::civil::Date;
use serde_saphyr::{Location, Spanned, UserMessageFormatter};

use crate::row::{
    CacheWithoutRate, Card, Currency, LongContext, OffPeak, Rates, Row, Threshold, Tiers,
};

/// A price file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BookError {
    /// A mistake at a place.
    #[error("{file}:{line}:{column}: {problem}")]
    Invalid {
        /// Name of the file, as it was given.
        file: String,
        /// From 1.
        line: u64,
        /// From 1, in characters.
        column: u64,
        /// What is wrong and what is expected.
        problem: String,
    },
}

/// A file as written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    version: Option<Date>,
    // Only checked: there is one.
    #[serde(default, rename = "currency")]
    _currency: Currency,
    provider: Option<String>,
    #[serde(default)]
    cache_without_rate: CacheWithoutRate,
    models: Vec<RawRow>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    model: Spanned<String>,
    provider: Option<String>,
    #[serde(default)]
    aliases: Vec<String>,
    from: Option<Date>,
    #[serde(default)]
    input_only: bool,
    rates: Rates,
    #[serde(default)]
    tiers: Tiers,
    #[serde(default)]
    long_context: Vec<RawLongContext>,
    off_peak: Option<OffPeak>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLongContext {
    over: Option<u64>,
    at_least: Option<u64>,
    rates: Rates,
    #[serde(default)]
    tiers: Tiers,
}

/// What a file says.
pub(crate) struct File {
    /// Its date.
    pub(crate) version: Option<Date>,
    /// In the order of the file.
    pub(crate) rows: Vec<Row>,
}

/// Reads `text`, a file called `name`, of the book called `book`.
pub(crate) fn read(book: &str, name: &str, text: &str) -> Result<File, BookError> {
    let file: RawFile = serde_saphyr::from_str(text).map_err(|error| {
        let place = error.location().unwrap_or(Location::UNKNOWN);
        let problem = error.without_snippet().render_with_formatter(&UserMessageFormatter);
        // The place stands in front of our message already.
        let suffix = format!(" at line {}, column {}", place.line(), place.column());
        invalid(name, place, problem.trim_end_matches(suffix.as_str()).to_owned())
    })?;
    let version = version(book, file.version);
    let mut taken = HashSet::new();
    let mut rows = Vec::with_capacity(file.models.len());
    for raw in file.models {
        let place = raw.model.referenced;
        let row = row(raw, &file.provider, file.cache_without_rate, &version)
            .map_err(|problem| invalid(name, place, problem))?;
        for called in std::iter::once(&row.model).chain(&row.aliases) {
            if !taken.insert((row.provider.clone(), row.from, called.clone())) {
                let problem = format!(
                    "{called:?} is named twice; keep one, or give the later row another `from`"
                );
                return Err(invalid(name, place, problem));
            }
        }
        rows.push(row);
    }
    Ok(File { version: file.version, rows })
}

/// A book's name with its date.
pub(crate) fn version(book: &str, date: Option<Date>) -> String {
    date.map_or_else(|| format!("{book}@undated"), |date| format!("{book}@{date}"))
}

fn invalid(file: &str, place: Location, problem: String) -> BookError {
    BookError::Invalid {
        file: file.to_owned(),
        line: place.line(),
        column: place.column(),
        problem,
    }
}

fn row(
    raw: RawRow,
    file_provider: &Option<String>,
    cache_without_rate: CacheWithoutRate,
    version: &str,
) -> Result<Row, String> {
    let model = raw.model.value;
    if model.is_empty() || raw.aliases.iter().any(String::is_empty) {
        return Err("a model needs a name".to_owned());
    }
    if raw.rates.input.is_none() {
        return Err(format!("the rates of {model:?} lack `input`"));
    }
    match (raw.input_only, raw.rates.output.is_some()) {
        (false, true) | (true, false) => {}
        (false, false) => {
            return Err(format!(
                "the rates of {model:?} lack `output`; without any output say `input_only: true`"
            ));
        }
        (true, true) => {
            return Err(format!("{model:?} says `input_only: true` and has a rate for `output`"));
        }
    }
    let long_context = long_context(&model, raw.long_context)?;
    let provider = raw.provider.or_else(|| file_provider.clone());
    let owner = provider.as_deref().map_or_else(String::new, |provider| format!("{provider}/"));
    Ok(Row {
        price_id: format!("{version}#{owner}{model}"),
        provider,
        model,
        aliases: raw.aliases,
        from: raw.from,
        input_only: raw.input_only,
        cache_without_rate,
        card: Card { rates: raw.rates, tiers: raw.tiers },
        long_context,
        off_peak: raw.off_peak,
    })
}

fn long_context(model: &str, raw: Vec<RawLongContext>) -> Result<Vec<LongContext>, String> {
    let steps = raw
        .into_iter()
        .map(|raw| {
            let threshold = match (raw.over, raw.at_least) {
                (Some(tokens), None) => Threshold::Over(tokens),
                (None, Some(tokens)) => Threshold::AtLeast(tokens),
                _ => {
                    return Err(format!(
                        "each `long_context` of {model:?} needs `over` or `at_least`, not both"
                    ));
                }
            };
            Ok(LongContext { threshold, card: Card { rates: raw.rates, tiers: raw.tiers } })
        })
        .collect::<Result<Vec<_>, _>>()?;
    if steps.is_sorted_by(|a, b| a.threshold.first() < b.threshold.first()) {
        Ok(steps)
    } else {
        Err(format!("the thresholds in `long_context` of {model:?} must rise"))
    }
}

#[cfg(test)]
mod tests;
