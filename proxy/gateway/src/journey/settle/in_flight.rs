//! A request in flight, as an enum of its stages. The record is made from it.

use std::sync::Arc;
use std::time::Instant;

use taximeter_ledger::{Progress, TenantId};
use taximeter_meter::{Ending, Measurement, Meter, Setup, StreamEnd, Wire};
use taximeter_net::concurrency::Permit;
use taximeter_net::upstream::RequestBody;
use taximeter_request::{Context, Parameter, spoken_characters};
use taximeter_telemetry::content::Captured;
use taximeter_telemetry::ended::Try;

use super::count::Input;
use super::passing::Passing;
use super::told::ToldStream;
use crate::contexts::PromptContext;
use crate::gateway::{Gateway, HeldBytes};
use crate::journey::identify::Call;
use crate::listen::Peer;
use crate::live::LiveHandle;
use crate::tokenizers::{Models, Server};

/// Prompts up to this size are kept until the end, in bytes, in case that nothing is reported;
/// longer ones are counted at once or not at all.
const BODY_KEPT_BYTES_MAX: u64 = 256 << 10;

/// Everything that a record is made of, while its request runs.
pub struct InFlight {
    /// The gateway that the request was admitted under.
    pub gateway: Arc<Gateway>,
    /// The request as it was identified.
    pub call: Call,
    /// The connection of the client.
    pub peer: Arc<Peer>,
    /// Its permit among its tenant's requests, where those are counted.
    #[expect(dead_code, reason = "ends with it")]
    pub(super) permit: Option<Permit<TenantId>>,
    /// Where it is seen while it runs.
    pub(super) live: LiveHandle,
    pub(crate) asked: Asked,
    pub(super) prompt: Prompt,
    /// When attempts to send it ended that brought it nowhere, and by what; at most
    /// `attempts_max` of them.
    pub(crate) tries: Vec<Try>,
    pub(super) stage: InFlightStage,
    /// Status and word of what the client is told in place of an answer.
    pub(crate) refused: Option<(u16, &'static str)>,
    /// What metrics were told of it while it runs.
    pub(crate) told: ToldStream,
}

/// What a request asks for, and of whom.
pub(crate) struct Asked {
    /// Index into the configured upstreams.
    pub(crate) upstream: usize,
    pub(crate) request_model: Option<String>,
    pub(crate) service_tier: Option<String>,
    /// It asks for a stream. Some routes stream without being asked to.
    pub(super) stream: bool,
    /// It asks for an answer that is generated after it.
    pub(crate) background: bool,
    /// What its prompt has beside what it says.
    pub(super) context: PromptContext,
    /// The conversation that it is part of.
    pub(super) conversation: Option<Context>,
    /// How many answers it asked for at once.
    pub(crate) choices: u64,
    /// The most tokens that each of them may have.
    pub(crate) max_tokens: Option<u64>,
    /// What else it states, where that is told.
    pub(crate) parameters: Vec<(Parameter, String)>,
    /// What it says, where that is captured.
    pub(crate) captured: Option<Captured>,
    /// What its answer is read by.
    pub(super) setup: Setup,
}

impl Asked {
    /// The names of the model, of which the answer says `response`.
    pub(super) fn models<'a>(&'a self, gateway: &Gateway, response: Option<&'a str>) -> Models<'a> {
        let server = Server::of(gateway.upstream(self.upstream).dialect);
        Models { request: self.request_model.as_deref(), response, server }
    }
}

/// What the client sent, as far as it may still have to be counted.
pub(super) struct Prompt {
    /// Its length in bytes, decoded where it was read.
    pub(super) bytes: u64,
    /// Its text, or what became of that.
    pub(super) input: Input,
    /// Characters that it wanted spoken, where it is known that it did.
    pub(super) characters: Option<u64>,
    /// Counts its bytes while they are held.
    held: Option<Arc<HeldBytes>>,
}

/// How far a request has come.
pub(super) enum InFlightStage {
    /// It is reserved, and no engine has any of it.
    Reserved,
    /// It goes to an engine, which has not answered.
    Sent(Sent),
    /// The engine's head has come.
    Answering(Answering),
    /// Nothing more comes; what it owes is being found.
    Settling { sent_at: Instant, answer: Option<AnswerHead> },
}

/// A request that goes to an engine.
pub(super) struct Sent {
    /// When its first byte did.
    at: Instant,
    meter: Meter,
}

/// A request whose answer comes.
pub(super) struct Answering {
    sent_at: Instant,
    pub(super) answer: AnswerHead,
    pub(super) meter: Meter,
    /// What becomes of generated text.
    pub(super) passing: Passing,
    /// What the ledger was last told of while it runs.
    pub(super) said: Option<Box<Progress>>,
}

/// What the head of an answer says of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerHead {
    pub(super) status: u16,
    /// It is a stream.
    pub(super) streams: bool,
    /// A receipt is to be put at its end.
    pub(super) owes_receipt: bool,
}

