//! Collects the result of an import: rows, what was left out, and mistakes.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use jiff::civil::Date;
use rust_decimal::Decimal;
use taximeter_json::Value;

use super::json::{Lines, amount};
use crate::currency::Currency;
use crate::file;
use crate::meter::MeterSet;
use crate::row::{CacheWithoutRate, ModalityWithoutRate, RateCard, Row};
use crate::write;

/// The result of an import.
#[derive(Debug)]
pub struct Imported {
    /// The project of the file.
    pub source: &'static str,
    /// Number of models in the file.
    pub models: usize,
    /// Number of imported models. One model can have several rows with different dates.
    pub taken: usize,
    /// The rows of `text`.
    pub rows: Vec<Row>,
    /// What was not imported.
    pub left_out: Vec<LeftOut>,
    /// The rows as a price file.
    pub text: String,
}

/// A model, or a part of its prices, that was not imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Line in the file, from 1.
    pub line: usize,
    /// The model, by its name in the file.
    pub model: String,
    /// The part. `None` means the whole model.
    pub field: Option<String>,
    /// The reason.
    pub why: &'static str,
}

/// Why nothing was imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file is not JSON.
    #[error("{file}:{line}:{column}: {problem}")]
    NotJson {
        /// Name of the file, as the caller gave it.
        file: String,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// The message of the JSON parser.
        problem: String,
    },
    /// The file is JSON of an unknown kind.
    #[error(
        "{file}: is neither LiteLLM's object of models nor genai-prices' list of providers; expected \
         model_prices_and_context_window.json or prices/data.json"
    )]
    Unknown {
        /// Name of the file, as the caller gave it.
        file: String,
    },
    /// The file has wrong values.
    #[error("{}", shown(file, mistakes))]
    Mistakes {
        /// Name of the file, as the caller gave it.
        file: String,
        /// All of them.
        mistakes: Vec<Mistake>,
    },
    /// The imported rows do not make a valid price file.
    #[error("the imported rows do not make a price file: {0}")]
    NoFile(String),
}

/// A wrong value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// From 1.
    pub line: usize,
    /// Model and field: `gpt-5.4.input_cost_per_token`.
    pub key: String,
    /// What is wrong and what is expected.
    pub problem: &'static str,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.line, self.key, self.problem)
    }
}

fn shown(file: &str, mistakes: &[Mistake]) -> String {
    let lines: Vec<_> = mistakes.iter().map(|mistake| format!("{file}:{mistake}")).collect();
    lines.join("\n")
}

/// Collects rows, what is left out, and mistakes.
pub(super) struct Importer<'a> {
    lines: Lines<'a>,
    /// Number of models in the file.
    pub(super) models: usize,
    taken: usize,
    rows: Vec<Row>,
    /// The position of each provider's models in `rows`.
    named: HashMap<(Option<String>, String), usize>,
    left_out: Vec<LeftOut>,
    mistakes: Vec<Mistake>,
}

impl<'a> Importer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            lines: Lines::of(text),
            models: 0,
            taken: 0,
            rows: Vec::new(),
            named: HashMap::new(),
            left_out: Vec::new(),
            mistakes: Vec::new(),
        }
    }

    /// Adds the rows of one model, which stands at `value` in the file.
    pub(super) fn take(&mut self, value: Value<'_>, model: &str, rows: Vec<Row>) {
        let Some(first) = rows.first() else { return };
        let problem = rows
            .iter()
            .find_map(|row| file::rates_problem(&row.card.rates, row.input_only))
            .map(|_| "has no price of input and output, and none of anything else that is counted");
        if let Some(why) = problem {
            return self.leave_out(value, model, None, why);
        }
        let name = (first.provider.clone(), first.model.clone());
        if let Some(earlier) = self.named.get(&name).and_then(|at| self.rows.get(*at)) {
            let why = match earlier == first {
                true => "is named twice, with the same prices",
                false => {
                    "is named twice: another model with this name was imported with other prices"
                }
            };
            return self.leave_out(value, model, None, why);
        }
        self.named.insert(name, self.rows.len());
        self.taken += 1;
        self.rows.extend(rows);
    }

    pub(super) fn leave_out(
        &mut self,
        at: Value<'_>,
        model: &str,
        field: Option<&str>,
        why: &'static str,
    ) {
        self.left_out.push(LeftOut {
            line: self.lines.line(at),
            model: model.to_owned(),
            field: field.map(str::to_owned),
            why,
        });
    }

    /// An amount of money. Anything else is recorded as a mistake.
    pub(super) fn amount(&mut self, value: Value<'_>, model: &str, field: &str) -> Option<Decimal> {
        let amount = amount(value);
        if amount.is_none() {
            let problem = "expected a price: a number, not below zero, of at most 28 decimals";
            self.mistake(value, model, field, problem);
        }
        amount
    }

    pub(super) fn mistake(
        &mut self,
        at: Value<'_>,
        model: &str,
        field: &str,
        problem: &'static str,
    ) {
        let key = format!("{model}.{field}");
        self.mistakes.push(Mistake { line: self.lines.line(at), key, problem });
    }

    pub(super) fn finish(
        mut self,
        source: &'static str,
        file: &str,
        version: Date,
    ) -> Result<Imported, ImportError> {
        if !self.mistakes.is_empty() {
            self.mistakes.sort_by_key(|mistake| mistake.line);
            return Err(ImportError::Mistakes { file: file.to_owned(), mistakes: self.mistakes });
        }
        let about = format!(
            "Imported from {source}: {} of {} models. What has no rate here follows its rules:\n\
             cached input costs what input costs, other than text what text costs.",
            self.taken, self.models
        );
        let no_file = |why: String| ImportError::NoFile(why);
        let text = write::write(&self.rows, version, &about)
            .ok_or_else(|| no_file("a price has more digits than a decimal holds".to_owned()))?;
        // Reads the written file back, to be sure that it is valid.
        let read = file::read("import", file, &text, &mut file::Names::new())
            .map_err(|error| no_file(error.to_string()))?;
        self.left_out.sort_by_key(|left_out| left_out.line);
        Ok(Imported {
            source,
            models: self.models,
            taken: self.taken,
            rows: read.rows,
            left_out: self.left_out,
            text,
        })
    }
}

/// A row in US dollars with names only. It follows the rules of imported files.
pub(super) fn row(provider: &str, model: &str) -> Row {
    Row {
        price_id: String::new(),
        provider: Some(provider.to_owned()),
        model: model.to_owned(),
        aliases: Vec::new(),
        from: None,
        until: None,
        currency: Currency::USD,
        input_only: false,
        cache_without_rate: CacheWithoutRate::Input,
        modality_without_rate: ModalityWithoutRate::Text,
        card: RateCard::default(),
        long_context: Vec::new(),
        off_peak: None,
        when: BTreeMap::new(),
        stated: MeterSet::default(),
    }
}
