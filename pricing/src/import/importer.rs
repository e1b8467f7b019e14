//! Collects the result of an import: rows, and what was left out.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use jiff::civil::Date;
use rust_decimal::Decimal;
use taximeter_json::Value;

use super::json::{Lines, amount};
use crate::currency::Currency;
use crate::file::{self, BookError};
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
    pub why: Cow<'static, str>,
}

/// Models in the message of an import that took none.
const SHOWN_MAX: usize = 10;

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
    /// The file has models, and none of them could be taken.
    #[error("{file}: no model can be imported{}", shown(file, left_out))]
    Nothing {
        /// Name of the file, as the caller gave it.
        file: String,
        /// Each model with its reason.
        left_out: Vec<LeftOut>,
    },
    /// The imported rows do not make a valid price file.
    #[error("the imported rows do not make a price file: {0}")]
    NoFile(String),
}

fn shown(file: &str, left_out: &[LeftOut]) -> String {
    let mut text = String::new();
    for LeftOut { line, model, why, .. } in left_out.iter().take(SHOWN_MAX) {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{file}:{line}: {model}: {why}");
    }
    let more = left_out.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        let _ = write!(text, "\nand {more} more");
    }
    text
}

/// Collects rows, and what is left out.
pub(super) struct Importer<'a> {
    lines: Lines<'a>,
    /// Number of models in the file.
    pub(super) models: usize,
    taken: usize,
    rows: Vec<Row>,
    /// The position of each provider's models in `rows`.
    named: HashMap<(Option<String>, String), usize>,
    /// The names in `rows`.
    names: file::Names,
    left_out: Vec<LeftOut>,
    /// Wrong values of the model that is being read: the line, the field and what is wrong.
    mistakes: Vec<(usize, String)>,
    /// The parts of that model in `left_out` begin here.
    parts_from: usize,
    version: Date,
}

impl<'a> Importer<'a> {
    pub(super) fn new(text: &'a str, version: Date) -> Self {
        Self {
            lines: Lines::of(text),
            models: 0,
            taken: 0,
            rows: Vec::new(),
            named: HashMap::new(),
            names: file::Names::new(),
            left_out: Vec::new(),
            mistakes: Vec::new(),
            parts_from: 0,
            version,
        }
    }

    /// Adds the rows of one model, which stands at `value` in the file, or leaves the model out with
    /// the reason.
    pub(super) fn take(&mut self, value: Value<'_>, model: &str, rows: Vec<Row>) {
        if let Err((line, why)) = self.check(value, &rows) {
            self.left_out.truncate(self.parts_from);
            self.left_out.push(LeftOut { line, model: model.to_owned(), field: None, why });
        } else {
            if let Some(first) = rows.first() {
                let name = (first.provider.clone(), first.model.clone());
                self.named.insert(name, self.rows.len());
            }
            self.names.extend(rows.iter().flat_map(file::names));
            self.taken += 1;
            self.rows.extend(rows);
        }
        self.mistakes.clear();
        self.parts_from = self.left_out.len();
    }

    /// Errors: why the rows cannot be taken, and the line.
    fn check(&mut self, value: Value<'_>, rows: &[Row]) -> Result<(), (usize, Cow<'static, str>)> {
        if let Some((line, _)) = self.mistakes.first() {
            let wrong: Vec<_> = self.mistakes.iter().map(|(_, wrong)| wrong.as_str()).collect();
            return Err((*line, wrong.join("; ").into()));
        }
        let line = self.lines.line(value);
        let because = |why: &'static str| (line, Cow::Borrowed(why));
        let first = rows.first().ok_or_else(|| because("has no prices"))?;
        if rows.iter().any(|row| file::rates_problem(&row.card.rates, row.input_only).is_some()) {
            return Err(because(
                "has no price of input and output, and none of anything else that is counted",
            ));
        }
        let name = (first.provider.clone(), first.model.clone());
        if let Some(earlier) = self.named.get(&name).and_then(|at| self.rows.get(*at)) {
            return Err(because(match earlier == first {
                true => "is named twice, with the same prices",
                false => {
                    "is named twice: another model with this name was imported with other prices"
                }
            }));
        }
        // Reads the rows back, to be sure that they make a price file.
        let text = write::write(rows, self.version, "")
            .ok_or_else(|| because("has a price with more digits than a decimal holds"))?;
        let BookError::Invalid { problem, .. } =
            match file::read("import", "", &text, &mut file::Names::new()) {
                Err(error) => error,
                Ok(_)
                    if rows.iter().flat_map(file::names).any(|name| self.names.contains(&name)) =>
                {
                    return Err(because("has a name that another imported model has"));
                }
                Ok(_) => return Ok(()),
            };
        Err((line, problem.into()))
    }

    /// Leaves out a part of the prices of the model that is being read.
    pub(super) fn leave_out(&mut self, at: Value<'_>, model: &str, field: &str, why: &'static str) {
        self.left_out.push(LeftOut {
            line: self.lines.line(at),
            model: model.to_owned(),
            field: Some(field.to_owned()),
            why: Cow::Borrowed(why),
        });
    }

    /// Leaves out a model that cannot be read.
    pub(super) fn leave_out_model(&mut self, at: Value<'_>, model: &str, why: &'static str) {
        self.left_out.push(LeftOut {
            line: self.lines.line(at),
            model: model.to_owned(),
            field: None,
            why: Cow::Borrowed(why),
        });
        self.parts_from = self.left_out.len();
    }

    /// An amount of money. Anything else is a mistake.
    pub(super) fn amount(&mut self, value: Value<'_>, field: &str) -> Option<Decimal> {
        let amount = amount(value);
        if amount.is_none() {
            let problem = "expected a price: a number, not below zero, of at most 28 decimals";
            self.mistake(value, field, problem);
        }
        amount
    }

    /// Records a wrong value of the model that is being read. The whole model is left out for it:
    /// its other prices alone would be wrong.
    pub(super) fn mistake(&mut self, at: Value<'_>, field: &str, problem: &str) {
        self.mistakes.push((self.lines.line(at), format!("{field}: {problem}")));
    }

    pub(super) fn finish(
        mut self,
        source: &'static str,
        file: &str,
    ) -> Result<Imported, ImportError> {
        taximeter_collections::sort_by_key(&mut self.left_out, |left_out| left_out.line);
        if self.taken == 0 && !self.left_out.is_empty() {
            let (file, mut left_out) = (file.to_owned(), self.left_out);
            left_out.retain(|one| one.field.is_none());
            return Err(ImportError::Nothing { file, left_out });
        }
        let about = format!(
            "Imported from {source}: {} of {} models. What has no rate here follows its rules:\n\
             cached input costs what input costs, other than text what text costs.",
            self.taken, self.models
        );
        let no_file = |why: String| ImportError::NoFile(why);
        let text = write::write(&self.rows, self.version, &about)
            .ok_or_else(|| no_file("a price has more digits than a decimal holds".to_owned()))?;
        let read = file::read("import", file, &text, &mut file::Names::new())
            .map_err(|error| no_file(error.to_string()))?;
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
