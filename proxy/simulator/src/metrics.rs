//! The engine's own metrics, with vLLM's names.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use crate::served::Served;

/// Models with series of their own; the rest share [`OTHER`].
const MODELS_MAX: usize = 100;
const OTHER: &str = "other";

const TIME_TO_FIRST_TOKEN: [f64; 22] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
];
const TIME_PER_OUTPUT_TOKEN: [f64; 19] = [
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
];
const LATENCY: [f64; 21] = [
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
];

/// vLLM's `finished_reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Stop,
    Length,
    Abort,
    Error,
}

impl Reason {
    const ALL: [Self; 4] = [Self::Stop, Self::Length, Self::Abort, Self::Error];

    const fn word(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Abort => "abort",
            Self::Error => "error",
        }
    }
}

/// All series.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    models: Mutex<BTreeMap<String, Tally>>,
}

#[derive(Debug)]
struct Tally {
    running: u64,
    prompt_tokens: u64,
    cached_tokens: u64,
    generation_tokens: u64,
    ended: [u64; Reason::ALL.len()],
    time_to_first_token: Histogram,
    time_per_output_token: Histogram,
    latency: Histogram,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            running: 0,
            prompt_tokens: 0,
            cached_tokens: 0,
            generation_tokens: 0,
            ended: [0; Reason::ALL.len()],
            time_to_first_token: Histogram::new(&TIME_TO_FIRST_TOKEN),
            time_per_output_token: Histogram::new(&TIME_PER_OUTPUT_TOKEN),
            latency: Histogram::new(&LATENCY),
        }
    }
}

impl Metrics {
    pub(crate) fn started(&self, model: &str) {
        self.with(model, |tally| tally.running += 1);
    }

    pub(crate) fn ended(&self, served: &Served, reason: Reason, duration: f64) {
        self.with(&served.model, |tally| {
            tally.running = tally.running.saturating_sub(1);
            tally.prompt_tokens += served.input_tokens;
            tally.cached_tokens += served.cached_tokens;
            tally.generation_tokens += served.output_tokens;
            if let Some(ended) = tally.ended.get_mut(reason as usize) {
                *ended += 1;
            }
            tally.latency.observe(duration);
            if let Some(first) = served.time_to_first_token {
                tally.time_to_first_token.observe(first);
                if served.output_tokens > 1 {
                    let rest = (served.output_tokens - 1) as f64;
                    tally.time_per_output_token.observe((duration - first) / rest);
                }
            }
        });
    }

    fn with(&self, model: &str, change: impl FnOnce(&mut Tally)) {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tally) = models.get_mut(model) {
            return change(tally);
        }
        let name = if models.len() < MODELS_MAX { model } else { OTHER };
        change(models.entry(name.to_owned()).or_default());
    }

    /// The text that `GET /metrics` answers.
    pub(crate) fn render(&self) -> String {
        let models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        let mut page = Exposition { text: String::new(), models: &models };
        page.family("num_requests_running", "gauge", |tally| tally.running);
        page.family("num_requests_waiting", "gauge", |_| 0);
        page.family("prompt_tokens_total", "counter", |tally| tally.prompt_tokens);
        page.family("prompt_tokens_cached_total", "counter", |tally| tally.cached_tokens);
        page.family("prefix_cache_queries_total", "counter", |tally| tally.prompt_tokens);
        page.family("prefix_cache_hits_total", "counter", |tally| tally.cached_tokens);
        page.family("generation_tokens_total", "counter", |tally| tally.generation_tokens);
        page.reasons();
        page.histogram("time_to_first_token_seconds", |tally| &tally.time_to_first_token);
        page.histogram("request_time_per_output_token_seconds", |tally| {
            &tally.time_per_output_token
        });
        page.histogram("e2e_request_latency_seconds", |tally| &tally.latency);
        page.text
    }
}

#[derive(Debug)]
struct Histogram {
    bounds: &'static [f64],
    /// One more than bounds: the last is above all of them.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    fn observe(&mut self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.sum += value;
    }
}

/// Prometheus text. Writing to a string cannot fail, so the results are dropped.
struct Exposition<'a> {
    text: String,
    models: &'a BTreeMap<String, Tally>,
}

impl Exposition<'_> {
    fn head(&mut self, name: &str, kind: &str) {
        _ = writeln!(self.text, "# HELP vllm:{name} Simulated.\n# TYPE vllm:{name} {kind}");
    }

    fn family(&mut self, name: &str, kind: &str, value: impl Fn(&Tally) -> u64) {
        self.head(name, kind);
        for (model, tally) in self.models {
            _ = writeln!(self.text, "vllm:{name}{{{}}} {}", labels(model), value(tally));
        }
    }

    fn reasons(&mut self) {
        self.head("request_success_total", "counter");
        for (model, tally) in self.models {
            for (reason, count) in Reason::ALL.into_iter().zip(tally.ended) {
                let (labels, reason) = (labels(model), reason.word());
                _ = writeln!(
                    self.text,
                    "vllm:request_success_total{{{labels},finished_reason=\"{reason}\"}} {count}"
                );
            }
        }
    }

    fn histogram(&mut self, name: &str, pick: impl Fn(&Tally) -> &Histogram) {
        self.head(name, "histogram");
        for (model, tally) in self.models {
            let (labels, histogram) = (labels(model), pick(tally));
            let mut total = 0;
            let bounds = histogram.bounds.iter().map(f64::to_string);
            let bounds = bounds.chain(std::iter::once("+Inf".to_owned()));
            for (bound, count) in bounds.zip(&histogram.counts) {
                total += count;
                _ = writeln!(self.text, "vllm:{name}_bucket{{{labels},le=\"{bound}\"}} {total}");
            }
            _ = writeln!(self.text, "vllm:{name}_sum{{{labels}}} {}", histogram.sum);
            _ = writeln!(self.text, "vllm:{name}_count{{{labels}}} {total}");
        }
    }
}

fn labels(model: &str) -> String {
    let model = model.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("engine=\"0\",model_name=\"{model}\"")
}
