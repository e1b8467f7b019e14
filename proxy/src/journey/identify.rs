//! Who calls, and what for: the tenant from the credential, the operation from the route.

mod routes;
pub(crate) mod tenant;

use std::sync::Arc;
use std::time::Instant;

use http::header::{CONNECTION, EXPECT};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};
use jiff::Timestamp;
use taximeter_ledger::RequestId;
use taximeter_meter::Wire;
use uuid::Uuid;

use super::refuse::{Refusal, Shape};
use crate::edge::listen::Peer;
use crate::gateway::Gateway;

pub(crate) use routes::{Billing, Route};
use tenant::Caller;
pub(crate) use tenant::strip_credential;

/// The only expectation that HTTP defines.
const CONTINUE: &[u8] = b"100-continue";
/// Longest `x-request-id` of a client that is kept, in bytes.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// One request, as far as its head tells.
#[derive(Debug)]
pub(crate) struct Call {
    /// Ours; the key of everything.
    pub(crate) id: RequestId,
    /// The client's `x-request-id`, or ours in its place.
    pub(crate) request_id: Arc<str>,
    /// Last byte of the request head read.
    pub(crate) started: Instant,
    /// The same on the wall.
    pub(crate) started_at: Timestamp,
    pub(crate) method: Method,
    pub(crate) route: &'static Route,
    /// `model` from the path, where the route has it there (Azure).
    pub(crate) path_model: Option<String>,
    pub(crate) caller: Arc<Caller>,
    /// The client asked for a receipt at the end of its stream.
    pub(crate) receipt: bool,
}

/// What is known before anything is decided: enough to answer a refusal.
pub(crate) struct Arrival {
    pub(crate) id: RequestId,
    pub(crate) request_id: Arc<str>,
    pub(crate) started: Instant,
    pub(crate) started_at: Timestamp,
    pub(crate) shape: Shape,
}

impl Arrival {
    /// Stamps a request whose head has just been read.
    pub(crate) fn new(
        path: &str,
        headers: &HeaderMap,
        started: Instant,
        started_at: Timestamp,
    ) -> Self {
        let id = RequestId(new_id(started_at));
        let sent = headers
            .get("x-request-id")
            .and_then(|value| value.to_str().ok())
            .filter(|value| !value.is_empty() && value.len() <= REQUEST_ID_BYTES_MAX);
        let request_id = sent.map_or_else(|| id.0.to_string().into(), Arc::from);
        let shape = if path.starts_with("/v1/messages") { Shape::Anthropic } else { Shape::OpenAi };
        Self { id, request_id, started, started_at, shape }
    }
}

/// The call behind a request head, or why there is none. Takes what identifies off the head.
///
/// Errors: unknown route or method, no or wrong credential.
pub(crate) fn call(
    gateway: &Gateway,
    peer: &Peer,
    arrival: &Arrival,
    head: &mut Parts,
) -> Result<Call, Refusal> {
    framing(&head.headers)?;
    let path = head.uri.path();
    let (route, path_model) = routes::find(&head.method, path, gateway.config.passthrough)?;
    let headers = &mut head.headers;
    let caller = gateway.directory.identify(peer.address.ip(), headers)?;
    let receipt = headers.get("x-taximeter-receipt").is_some_and(|value| value == "1");
    gateway.directory.strip(headers);
    if !headers.contains_key("x-request-id")
        && let Ok(value) = HeaderValue::from_str(&arrival.request_id)
    {
        headers.insert("x-request-id", value);
    }
    Ok(Call {
        id: arrival.id,
        request_id: arrival.request_id.clone(),
        started: arrival.started,
        started_at: arrival.started_at,
        method: head.method.clone(),
        route,
        path_model,
        caller,
        receipt,
    })
}

/// Refuses what another reader of the same head could read differently.
fn framing(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.get(EXPECT).is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(CONTINUE)) {
        return Err(Refusal::Expectation);
    }
    let named = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let drops_ours = named
        .flat_map(|names| names.split(','))
        .any(|name| tenant::is_reserved(&name.trim().to_ascii_lowercase()));
    if drops_ours { Err(Refusal::BadFraming) } else { Ok(()) }
}

impl Call {
    /// The wire format of the route.
    pub(crate) const fn wire(&self) -> Wire {
        self.route.wire
    }
}

/// A UUIDv7 for the wall time `at`.
fn new_id(at: Timestamp) -> Uuid {
    let seconds = u64::try_from(at.as_second()).unwrap_or(0);
    let nanos = u32::try_from(at.subsec_nanosecond()).unwrap_or(0);
    Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanos))
}
