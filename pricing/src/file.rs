//! Reads the text of a price file into rows, or reports the mistake with its line and column.

mod date;
mod names;
mod periods;

use std::collections::{BTreeMap, HashSet};
use std::iter;

use jiff::civil::Date;
use taximeter_yaml::{Kind, Node};

use crate::currency::Currency;
use crate::meter::{MeterName, MeterSet};
use crate::off_peak::OffPeak;
use crate::rates::Rates;
use crate::row::{
    CacheWithoutRate, LongContext, ModalityWithoutRate, RateCard, Row, Threshold, Tiers, When,
};

/// Why a price file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BookError {
    /// A mistake in the file.
    #[error("{file}:{line}:{column}: {problem}")]
    Invalid {
        /// Name of the file, as the caller gave it.
        file: String,
        /// From 1.
        line: u64,
        /// From 1, in characters.
        column: u64,
        /// What is wrong and what is expected.
        problem: String,
    },
}

/// A file as it is written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default, deserialize_with = "date::date")]
    version: Option<Date>,
    #[serde(default)]
    currency: Currency,
    provider: Option<String>,
    #[serde(default, deserialize_with = "date::date")]
    from: Option<Date>,
    #[serde(default, deserialize_with = "date::date")]
    until: Option<Date>,
    #[serde(default)]
    cache_without_rate: CacheWithoutRate,
    #[serde(default)]
    modality_without_rate: ModalityWithoutRate,
    models: Vec<RawRow>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    model: String,
    provider: Option<String>,
    #[serde(default)]
    aliases: Vec<String>,
    #[serde(default, deserialize_with = "date::date")]
    from: Option<Date>,
    #[serde(default, deserialize_with = "date::date")]
    until: Option<Date>,
    #[serde(default)]
    input_only: bool,
    rates: Rates,
    #[serde(default)]
    tiers: Tiers,
    #[serde(default)]
    long_context: Vec<RawLongContext>,
    off_peak: Option<OffPeak>,
    #[serde(default)]
    when: When,
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

/// The content of a file.
pub(crate) struct File {
    /// Its date.
    pub(crate) version: Option<Date>,
    /// In the order of the file.
    pub(crate) rows: Vec<Row>,
}

/// The names of rows, each with its provider and first day. No two rows may share one.
pub(crate) type Names = HashSet<(Option<String>, Option<Date>, String)>;

/// The names of one row.
pub(crate) fn names(row: &Row) -> impl Iterator<Item = (Option<String>, Option<Date>, String)> {
    iter::once(&row.model)
        .chain(&row.aliases)
        .map(|name| (row.provider.clone(), row.from, name.clone()))
}

/// Reads `text`, a file called `name`, for the book called `book`. The names in `taken` belong to
/// other rows already.
pub(crate) fn read(
    book: &str,
    name: &str,
    text: &str,
    taken: &mut Names,
) -> Result<File, BookError> {
    let invalid = |at: usize, problem| invalid(name, text, at, problem);
    let root = tree(text).map_err(|(at, problem)| invalid(at, problem))?;
    let mut file: RawFile =
        taximeter_yaml::read(&root).map_err(|error| invalid(error.at.start, error.problem))?;
    if let Some(problem) = file.provider.as_deref().and_then(names::provider_problem) {
        return Err(invalid(root.value("provider").map_or(0, start), problem));
    }
    let version = version(book, file.version);
    let models = std::mem::take(&mut file.models);
    let mut rows = Vec::with_capacity(models.len());
    let places = places(&root);
    for (raw, &place) in models.into_iter().zip(&places) {
        let row = row(raw, &file, &version).map_err(|problem| invalid(place, problem))?;
        for key in names(&row) {
            let called = key.2.clone();
            if !taken.insert(key) {
                let problem = format!(
                    "{called:?} is named twice; keep one, or give the later row another `from`"
                );
                return Err(invalid(place, problem));
            }
        }
        rows.push(row);
    }
    let mut models: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (row, place) in rows.iter().zip(places) {
        models.entry((&row.provider, &row.model)).or_default().push((place, row));
    }
    if let Some((place, problem)) = models.values().find_map(|rows| periods::problem(rows)) {
        return Err(invalid(place, problem));
    }
    Ok(File { version: file.version, rows })
}

