//! The settlement of one request, from its reservation to its post or void. It writes exactly one
//! of them. A settlement that is dropped records that the client has left.

mod batch;
mod completing;
mod count;
mod ending;
mod head;
pub mod in_flight;
mod passing;
mod plain;
mod progress;
mod record;
mod region;
mod running;
mod settling;
mod shown;
mod told;
mod unused;
mod usage;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, response};
use taximeter_ledger::{TenantId, VoidReason};
use taximeter_meter::{Delivery, Framing, Hidden, Setup, StreamEnd, Wire};
use taximeter_net::concurrency::Permit;
use taximeter_system::clock;
use taximeter_telemetry::ended::Try;

use super::identify::Call;
use super::refuse::{Refusal, StreamShape};
use super::route::Chosen;
use crate::gateway::Gateway;
use crate::listen::Peer;
use crate::live::{RequestInfo, Stage};
use head::read_head;
use in_flight::{AnswerHead, Asked, InFlight, InFlightStage, Prompt};
use shown::Shown;
use told::ToldStream;

pub(crate) use record::Receipt;
pub(crate) use settling::Settling;

/// One request's open settlement, or what the answer to a free one shows of an earlier request.
pub struct Settlement(Option<Work>);

/// What there is to settle.
enum Work {
    /// A request with a reservation.
    Ledger(Box<InFlight>),
    /// A free request, whose answer may complete another one.
    Shown(Box<Shown>),
}

impl Settlement {
    /// Opens the settlement of a request that has just been reserved.
    pub fn new(
        gateway: Arc<Gateway>,
        peer: Arc<Peer>,
        call: Call,
        chosen: &mut Chosen,
        permit: Option<Permit<TenantId>>,
    ) -> Self {
        gateway.telemetry.metrics.settlement_opened();
        let info = RequestInfo {
            id: call.id,
            request_id: call.request_id.clone(),
            tenant: call.caller.tenant.clone(),
            request_model: chosen.request_model.clone(),
            upstream: gateway.upstream_name(chosen.index),
            route: call.route.template,
            stream: chosen.stream,
            started: call.started,
            started_at: call.started_at,
        };
        let live = gateway.live.begin(info, gateway.running(chosen.index).clone());
        let asked = Asked {
            upstream: chosen.index,
            request_model: chosen.request_model.clone(),
            service_tier: chosen.service_tier.take(),
            stream: chosen.stream,
            background: chosen.background,
            context: chosen.context,
            conversation: chosen.conversation.take(),
            choices: chosen.choices,
            max_tokens: chosen.max_tokens,
            parameters: std::mem::take(&mut chosen.parameters),
            captured: chosen.captured.take(),
            setup: Setup {
                wire: call.wire(),
                dialect: chosen.dialect,
                started_at: call.started,
                hidden: chosen.hidden,
                has_one_prompt: chosen.has_one_prompt,
            },
        };
        let (kept, held) = (chosen.kept.take(), chosen.held.take());
        Self(Some(Work::Ledger(Box::new(InFlight {
            gateway,
            prompt: Prompt::new(call.wire(), kept, chosen.body_bytes, held),
            call,
            peer,
            permit,
            live,
            asked,
            tries: Vec::new(),
            stage: InFlightStage::Reserved,
            refused: None,
            told: ToldStream::default(),
        }))))
    }

    /// What the answer to a request that is on no ledger may complete; `None` if its route shows no
    /// usage.
    pub(crate) fn of_shown(gateway: &Arc<Gateway>, call: &Call, chosen: &Chosen) -> Option<Self> {
        Some(Self(Some(Work::Shown(Box::new(Shown::new(gateway, call, chosen)?)))))
    }

    fn in_flight(&self) -> Option<&InFlight> {
        match &self.0 {
            Some(Work::Ledger(in_flight)) => Some(in_flight),
            Some(Work::Shown(_)) | None => None,
        }
    }

    fn in_flight_mut(&mut self) -> Option<&mut InFlight> {
        match &mut self.0 {
            Some(Work::Ledger(in_flight)) => Some(in_flight),
            Some(Work::Shown(_)) | None => None,
        }
    }

    /// It is on the ledger.
    pub fn admitted(&mut self, now: Instant) {
        if let Some(in_flight) = self.in_flight_mut() {
            in_flight.call.stage_times.admitted = Some(now);
        }
    }

