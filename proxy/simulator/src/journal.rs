//! What the engine really did: the truth that a ledger is held against.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::job::{Finish, Job};
use crate::metrics::{Metrics, Reason};

/// Answers remembered; beyond it the oldest are forgotten.
const SERVED_MAX: usize = 200_000;

/// One answer, as the engine saw it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Served {
    /// `x-request-id`, as received.
    pub request_id: Option<String>,
    /// Id of the answer.
    pub id: String,
    /// Path of the request.
    pub route: &'static str,
    /// Model of the request, and of the answer.
    pub model: String,
    /// Whether it was a stream.
    pub stream: bool,
    /// Status of the answer; `None` if it never had a head.
    pub status: Option<u16>,
    /// Tokens of the prompt, the cached ones included.
    pub input_tokens: u64,
    /// Of them, from the cache.
    pub cached_tokens: u64,
    /// Of them, into the cache.
    pub cache_write_tokens: u64,
    /// Tokens generated until the end, the reasoning ones included.
    pub output_tokens: u64,
    /// Of them, reasoning.
    pub reasoning_tokens: u64,
    /// Who ended it.
    pub end: End,
    /// Unix time in seconds when the request had been read.
    pub started_at: f64,
    /// Unix time in seconds of the end: for `Cancelled`, when the engine noticed.
    pub ended_at: f64,
    /// Seconds from start to first token, if there was one.
    pub time_to_first_token: Option<f64>,
}

/// Who ended an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All of it was generated.
    Finished,
    /// The client left first.
    Cancelled,
    /// The engine broke off, refused or erred, as it was told to.
    Failed,
}

/// All that was served.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    served: Mutex<VecDeque<Served>>,
}

impl Journal {
    pub(crate) fn all(&self) -> Vec<Served> {
        let served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        served.iter().cloned().collect()
    }

    fn push(&self, entry: Served) {
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        if served.len() >= SERVED_MAX {
            served.pop_front();
        }
        served.push_back(entry);
    }
}

/// Where visits are written down.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) clock: Clock,
    pub(crate) journal: Journal,
    pub(crate) metrics: Metrics,
}

/// One request while it is served. Dropped before its end, the client has left.
#[derive(Debug)]
pub(crate) struct Visit {
    books: Arc<Books>,
    open: Option<Served>,
    finish: Finish,
    started: Instant,
    first_token: Option<Instant>,
}

impl Visit {
    pub(crate) fn open(
        books: Arc<Books>,
        job: &Job,
        stream: bool,
        request_id: Option<&str>,
        started: Instant,
    ) -> Self {
        books.metrics.started(&job.model);
        let started_at = books.clock.unix(started).as_secs_f64();
        let served = Served {
            request_id: request_id.map(str::to_owned),
            id: job.id.clone(),
            route: job.route.path(),
            model: job.model.clone(),
            stream,
            status: None,
            input_tokens: job.input,
            cached_tokens: job.cached,
            cache_write_tokens: job.cache_written,
            output_tokens: 0,
            reasoning_tokens: 0,
            end: End::Cancelled,
            started_at,
            ended_at: started_at,
            time_to_first_token: None,
        };
        Self { books, open: Some(served), finish: job.finish, started, first_token: None }
    }

    /// The head of the answer leaves.
    pub(crate) fn answered(&mut self, status: u16) {
        if let Some(served) = &mut self.open {
            served.status = Some(status);
        }
    }

    /// So many tokens were generated until now.
    pub(crate) fn generated(&mut self, output_tokens: u64, reasoning_tokens: u64) {
        if output_tokens > 0 && self.first_token.is_none() {
            self.first_token = Some(self.books.clock.now());
        }
        if let Some(served) = &mut self.open {
            served.output_tokens = output_tokens;
            served.reasoning_tokens = reasoning_tokens;
        }
    }

    /// When an answer that is no stream had its first token, which nobody saw.
    pub(crate) fn first_token_at(&mut self, instant: Instant) {
        self.first_token = Some(instant);
    }

    /// Nothing more comes.
    pub(crate) fn close(&mut self, end: End) {
        let Some(mut served) = self.open.take() else { return };
        let now = self.books.clock.now();
        served.end = end;
        served.ended_at = self.books.clock.unix(now).as_secs_f64();
        let first_token = self.first_token.map(|at| at.saturating_duration_since(self.started));
        served.time_to_first_token = first_token.map(|time| time.as_secs_f64());
        let reason = match (end, self.finish) {
            (End::Finished, Finish::Length) => Reason::Length,
            (End::Finished, Finish::Stop | Finish::ToolCall) => Reason::Stop,
            (End::Cancelled, _) => Reason::Abort,
            (End::Failed, _) => Reason::Error,
        };
        let duration = now.saturating_duration_since(self.started).as_secs_f64();
        self.books.metrics.ended(&served, reason, duration);
        self.books.journal.push(served);
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.close(End::Cancelled);
    }
}
