//! Adds up the usage of the requests of a batch.

use std::collections::BTreeMap;

use taximeter_ledger::RecordUsage;
use taximeter_pricing::{Condition, Pass, Source, Usage};

/// Most models of one batch.
const MODELS_MAX: usize = 16;

/// Most kinds of units of one model.
const UNITS_MAX: usize = 64;

/// The value of a condition that was not the same for all requests. It is no value that a price file
/// has, so the sum is not priced under a condition that held for a part of it.
const MIXED: &str = "mixed";

/// What was used, by model.
#[derive(Debug, Default)]
pub(super) struct UsageSums {
    models: Vec<(Option<String>, RecordUsage)>,
    /// The further model runs, by model.
    passes: Vec<(Option<String>, RecordUsage)>,
    /// `None` before the first request.
    conditions: Option<BTreeMap<Condition, String>>,
}

/// What all used together.
#[derive(Debug)]
pub(super) struct Used {
    /// The model, if it was the same for all.
    pub(super) model: Option<String>,
    pub(super) usage: RecordUsage,
    /// What each model used, if there were several.
    pub(super) models: Vec<Pass>,
}

impl UsageSums {
    /// Adds what a request used of `model`, and its further model runs. `None` if the sum cannot be
    /// kept.
    pub(super) fn add(&mut self, model: Option<String>, mut usage: RecordUsage) -> Option<()> {
        self.add_conditions(std::mem::take(&mut usage.conditions));
        for Pass { model, usage } in usage.passes.take().into_iter().flatten() {
            // The conditions of all requests stand beside their sum.
            let conditions = BTreeMap::new();
            let usage = RecordUsage { conditions, ..RecordUsage::of(&usage, Source::Reported) };
            add_to(&mut self.passes, model, usage)?;
        }
        add_to(&mut self.models, model, usage)
    }

    fn add_conditions(&mut self, conditions: BTreeMap<Condition, String>) {
        let Some(all) = &mut self.conditions else {
            self.conditions = Some(conditions);
            return;
        };
        for (condition, value) in all.iter_mut() {
            if conditions.get(condition) != Some(value) {
                MIXED.clone_into(value);
            }
        }
        for condition in conditions.into_keys() {
            all.entry(condition).or_insert_with(|| MIXED.to_owned());
        }
    }

    /// What all used together. `None` if the sum cannot be kept.
    pub(super) fn sum(self) -> Option<Used> {
        let passes: Vec<_> = self.passes.into_iter().map(pass).collect();
        let models = if self.models.len() > 1 {
            self.models.iter().cloned().map(pass).collect()
        } else {
            Vec::new()
        };
        let mut parts = self.models.into_iter();
        let (first, mut usage) = parts.next().unwrap_or_else(|| {
            (None, RecordUsage { source: Source::None, ..RecordUsage::default() })
        });
        for (_, part) in parts {
            add(&mut usage, part)?;
        }
        usage.passes = (!passes.is_empty()).then_some(passes);
        usage.conditions = self.conditions.unwrap_or_default();
        Some(Used { model: first.filter(|_| models.is_empty()), usage, models })
    }
}

fn pass((model, usage): (Option<String>, RecordUsage)) -> Pass {
    Pass { model, usage: Usage::from(&usage) }
}

fn add_to(
    models: &mut Vec<(Option<String>, RecordUsage)>,
    model: Option<String>,
    usage: RecordUsage,
) -> Option<()> {
    let is_full = models.len() == MODELS_MAX;
    match models.iter_mut().find(|(it, _)| *it == model) {
        Some((_, sum)) => add(sum, usage),
        None if is_full => None,
        None => {
            models.push((model, usage));
            Some(())
        }
    }
}

/// Adds the usage of another request. `None` if a number becomes too large.
fn add(sum: &mut RecordUsage, other: RecordUsage) -> Option<()> {
    for (sum, other) in [
        (&mut sum.input_tokens, other.input_tokens),
        (&mut sum.cache_read_input_tokens, other.cache_read_input_tokens),
        (&mut sum.cache_write_input_tokens, other.cache_write_input_tokens),
        (&mut sum.cache_write_long_input_tokens, other.cache_write_long_input_tokens),
        (&mut sum.output_tokens, other.output_tokens),
        (&mut sum.reasoning_output_tokens, other.reasoning_output_tokens),
    ] {
        *sum = add_up(*sum, other)?;
    }
    for (modality, tokens) in other.modalities.into_iter().flatten() {
        let sum = sum.modalities.get_or_insert_default().entry(modality).or_default();
        *sum = sum.checked_add(tokens)?;
    }
    for (unit, count) in other.units {
        let sum = sum.units.entry(unit).or_default();
        *sum = sum.checked_add(count)?;
    }
    sum.sources.extend(other.sources);
    for (member, flags) in other.flagged {
        add_flags(sum.flagged.entry(member).or_default(), flags);
    }
    add_flags(&mut sum.flags, other.flags);
    (sum.units.len() <= UNITS_MAX).then_some(())
}

/// Keeps the list sorted, each flag once.
fn add_flags<F: Ord>(sum: &mut Vec<F>, flags: Vec<F>) {
    for flag in flags {
        if let Err(at) = sum.binary_search(&flag) {
            sum.insert(at, flag);
        }
    }
}

/// The sum of two numbers that are there or not. `None` if it is too large.
fn add_up(a: Option<u64>, b: Option<u64>) -> Option<Option<u64>> {
    match (a, b) {
        (Some(a), Some(b)) => a.checked_add(b).map(Some),
        (a, b) => Some(a.or(b)),
    }
}