    /// The client will be told this in place of an answer.
    pub fn refused(&mut self, refusal: &Refusal) {
        if let Some(in_flight) = self.in_flight_mut() {
            in_flight.refused = Some((refusal.status().0.as_u16(), refusal.code()));
        }
    }

    /// The first byte goes upstream now; from here on the engine may do work.
    pub fn sent(&mut self, now: Instant) {
        if let Some(in_flight) = self.in_flight_mut() {
            in_flight.send(now);
            in_flight.live.reached(Stage::Sent);
            in_flight.prompt.count_characters();
            in_flight.begin_input();
            in_flight.prompt.keep_short();
        }
    }

    /// Nothing of it was taken after all, by this cause; it is tried once more.
    pub(crate) fn tried(&mut self, cause: &'static str) {
        if let Some(in_flight) = self.in_flight_mut() {
            in_flight.tries.push(Try { ended: clock::now(), cause });
            in_flight.take_back();
            in_flight.live.reached(Stage::Reserved);
        }
    }

    /// The request goes on without our question for usage: its answer is what the client asked for.
    pub(crate) fn unasked(&mut self) {
        if let Some(open) = self.in_flight_mut() {
            open.asked.setup.hidden = Hidden::default();
        }
    }

    /// The engine's head has come.
    pub fn answered(&mut self, status: u16, headers: &HeaderMap) {
        if let Some(Work::Shown(shown)) = &mut self.0 {
            shown.on_head(status, headers);
        }
        if let Some(in_flight) = self.in_flight_mut() {
            let wants_receipt = in_flight.call.receipt;
            in_flight.begin_answer(|meter| {
                read_head(meter, status, headers);
                let framing = meter.framing().filter(|_| (200..300).contains(&status));
                // Some routes stream without being asked to, and only events can have comments.
                let owes_receipt = wants_receipt && framing == Some(Framing::Events);
                AnswerHead { status, streams: framing.is_some(), owes_receipt }
            });
            in_flight.live.reached(Stage::Answered);
        }
    }

    /// Bytes of the answer, as they came: what passes now and what waits for the ledger.
    pub(crate) fn on_bytes(&mut self, now: Instant, data: Bytes) -> Delivery {
        match &mut self.0 {
            Some(Work::Ledger(in_flight)) => in_flight.on_bytes(now, data),
            Some(Work::Shown(shown)) => shown.on_bytes(now, data),
            None => Delivery { forward: data, hold: Bytes::new() },
        }
    }

    /// What the meter still withholds.
    pub(crate) fn take_withheld(&mut self) -> Bytes {
        match &mut self.0 {
            Some(Work::Ledger(in_flight)) => in_flight
                .answering_mut()
                .map(|answering| answering.meter.take_withheld())
                .unwrap_or_default(),
            Some(Work::Shown(shown)) => shown.take_withheld(),
            None => Bytes::new(),
        }
    }

    /// When the whole request must have ended; `None` once it has.
    pub fn deadline(&self) -> Option<Instant> {
        let in_flight = self.in_flight()?;
        Some(in_flight.call.started + in_flight.gateway.config.limits.request_timeout)
    }

    /// `limit`, or less where the whole request's time ends before.
    pub(crate) fn time_left(&self, limit: Duration) -> Duration {
        let deadline = self.deadline();
        deadline.map_or(limit, |at| at.saturating_duration_since(clock::now()).min(limit))
    }

    /// Whether the whole request has taken longer than allowed.
    pub(crate) fn is_overdue(&self) -> bool {
        self.deadline().is_some_and(|deadline| clock::now() >= deadline)
    }

    /// Whether it would end because the client left, and nobody else ended it.
    pub(crate) fn is_left(&self) -> bool {
        let in_flight = self.in_flight();
        in_flight.is_some_and(|in_flight| !in_flight.peer.has_stalled() && !in_flight.peer.is_cut())
    }

    /// The client has left, and what still comes of the answer is read for its usage alone.
    pub(crate) fn client_left(&mut self) {
        if let Some(answering) = self.in_flight_mut().and_then(InFlight::answering_mut) {
            answering.meter.client_left();
        }
    }

