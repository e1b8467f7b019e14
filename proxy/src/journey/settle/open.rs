//! What a record is made of, while its request runs.

use std::sync::Arc;
use std::time::Instant;

use taximeter_meter::{Meter, Parameter};

use super::count::Input;
use super::passing::Passing;
use crate::edge::listen::Peer;
use crate::edge::upstream::RequestBody;
use crate::gateway::{Gateway, HeldBytes};
use crate::journey::identify::Call;
use crate::live::Seat;
use crate::telemetry::content::Captured;

/// Everything that a record is made of, while its request runs.
pub(crate) struct Open {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) call: Call,
    pub(crate) peer: Arc<Peer>,
    /// Where it is seen while it runs.
    pub(super) seat: Seat,
    /// Index into the configured upstreams.
    pub(crate) upstream: usize,
    pub(crate) request_model: Option<String>,
    pub(super) request_tier: Option<String>,
    pub(crate) stream: bool,
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
    pub(crate) parameters: Vec<(Parameter, String)>,
    /// The most tokens that each of them may have.
    pub(crate) max_tokens: Option<u64>,
    /// Its prompt, if that is being counted, or was.
    pub(super) input: Option<Input>,
    /// What it says, where that is captured.
    pub(crate) captured: Option<Captured>,
    /// What becomes of generated text.
    pub(super) passing: Passing,
    /// Counts what the client sent while it is held.
    pub(super) held: Option<Arc<HeldBytes>>,
    /// When the first byte went upstream.
    pub(crate) sent_at: Option<Instant>,
    pub(crate) status: Option<u16>,
    /// Status and word of what the client is told in place of an answer.
    pub(crate) refused: Option<(u16, &'static str)>,
    pub(super) meter: Option<Meter>,
    /// What the ledger was last told of while it runs: input, output, whether they are estimates.
    pub(super) said: (Option<u64>, Option<u64>, bool),
}
