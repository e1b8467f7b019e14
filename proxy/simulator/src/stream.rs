//! Sends a stream of events with one timer and one buffer that is reused.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::behaviour::Fault;
use crate::broken::Broken;
use crate::clock::Clock;
use crate::job::Job;
use crate::journal::Visit;
use crate::served::End;
use crate::shapes::{Page, Shape, Slot, Template, write_ids, write_totals};

/// One answer on its way. Dropped before its end, its visit is written down as cancelled.
pub(crate) struct Stream {
    job: Job,
    shape: &'static dyn Shape,
    visit: Visit,
    reasoning: Template,
    content: Template,
    page: Page,
    next: Next,
    /// Tokens sent of each choice.
    tokens: u64,
    chunks: u64,
    pace: Pace,
    timer: Pin<Box<Sleep>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Opening,
    Chunk,
    /// What was written has to reach the client before the connection breaks.
    Break,
    End,
}

impl Stream {
    pub(crate) fn new(
        job: Job,
        shape: &'static dyn Shape,
        visit: Visit,
        clock: Clock,
        started: Instant,
    ) -> Self {
        let pace = Pace::new(&job, clock, started);
        Self {
            reasoning: shape.reasoning(&job),
            content: shape.content(&job),
            page: Page::default(),
            next: Next::Opening,
            tokens: 0,
            chunks: 0,
            timer: Box::pin(sleep_until(pace.due)),
            pace,
            job,
            shape,
            visit,
        }
    }

    /// The next bytes; `None` is the clean end.
    pub(crate) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Broken>>> {
        match self.next {
            Next::Opening => {
                self.next = Next::Chunk;
                self.visit.answered(200);
                self.shape.open(&self.job, &mut self.page);
                let opening = self.page.take();
                if opening.is_empty() {
                    return self.poll_next(context);
                }
                Poll::Ready(Some(Ok(opening)))
            }
            Next::Chunk => self.poll_chunk(context),
            Next::Break => {
                self.next = Next::End;
                Poll::Ready(Some(Err(Broken)))
            }
            Next::End => Poll::Ready(None),
        }
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        match self.job.behaviour.fault {
            Some(Fault::StallAfter(after)) if after <= self.chunks => return Poll::Pending,
            Some(Fault::DieAfter(after)) if after <= self.chunks => {
                self.end(Next::Break, End::Failed);
                // Only a body that waits is flushed; what was sent before has to arrive.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Some(Fault::EndAfter(after)) if after <= self.chunks => {
                self.end(Next::End, End::Failed);
                return Poll::Ready(None);
            }
            Some(Fault::ErrorEventAfter(after)) if after <= self.chunks => {
                self.end(Next::End, End::Failed);
                self.shape.fail(&self.job, &mut self.page);
                return Poll::Ready(Some(Ok(self.page.take())));
            }
            _ => {}
        }
        if self.tokens == 0 || self.tokens < self.job.output {
            ready!(self.pace.poll(&mut self.timer, context));
        }
        if self.tokens < self.job.output {
            self.chunk();
            self.pace.advance();
        } else {
            self.end(Next::End, End::Finished);
            self.shape.close(&self.job, &mut self.page);
        }
        Poll::Ready(Some(Ok(self.page.take())))
    }

    /// Writes one chunk of each choice.
    fn chunk(&mut self) {
        let Self { job, page, .. } = self;
        let reasons = self.tokens < job.reasoning;
        let (template, limit, skip) = if reasons {
            (&self.reasoning, job.reasoning, 0)
        } else {
            (&self.content, job.output, job.reasoning)
        };
        let until = (self.tokens + job.behaviour.chunk_tokens.max(1)).min(limit);
        let range = self.tokens - skip..until - skip;
        for choice in 0..job.choices {
            let range = range.clone();
            page.chunk(template, choice, |slot, out| match slot {
                Slot::Text if reasons => job.write_reasoning(choice, range.clone(), out),
                Slot::Text => job.write_content(choice, range.clone(), out),
                Slot::Ids => write_ids(self.tokens..until, out),
                Slot::Totals => write_totals(job, until, out),
                Slot::Number => Ok(()),
            });
        }
        self.tokens = until;
        self.chunks += 1;
        if reasons && until == limit {
            self.shape.turn(job, page);
        }
        let reasoning = until.min(job.reasoning);
        self.visit.generated(job.choices * until, job.choices * reasoning);
    }

    fn end(&mut self, next: Next, end: End) {
        self.next = next;
        self.visit.close(end);
    }
}

/// When chunks are due. Late ones do not push the later ones back: an engine does not wait.
struct Pace {
    due: Instant,
    gap: Duration,
    jitter: Duration,
    random: u64,
}

impl Pace {
    fn new(job: &Job, clock: Clock, started: Instant) -> Self {
        let behaviour = &job.behaviour;
        let mut due = started + behaviour.prefill;
        if behaviour.in_step {
            let since = due.saturating_duration_since(clock.epoch).as_nanos();
            let gap = behaviour.gap.as_nanos().max(1);
            let rest = gap - 1 - (since.saturating_sub(1) % gap);
            due += Duration::from_nanos(u64::try_from(rest).unwrap_or(0));
        }
        Self { due, gap: behaviour.gap, jitter: behaviour.jitter, random: job.seed | 1 }
    }

    /// Ready when the next chunk is due.
    fn poll(&self, timer: &mut Pin<Box<Sleep>>, context: &mut Context<'_>) -> Poll<()> {
        if timer.deadline() != self.due {
            timer.as_mut().reset(self.due);
        }
        timer.as_mut().poll(context)
    }

    fn advance(&mut self) {
        self.due += self.gap;
        if !self.jitter.is_zero() {
            // Xorshift: as even as a jitter needs to be, and the same in every run.
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            let from_0_to_2 = (self.random >> 40) as f64 / (1_u64 << 23) as f64;
            // Time does not run backwards, so a jitter beyond the gap only delays.
            self.due -= self.jitter.min(self.gap);
            self.due += self.jitter.mul_f64(from_0_to_2);
        }
    }
}