impl InFlight {
    /// Which attempt to send it this is, from 1.
    pub(super) fn attempt(&self) -> u32 {
        u32::try_from(self.tries.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// When its first byte went to the engine that has it.
    pub(crate) const fn sent_at(&self) -> Option<Instant> {
        match &self.stage {
            InFlightStage::Reserved => None,
            InFlightStage::Sent(Sent { at, .. }) => Some(*at),
            InFlightStage::Answering(Answering { sent_at, .. })
            | InFlightStage::Settling { sent_at, .. } => Some(*sent_at),
        }
    }

    /// What the head of its answer says, once that has come.
    pub(super) const fn answer(&self) -> Option<AnswerHead> {
        match &self.stage {
            InFlightStage::Reserved | InFlightStage::Sent(_) => None,
            InFlightStage::Answering(Answering { answer, .. }) => Some(*answer),
            InFlightStage::Settling { answer, .. } => *answer,
        }
    }

    /// What the engine has answered.
    pub(crate) fn status(&self) -> Option<u16> {
        self.answer().map(|answer| answer.status)
    }

    /// Whether a receipt is to be put at the end of its stream.
    pub(super) fn owes_receipt(&self) -> bool {
        self.answer().is_some_and(|answer| answer.owes_receipt)
    }

    /// Whether it is a stream: by what it asks for, or by its answer.
    pub(crate) fn is_stream(&self) -> bool {
        self.asked.stream || self.answer().is_some_and(|answer| answer.streams)
    }

    /// Reads its answer so far; `None` before there is one.
    pub(super) const fn answering(&self) -> Option<&Answering> {
        match &self.stage {
            InFlightStage::Answering(answering) => Some(answering),
            InFlightStage::Reserved | InFlightStage::Sent(_) | InFlightStage::Settling { .. } => {
                None
            }
        }
    }

    pub(super) const fn answering_mut(&mut self) -> Option<&mut Answering> {
        match &mut self.stage {
            InFlightStage::Answering(answering) => Some(answering),
            InFlightStage::Reserved | InFlightStage::Sent(_) | InFlightStage::Settling { .. } => {
                None
            }
        }
    }

    /// Its first byte goes to the engine.
    pub(super) fn send(&mut self, now: Instant) {
        let Self { gateway, asked, .. } = self;
        let meter = Meter::new(asked.setup)
            .decoding(gateway.config.limits.decode_ratio_max)
            .keeping(asked.captured.as_ref().map(Captured::transcript))
            .with_fine_gaps(gateway.telemetry.metrics.has_native);
        self.stage = InFlightStage::Sent(Sent { at: now, meter });
    }

    /// No engine has any of it after all.
    pub(super) fn take_back(&mut self) {
        self.stage = InFlightStage::Reserved;
    }

    /// The engine's head has come, which the meter hears of by `read`.
    pub(super) fn begin_answer(&mut self, read: impl FnOnce(&mut Meter) -> AnswerHead) {
        self.stage = match std::mem::replace(&mut self.stage, InFlightStage::Reserved) {
            InFlightStage::Sent(Sent { at, mut meter }) => {
                let answer = read(&mut meter);
                let (passing, said) = (Passing::default(), None);
                InFlightStage::Answering(Answering { sent_at: at, answer, meter, passing, said })
            }
            stage => stage,
        };
        // The engine has the body, and nobody else may.
        self.prompt.release(self.asked.captured.as_ref());
    }

    /// Nothing more comes of it: what was measured, and what was counted meanwhile. `None` where no
    /// engine had any of it.
    pub(super) fn finish(
        &mut self,
        now: Instant,
        end: StreamEnd,
    ) -> Option<(Measurement, Passing)> {
        let (sent_at, answer, meter, passing) =
            match std::mem::replace(&mut self.stage, InFlightStage::Reserved) {
                InFlightStage::Sent(Sent { at, meter }) => (at, None, meter, Passing::default()),
                InFlightStage::Answering(Answering { sent_at, answer, meter, passing, .. }) => {
                    (sent_at, Some(answer), meter, passing)
                }
                stage @ (InFlightStage::Reserved | InFlightStage::Settling { .. }) => {
                    self.stage = stage;
                    return None;
                }
            };
        self.stage = InFlightStage::Settling { sent_at, answer };
        let mut measurement = meter.finish(now, end);
        // What the client did not wait for goes on as well.
        let is_cut = matches!(measurement.ending, Ending::Cut(_) | Ending::Truncated);
        measurement.is_pending |=
            self.asked.background && is_cut && measurement.finish_reasons.is_empty();
        Some((measurement, passing))
    }

    /// Who ended a request that was dropped.
    pub(super) fn ended_by(&self) -> StreamEnd {
        if std::thread::panicking() {
            StreamEnd::Internal
        } else if self.peer.has_stalled() {
            StreamEnd::ClientStalled
        } else if self.peer.is_cut() {
            StreamEnd::Shutdown
        } else {
            StreamEnd::ClientLeft
        }
    }
}

impl Prompt {
    /// A prompt of so many bytes, whose text is `kept` if it is short enough to be counted.
    pub(super) fn new(
        wire: Wire,
        kept: Option<RequestBody>,
        bytes: u64,
        held: Option<Arc<HeldBytes>>,
    ) -> Self {
        let input = kept.map_or(Input::Bytes(bytes), |body| Input::Body(wire, body));
        Self { bytes, input, characters: None, held }
    }

    /// Its text, while that is there.
    pub(super) const fn body(&self) -> Option<&RequestBody> {
        match &self.input {
            Input::Body(_, body) => Some(body),
            Input::Begun(..) | Input::Counted(..) | Input::Bytes(_) => None,
        }
    }

    /// Its text, and what counts the bytes of it while they are held; somebody tells `input` what
    /// becomes of it.
    pub(super) fn take(&mut self, input: Input) -> Option<(RequestBody, Option<Arc<HeldBytes>>)> {
        match std::mem::replace(&mut self.input, input) {
            Input::Body(_, body) => Some((body, self.held.clone())),
            other => {
                self.input = other;
                None
            }
        }
    }

    /// Speech is charged by the length of its text where no tokens are reported.
    pub(super) fn count_characters(&mut self) {
        if let Input::Body(Wire::Speech, body) = &self.input {
            let pieces: Vec<&[u8]> = body.pieces().map(AsRef::as_ref).collect();
            self.characters = spoken_characters(&pieces.concat());
        }
    }

    /// Keeps a short text until the end, in case that nothing is reported.
    pub(super) fn keep_short(&mut self) {
        if self.body().is_some_and(|body| body.len() > BODY_KEPT_BYTES_MAX) {
            self.input = Input::Bytes(self.bytes);
        }
    }

    /// Counts nothing as held that neither this nor `captured` holds.
    fn release(&mut self, captured: Option<&Captured>) {
        if self.body().is_none() && !captured.is_some_and(Captured::has_body) {
            self.held = None;
        }
    }
}