    /// Whether it is a stream, so that what it has used so far is known while it runs.
    pub(crate) fn is_stream(&self) -> bool {
        self.in_flight().is_some_and(|in_flight| in_flight.is_stream())
    }

    /// Whether its answer goes on after it, so that the ledger is to know early whose it is.
    pub(crate) fn goes_on(&self) -> bool {
        self.in_flight().is_some_and(|in_flight| in_flight.asked.background)
    }

    /// Tells the ledger what it has used so far.
    pub(crate) fn say_progress(&mut self, now: Instant) {
        if let Some(in_flight) = self.in_flight_mut() {
            in_flight.say_progress(now);
        }
    }

    /// When it was admitted; `None` once it has ended.
    pub fn started(&self) -> Option<Instant> {
        self.in_flight().map(|in_flight| in_flight.call.started)
    }

    /// Whether the gateway wants this stream to end now.
    pub(crate) fn is_cut(&self) -> bool {
        self.in_flight().is_some_and(|in_flight| in_flight.peer.is_cut())
    }

    /// Whether the answer is read, so that it must come in a coding that we can undo.
    pub(crate) fn is_read(&self) -> bool {
        match &self.0 {
            Some(Work::Ledger(in_flight)) => in_flight.call.wire() != Wire::Opaque,
            Some(Work::Shown(_)) => true,
            None => false,
        }
    }

    /// Whether the answer is encoded, so that nothing can be taken out of it or added.
    pub(crate) fn is_encoded(&self) -> bool {
        match &self.0 {
            Some(Work::Ledger(in_flight)) => {
                in_flight.answering().is_some_and(|answering| answering.meter.is_encoded())
            }
            Some(Work::Shown(shown)) => shown.is_encoded(),
            None => false,
        }
    }

    /// Whether a receipt was asked for, and will be owed if the answer is a stream of events.
    pub(crate) fn may_owe_receipt(&self) -> bool {
        self.in_flight().is_some_and(|in_flight| in_flight.call.receipt && in_flight.is_stream())
    }

    /// Whether a receipt is to be put at the end of the stream.
    pub(crate) fn owes_receipt(&self) -> bool {
        self.in_flight().is_some_and(|in_flight| in_flight.owes_receipt())
    }

    /// How an error can be told inside this answer; `None` where it cannot.
    pub(crate) fn stream_shape(&self) -> Option<StreamShape> {
        let in_flight = self.in_flight()?;
        Some(match (in_flight.answering()?.meter.framing()?, in_flight.call.wire()) {
            (Framing::Lines, _) => StreamShape::Line,
            (Framing::Frames, _) => StreamShape::Message,
            (Framing::Events, Wire::Responses | Wire::Messages) => StreamShape::Event,
            (Framing::Events, _) => StreamShape::Data,
        })
    }

    /// Settles. The entry is on its way when this returns; the future is ready when the kernel has
    /// it.
    pub fn settle(mut self, end: StreamEnd) -> Settling {
        match self.0.take() {
            Some(Work::Ledger(in_flight)) => in_flight.settle(end),
            Some(Work::Shown(shown)) => shown.settle(end),
            None => Settling::done(),
        }
    }

    /// It has used nothing, and nothing is owed. `end` says who ended it.
    pub fn end_unused(mut self, reason: VoidReason, end: StreamEnd) {
        if let Some(Work::Ledger(in_flight)) = self.0.take() {
            in_flight.end_unused(reason, end, None);
        }
    }

    /// The same where the engine has refused our own credential, by an answer that the client does
    /// not see.
    pub fn end_refused(mut self, head: &response::Parts, body: Vec<u8>) {
        if let Some(Work::Ledger(in_flight)) = self.0.take() {
            in_flight.end_refused(head, body);
        }
    }
}

/// The client left, unless somebody else ended it.
impl Drop for Settlement {
    fn drop(&mut self) {
        let in_flight = match self.0.take() {
            Some(Work::Ledger(in_flight)) => in_flight,
            Some(Work::Shown(shown)) => return drop(shown.settle(StreamEnd::ClientLeft)),
            None => return,
        };
        let end = in_flight.ended_by();
        if in_flight.sent_at().is_none() {
            return in_flight.end_unused(VoidReason::ClientLeft, end, None);
        }
        drop(in_flight.settle(end));
    }
}