/// The name of a book with its date.
pub(crate) fn version(book: &str, date: Option<Date>) -> String {
    date.map_or_else(|| format!("{book}@undated"), |date| format!("{book}@{date}"))
}

/// The tree of a file, or what is wrong and at which byte.
fn tree(text: &str) -> Result<Node, (usize, String)> {
    match taximeter_yaml::parse(text) {
        Ok(Some(root)) => Ok(root),
        Ok(None) => Err((0, "unexpected end of file".to_owned())),
        Err(error) if text.get(error.at.start..).is_some_and(|rest| rest.starts_with('*')) => {
            let problem = "in YAML a `*` begins a reference; a model is found by its exact name, and \
                           no name has a `*`";
            Err((error.at.start, problem.to_owned()))
        }
        Err(error) => {
            Err((error.at.start, format!("{}; expected {}", error.problem, error.expected)))
        }
    }
}

/// Where each row has its model.
fn places(root: &Node) -> Vec<usize> {
    let Some(Kind::List(rows)) = root.value("models").map(|models| &models.kind) else {
        return Vec::new();
    };
    rows.iter().map(|row| start(row.value("model").unwrap_or(row))).collect()
}

const fn start(node: &Node) -> usize {
    node.at.start
}

fn invalid(file: &str, text: &str, at: usize, problem: String) -> BookError {
    let before = text.get(..at).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or(before);
    BookError::Invalid {
        file: file.to_owned(),
        line: before.matches('\n').count() as u64 + 1,
        column: line.chars().count() as u64 + 1,
        problem,
    }
}

fn row(raw: RawRow, file: &RawFile, version: &str) -> Result<Row, String> {
    let model = raw.model;
    let problem = iter::once(&model)
        .chain(&raw.aliases)
        .find_map(|name| names::model_problem(name))
        .or_else(|| names::provider_problem(raw.provider.as_deref()?))
        .or_else(|| names::when_problem(&raw.when));
    if let Some(problem) = problem {
        return Err(problem);
    }
    if let Some(off_peak) = &raw.off_peak
        && off_peak.is_never()
    {
        return Err(format!("the `off_peak` of {model:?} has no days and hours; write `windows`"));
    }
    if let Some(problem) = rates_problem(&raw.rates, raw.input_only) {
        return Err(format!("the rates of {model:?} {problem}"));
    }
    let long_context = long_context(&model, raw.long_context)?;
    let provider = raw.provider.or_else(|| file.provider.clone());
    let (from, until) = (raw.from.or(file.from), raw.until.or(file.until));
    if from.zip(until).is_some_and(|(from, until)| until <= from) {
        return Err(format!("{model:?} ends (`until`) before it begins (`from`)"));
    }
    let owner = provider.as_deref().map_or_else(String::new, |provider| format!("{provider}/"));
    let since = from.map_or_else(String::new, |from| format!("@{from}"));
    let mut row = Row {
        price_id: format!("{version}#{owner}{model}{since}"),
        provider,
        model,
        aliases: raw.aliases,
        from,
        until,
        currency: file.currency,
        input_only: raw.input_only,
        cache_without_rate: file.cache_without_rate,
        modality_without_rate: file.modality_without_rate,
        card: RateCard { rates: raw.rates, tiers: raw.tiers },
        long_context,
        off_peak: raw.off_peak,
        when: raw.when,
        stated: MeterSet::default(),
    };
    row.stated = row.sets().flat_map(|set| set.iter().map(|(meter, _)| meter)).collect();
    Ok(row)
}

/// What is wrong with the standard rates: a missing rate, or one too many.
pub(crate) fn rates_problem(rates: &Rates, input_only: bool) -> Option<&'static str> {
    let any = |of: fn(MeterName) -> bool| rates.iter().any(|(meter, _)| of(meter));
    let has_output = any(MeterName::is_output);
    let charges_otherwise = any(|meter| !meter.counts_tokens());
    let counts_tokens = any(MeterName::counts_tokens);
    match (rates.rate(MeterName::Input).is_some(), input_only, has_output) {
        _ if charges_otherwise && !counts_tokens => None,
        (false, ..) => Some("lack `input`"),
        (true, false, false) => Some("lack `output`; without any output say `input_only: true`"),
        (true, true, true) => Some("have one for output, beside `input_only: true`"),
        _ => None,
    }
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
            Ok(LongContext { threshold, card: RateCard { rates: raw.rates, tiers: raw.tiers } })
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
