//! What a record is made of, while its request runs.

use std::sync::Arc;
use std::time::Instant;

use taximeter_config::Limits;
use taximeter_ledger::{Progress, TenantId};
use taximeter_meter::{DecodeLimits, Meter, Parameter, ReadLimits, StreamEnd};
use taximeter_net::crowd::Place;
use taximeter_net::upstream::RequestBody;
use taximeter_telemetry::content::Captured;
use taximeter_telemetry::ended::Try;

use super::count::Input;
use super::passing::Passing;
use crate::gateway::{Gateway, HeldBytes};
use crate::journey::identify::Call;
use crate::listen::Peer;
use crate::live::Seat;

/// Everything that a record is made of, while its request runs.
pub struct Open {
    /// The gateway that the request was admitted under.
    pub gateway: Arc<Gateway>,
    /// The request as it was identified.
    pub call: Call,
    /// The connection of the client.
    pub peer: Arc<Peer>,
    /// Its place among its tenant's requests, where those are counted.
    #[expect(dead_code, reason = "ends with it")]
    pub(super) place: Option<Place<TenantId>>,
    /// Where it is seen while it runs.
    pub(super) seat: Seat,
    /// Index into the configured upstreams.
    pub upstream: usize,
    /// The model that the client asked for.
    pub request_model: Option<String>,
    /// The service tier that the client asked for.
    pub request_tier: Option<String>,
    /// Whether the client asked for a stream.
    pub stream: bool,
    /// A receipt is to be put at the end of the stream.
    pub(super) owes_receipt: bool,
    /// What the client sent, if it is kept, and its length in bytes.
    pub(super) kept: Option<RequestBody>,
    pub(super) body_bytes: u64,
    /// How many answers it asked for at once.
    pub(crate) choices: u64,
    /// Characters that it wanted spoken, where it is known that it did.
    pub(super) characters: Option<u64>,
    /// What else it states, where that is told.
    pub parameters: Vec<(Parameter, String)>,
    /// The most tokens that each of them may have.
    pub max_tokens: Option<u64>,
    /// Its prompt, if that is being counted, or was.
    pub(super) input: Option<Input>,
    /// What it says, where that is captured.
    pub(crate) captured: Option<Captured>,
    /// What becomes of generated text.
    pub(super) passing: Passing,
    /// Counts what the client sent while it is held.
    pub(super) held: Option<Arc<HeldBytes>>,
    /// When attempts to send it ended that brought it nowhere, and by what; at most
    /// `attempts_max` of them.
    pub(crate) tries: Vec<Try>,
    /// When the first byte went upstream.
    pub sent_at: Option<Instant>,
    /// The status of the upstream's answer.
    pub status: Option<u16>,
    /// Status and word of what the client is told in place of an answer.
    pub refused: Option<(u16, &'static str)>,
    pub(super) meter: Option<Meter>,
    /// What the ledger was last told of while it runs.
    pub(super) said: Option<Box<Progress>>,
}

/// What reading an answer may take.
pub(super) const fn read_limits(limits: &Limits) -> ReadLimits {
    ReadLimits {
        line_bytes_max: limits.sse_line_bytes_max,
        decode: DecodeLimits {
            bytes_max: limits.decode_bytes_max,
            ratio_max: limits.decode_ratio_max,
        },
    }
}

impl Open {
    /// Which attempt to send it this is, from 1.
    pub(super) fn attempt(&self) -> u32 {
        u32::try_from(self.tries.len()).unwrap_or(u32::MAX).saturating_add(1)
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
