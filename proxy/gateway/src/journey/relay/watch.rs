//! Passes a streamed answer on. Pieces that are ready together leave together, and nothing waits
//! for more. The last bytes leave when the ledger has the entry.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use taximeter_meter::{Delivery, StreamEnd};
use taximeter_net::upstream::Exchange;
use taximeter_system::clock;
use tokio::time::Sleep;

use super::super::refuse::stream_error;
use super::super::settle::{Settlement, Settling};
use super::drain;
use super::fault::{Flush, RelayFault, broken};
use super::pieces::Pieces;
use crate::listen::Worker;

/// An answer being relayed.
pub(super) struct Watch {
    worker: Arc<Worker>,
    upstream: usize,
    /// `None` once the engine's message has ended, or was given up.
    exchange: Option<Exchange>,
    /// The client was told the length that the engine told.
    has_declared_length: bool,
    /// Goes before whatever else comes.
    ready: Pieces,
    /// `None` once settled, and for what is not measured.
    settlement: Option<Settlement>,
    settling: Option<Settling>,
    /// The end mark and what follows it: waits for the ledger.
    held: Pieces,
    /// Given to the client after everything else.
    fault: Option<RelayFault>,
    flush: Flush,
    trailers: Option<HeaderMap>,
    /// When to look again although nothing has come.
    alarm: Pin<Box<Sleep>>,
    last_read: Instant,
    /// When the ledger is to be told what it has used so far; `None` where that is not known.
    progress_at: Option<Instant>,
}

/// Between two times that the ledger is told what a stream has used so far.
const PROGRESS_PERIOD: Duration = Duration::from_secs(1);

impl Watch {
    pub(super) fn new(
        worker: Arc<Worker>,
        upstream: usize,
        exchange: Exchange,
        settlement: Option<Settlement>,
    ) -> Self {
        let now = clock::now();
        let started = settlement
            .as_ref()
            .filter(|settlement| settlement.is_stream())
            .and_then(Settlement::started);
        let goes_on = settlement.as_ref().is_some_and(Settlement::goes_on);
        let period = if goes_on { Duration::ZERO } else { PROGRESS_PERIOD };
        let progress_at = started.map(|started| started + period);
        let limit = worker.gateway.config.limits.upstream_idle_timeout;
        let limit = settlement.as_ref().map_or(limit, |settlement| settlement.time_left(limit));
        let limit = progress_at.map_or(limit, |at| at.saturating_duration_since(now).min(limit));
        Self {
            worker,
            upstream,
            exchange: Some(exchange),
            has_declared_length: true,
            ready: Pieces::default(),
            settlement,
            settling: None,
            held: Pieces::default(),
            fault: None,
            flush: Flush::default(),
            trailers: None,
            alarm: Box::pin(tokio::time::sleep(limit)),
            last_read: now,
            progress_at,
        }
    }

    /// The client was told no length: something is taken out or put in.
    pub(super) fn of_any_length(mut self) -> Self {
        self.has_declared_length = false;
        self
    }

    /// Goes on behind `ready`, and behind what is `held` until the ledger has it.
    pub(super) fn after(mut self, ready: Pieces, held: Pieces) -> Self {
        (self.ready, self.held) = (ready, held);
        self
    }

    /// Whether nothing more will come: lets hyper put the end of the message into the last write.
    pub(super) fn is_end(&self) -> bool {
        self.exchange.is_none()
            && self.settling.is_none()
            && self.held.len() == 0
            && self.fault.is_none()
            && self.trailers.is_none()
    }

