//! Records what the engine really did. Tests compare a ledger with it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use crate::clock::Clock;
use crate::job::{Finish, Job};
use crate::metrics::{Metrics, Reason};
use crate::served::{End, Served};

/// Answers remembered; beyond it the oldest are forgotten.
const SERVED_MAX: usize = 200_000;

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