    /// The next bytes for the client.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RelayFault>>> {
        loop {
            if let Some(settling) = &mut self.settling {
                let receipt = ready!(Pin::new(settling).poll(cx));
                self.settling = None;
                let mut last = Pieces::default();
                if let Some(comment) = receipt.comment {
                    last.push(comment);
                }
                last.push(std::mem::take(&mut self.held).join());
                if last.len() > 0 {
                    return Poll::Ready(Some(Ok(Frame::data(last.join()))));
                }
            }
            if self.exchange.is_none() {
                if self.fault.is_some() {
                    ready!(self.flush.poll(cx));
                }
                return Poll::Ready(match (self.fault.take(), self.trailers.take()) {
                    (Some(fault), _) => Some(Err(fault)),
                    (None, Some(trailers)) => Some(Ok(Frame::trailers(trailers))),
                    (None, None) => None,
                });
            }
            let out = self.read(cx);
            if out.len() > 0 {
                return Poll::Ready(Some(Ok(Frame::data(out.join()))));
            }
            if self.settling.is_none() && self.exchange.is_some() {
                return Poll::Pending;
            }
        }
    }

    /// Takes what is ready, up to the buffer's size, and starts to settle when the answer has
    /// ended.
    fn read(&mut self, cx: &mut Context<'_>) -> Pieces {
        let mut out = std::mem::take(&mut self.ready);
        let bytes_max = self.worker.gateway.config.limits.relay_buffer_bytes;
        if self.settlement.as_ref().is_some_and(Settlement::is_cut) {
            self.give_up(RelayFault::Shutdown, StreamEnd::Shutdown, "draining", &mut out);
            return out;
        }
        let mut read_at = None;
        while out.len() + self.held.len() < bytes_max {
            let Some(exchange) = &mut self.exchange else { break };
            match exchange.poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    let now = *read_at.get_or_insert_with(clock::now);
                    self.take(now, frame, &mut out);
                }
                Poll::Ready(None) => self.ended(cx, &mut out),
                Poll::Ready(Some(Err(fault))) => self.broke(fault, &mut out),
                Poll::Pending => break,
            }
        }
        match read_at {
            Some(now) => {
                self.last_read = now;
                self.say_progress(now);
            }
            None if self.exchange.is_some() => self.wait(cx, &mut out),
            None => {}
        }
        if self.held.len() > 0 {
            self.settle(StreamEnd::Clean);
        }
        out
    }

    fn take(&mut self, now: Instant, frame: Frame<Bytes>, out: &mut Pieces) {
        match frame.into_data() {
            Ok(data) => {
                let Delivery { forward, hold } = match &mut self.settlement {
                    Some(settlement) => settlement.on_bytes(now, data),
                    None => Delivery { forward: data, hold: Bytes::new() },
                };
                // With a known length the client has the whole answer when it has its last byte.
                let last = self.settlement.is_some()
                    && self.exchange.as_ref().is_some_and(Exchange::is_end);
                if last {
                    self.held.push(forward)
                } else {
                    out.push(forward)
                }
                self.held.push(hold);
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    self.trailers = Some(trailers);
                }
            }
        }
    }

    /// The engine's message has ended: its connection goes back to the pool.
    fn ended(&mut self, cx: &mut Context<'_>, out: &mut Pieces) {
        if let Some(mut exchange) = self.exchange.take()
            && let Some(link) = exchange.take_link(cx)
        {
            self.worker.pool.put(self.upstream, clock::now(), link);
        }
        self.release(out);
        self.settle(StreamEnd::Clean);
    }

    fn broke(&mut self, fault: hyper::Error, out: &mut Pieces) {
        let end = broken(&self.worker.gateway, self.upstream, &fault);
        self.exchange = None;
        self.release(out);
        self.fault = Some(RelayFault::UpstreamReset(fault));
        self.settle(end);
    }

    /// What was withheld to see whether it is ours to take out: it was not, or there is no more of
    /// it.
    fn release(&mut self, out: &mut Pieces) {
        if let Some(settlement) = &mut self.settlement {
            out.push(settlement.take_withheld());
        }
    }

    /// Nothing was ready: has the engine been silent, or the request running, for too long?
    fn wait(&mut self, cx: &mut Context<'_>, out: &mut Pieces) {
        let limit = self.worker.gateway.config.limits.upstream_idle_timeout;
        while self.alarm.as_mut().poll(cx).is_ready() {
            let deadline = self.settlement.as_ref().and_then(Settlement::deadline);
            let silent = self.last_read + limit;
            let due = deadline.map_or(silent, |deadline| deadline.min(silent));
            let now = clock::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                let code = "request_timeout";
                self.give_up(RelayFault::Deadline, StreamEnd::Deadline, code, out);
                return;
            }
            if now >= due {
                let fault = RelayFault::UpstreamStalled;
                self.give_up(fault, StreamEnd::UpstreamStalled, "upstream_timeout", out);
                return;
            }
            self.say_progress(now);
            let next = self.progress_at.map_or(due, |at| at.min(due));
            self.alarm.set(tokio::time::sleep(next - now));
        }
    }

    fn say_progress(&mut self, now: Instant) {
        let Some(due) = self.progress_at.filter(|due| now >= *due) else { return };
        if let Some(settlement) = &mut self.settlement {
            settlement.say_progress(now);
        }
        let next = due + PROGRESS_PERIOD;
        self.progress_at = Some(if next > now { next } else { now + PROGRESS_PERIOD });
    }

    /// Ends the answer ourselves: an error event where the client can read one, then a cut. An event
    /// that reaches to the length which the client was told would make the answer look whole.
    fn give_up(&mut self, fault: RelayFault, end: StreamEnd, code: &'static str, out: &mut Pieces) {
        let left = self.exchange.take().and_then(|exchange| exchange.left());
        let left_bytes = left.filter(|_| self.has_declared_length).unwrap_or(u64::MAX);
        self.release(out);
        if let Some(shape) = self.settlement.as_ref().and_then(Settlement::stream_shape) {
            let event = stream_error(shape, code, &fault.to_string());
            if (event.len() as u64) < left_bytes {
                out.push(event);
            }
        }
        self.fault = Some(fault);
        self.settle(end);
    }

    /// The client does not read.
    pub(super) fn stall(mut self) {
        self.settle(StreamEnd::ClientStalled);
    }

    fn settle(&mut self, end: StreamEnd) {
        if let Some(settlement) = self.settlement.take() {
            self.settling = Some(settlement.settle(end));
        }
    }
}

/// The client left before the end of the answer, or was given up.
impl Drop for Watch {
    fn drop(&mut self) {
        if let (Some(exchange), Some(settlement)) = (self.exchange.take(), self.settlement.take()) {
            drain::dropped(self.worker.clone(), self.upstream, exchange, settlement);
        }
    }
}
