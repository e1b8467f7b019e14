//! Identifies a request: the tenant from the credential, the operation from the route.

mod credential;
mod escape;
mod host;
mod query_key;
mod routes;
mod sockets;
mod spellings;
pub mod tenant;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Uri, Version};
use jiff::Timestamp;
use taximeter_config::Limits;
use taximeter_ledger::{Dimensions, RequestId};
use taximeter_meter::Wire;
use taximeter_net::fields::{self, TRACEPARENT, TRACESTATE, X_REQUEST_ID};
use taximeter_net::framing::FramingFault;
use taximeter_telemetry::TraceContext;
use taximeter_telemetry::ended::StageTimes;
use taximeter_telemetry::events::{AuthRefused, BadFraming, SpoofedHeader};
use taximeter_telemetry::trace::{self, RequestTrace};
use uuid::Uuid;

use super::refuse::{Refusal, Shape, shown};
use crate::gateway::Gateway;
use crate::listen::Peer;

pub(crate) use credential::strip_credential;
pub(crate) use routes::Shows;
pub use routes::{Billing, Route};
use tenant::{Caller, Directory};

/// The only expectation that HTTP defines.
const CONTINUE: &[u8] = b"100-continue";
/// Longest `x-request-id` of a client that is kept, in bytes.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// One request, as far as its head tells.
#[derive(Debug)]
pub struct Call {
    /// Ours; the key of everything.
    pub id: RequestId,
    /// The client's `x-request-id`, or ours in its place.
    pub request_id: Arc<str>,
    /// Last byte of the request head read.
    pub started: Instant,
    /// The same on the wall.
    pub started_at: Timestamp,
    /// The method of the request.
    pub method: Method,
    /// The version of HTTP that the client speaks.
    pub version: Version,
    /// The route that matched.
    pub route: &'static Route,
    /// `model` from the path, where the route has it there (Azure).
    pub(crate) path_model: Option<String>,
    /// The tenant, and how it was identified.
    pub caller: Arc<Caller>,
    /// The client asked for a receipt at the end of its stream.
    pub(crate) receipt: bool,
    /// Who asks, as far as it is known.
    pub client: IpAddr,
    /// What it was sent to, query included.
    pub uri: Uri,
    /// The trace that it belongs to.
    pub(crate) trace: Option<TraceContext>,
    /// When its stages ended.
    pub(crate) stage_times: StageTimes,
    /// What it is part of, once its body is read.
    pub(crate) dimensions: Option<Box<Dimensions>>,
}

/// What is known before anything is decided: enough to answer a refusal.
pub struct Arrival {
    /// Our id of the request.
    pub id: RequestId,
    /// The client's `x-request-id`, or the one that was made for it.
    pub request_id: Arc<str>,
    /// The version of HTTP that the client speaks.
    pub version: Version,
    /// When the head was read, by the monotonic clock.
    pub started: Instant,
    /// When the head was read, by the wall clock.
    pub started_at: Timestamp,
    /// The form that errors have on this route.
    pub shape: Shape,
    /// Who asks, as far as it is known.
    pub client: IpAddr,
    /// What it was sent to, query included.
    pub uri: Uri,
    /// The trace that it belongs to.
    pub(crate) trace: Option<TraceContext>,
}

impl Arrival {
    /// Stamps a request whose head has just been read.
    pub fn new(
        client: IpAddr,
        version: Version,
        uri: &Uri,
        headers: &HeaderMap,
        started: Instant,
        started_at: Timestamp,
    ) -> Self {
        let id = RequestId(new_id(started_at));
        let mut ids = headers.get_all(&X_REQUEST_ID).iter();
        let sent = ids
            .next()
            .filter(|_| ids.next().is_none())
            .and_then(|value| value.to_str().ok())
            .filter(|value| !value.is_empty() && value.len() <= REQUEST_ID_BYTES_MAX);
        let request_id = sent.map_or_else(|| id.0.to_string().into(), Arc::from);
        let shape = Shape::of(uri.path().as_bytes());
        Self {
            id,
            request_id,
            version,
            started,
            started_at,
            shape,
            client,
            uri: uri.clone(),
            trace: caller_trace(headers),
        }
    }
}

/// The template of the route that a request would take.
pub fn template(gateway: &Gateway, method: &Method, path: &str) -> Option<&'static str> {
    let found = routes::find(method, path, gateway.config.passthrough);
    found.ok().map(|(route, _)| route.template)
}

/// The methods of a route that we know, or of all routes together (`*`); `None` for other paths.
pub fn allowed(gateway: &Gateway, path: &str) -> Option<&'static str> {
    routes::allowed(path, gateway.config.passthrough)
}

/// Refuses, and tells, what another reader of the same head could read differently.
///
/// Errors: tunnels, not one host or somebody else's, a body without a length, more fields or a longer
/// target than may be, an expectation that is not met, a header of ours or a credential named as one
/// of the connection.
pub fn clear(gateway: &Gateway, peer: &Peer, head: &Parts) -> Result<(), Refusal> {
    let clear = framing(head, &gateway.config.limits).and_then(|()| {
        let cause = "connection";
        let drops = drops_ours(&gateway.directory, &head.headers);
        if drops { Err(Refusal::BadFraming { cause }) } else { Ok(()) }
    });
    clear.inspect_err(|refusal| {
        if let Some(cause) = refusal.framing_cause() {
            let (peer, place) = (peer.address, Some("head"));
            gateway.telemetry.emit(&BadFraming { cause, peer, place });
        }
    })?;
    let is_open = host::is_open_to(&gateway.config, peer.address.ip());
    match is_open.then(|| host::foreign(head)).flatten() {
        Some(host) => Err(Refusal::Misdirected { host: shown(&host) }),
        None => Ok(()),
    }
}

/// The route of a request, and the model if its path names one. Takes keys out of its query.
///
/// Errors: unknown route or method, a WebSocket.
pub fn route(
    gateway: &Gateway,
    head: &mut Parts,
) -> Result<(&'static Route, Option<String>), Refusal> {
    let path = head.uri.path();
    if sockets::asks(head) {
        return Err(Refusal::WebSocket { instead: routes::instead_of_socket(path) });
    }
    let found = routes::find(&head.method, path, gateway.config.passthrough)?;
    let is_ours = |key: &[u8]| gateway.directory.is_ours(key);
    query_key::move_to_header(head, found.0.takes_key_in_query(), is_ours)?;
    Ok(found)
}

/// The call behind a request head whose route is found, or why there is none. Takes what identifies
/// off the head.
///
/// Errors: no or wrong credential.
pub fn call(
    gateway: &Gateway,
    peer: &Peer,
    arrival: &Arrival,
    head: &mut Parts,
    (route, path_model): (&'static Route, Option<String>),
) -> Result<Call, Refusal> {
    let headers = &mut head.headers;
    let caller = gateway.directory.identify(peer.address.ip(), headers).inspect_err(|refusal| {
        let fingerprint = Directory::fingerprint(headers);
        gateway.telemetry.emit(&AuthRefused { reason: refusal.code(), fingerprint });
    })?;
    let receipt = headers.get(&fields::RECEIPT).is_some_and(|value| value == "1");
    if gateway.directory.strip(Some(&caller), headers) {
        gateway.telemetry.emit(&SpoofedHeader { tenant: &caller.tenant });
    }
    let mut ids = headers.get_all(&X_REQUEST_ID).iter();
    let same = ids.next().is_some_and(|id| id.as_bytes() == arrival.request_id.as_bytes());
    if !(same && ids.next().is_none())
        && let Ok(value) = HeaderValue::from_str(&arrival.request_id)
    {
        headers.insert(&X_REQUEST_ID, value);
    }
    if let Some(traces) = &gateway.telemetry.traces {
        carry_on(headers, &traces.request_trace(arrival.id, arrival.trace), arrival.trace);
    }
    Ok(Call {
        id: arrival.id,
        request_id: arrival.request_id.clone(),
        started: arrival.started,
        started_at: arrival.started_at,
        method: head.method.clone(),
        version: arrival.version,
        route,
        path_model,
        caller,
        receipt,
        client: arrival.client,
        uri: head.uri.clone(),
        trace: arrival.trace,
        stage_times: StageTimes::default(),
        dimensions: None,
    })
}

/// The route that a page's preflight asks for, and the model that its path names. Takes off the head
/// what an engine must not see.
///
/// Errors: unknown route.
pub(super) fn preflight(
    gateway: &Gateway,
    asked: &Method,
    head: &mut Parts,
) -> Result<(&'static Route, Option<String>), Refusal> {
    let (path, passthrough) = (head.uri.path(), gateway.config.passthrough);
    let found = routes::find(asked, path, passthrough).or_else(|refusal| {
        // Which methods there are is the engine's to say.
        let others = [Method::GET, Method::POST, Method::DELETE];
        let found = others.iter().find_map(|other| routes::find(other, path, passthrough).ok());
        found.ok_or(refusal)
    })?;
    let directory = &gateway.directory;
    query_key::move_to_header(head, found.0.takes_key_in_query(), |key| directory.is_ours(key))?;
    directory.strip(None, &mut head.headers);
    Ok(found)
}

/// The trace that a request belongs to; one that is told twice is none.
fn caller_trace(headers: &HeaderMap) -> Option<TraceContext> {
    let mut values = headers.get_all(&TRACEPARENT).iter();
    let traceparent = values.next().filter(|_| values.next().is_none())?;
    TraceContext::parse(traceparent.to_str().ok()?)
}

/// Lets the engine's spans hang from ours.
fn carry_on(headers: &mut HeaderMap, request_trace: &RequestTrace, caller: Option<TraceContext>) {
    // What is said of a trace means nothing in another one.
    if caller.is_none() {
        headers.remove(&TRACESTATE);
    }
    if let Ok(value) = HeaderValue::try_from(request_trace.traceparent(trace::CLIENT)) {
        headers.insert(&TRACEPARENT, value);
    }
}

fn framing(head: &Parts, limits: &Limits) -> Result<(), Refusal> {
    let headers = &head.headers;
    let bytes_max = limits.uri_bytes_max;
    if head.uri.path_and_query().is_some_and(|target| target.as_str().len() > bytes_max) {
        return Err(Refusal::UriTooLong { bytes_max });
    }
    // On HTTP/1 they were counted as they came.
    if head.version == Version::HTTP_2 && headers.len() > limits.headers_max {
        return Err(Refusal::Framing(FramingFault::TooManyFields));
    }
    if head.method == Method::CONNECT {
        return Err(Refusal::NotSupported);
    }
    if !is_for_one_host(head) {
        return Err(Refusal::BadFraming { cause: "host" });
    }
    if head.version == Version::HTTP_2 && headers.values().any(is_padded) {
        return Err(Refusal::BadFraming { cause: "header_value" });
    }
    if head.version != Version::HTTP_2 && is_body_of_no_length(head) {
        return Err(Refusal::LengthMissing);
    }
    let expected = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(CONTINUE);
    if !headers.get_all(EXPECT).iter().all(expected) {
        return Err(Refusal::Expectation);
    }
    Ok(())
}

/// Whether a client names a header as one of the connection, and so to be dropped, that is not its
/// own to drop.
fn drops_ours(directory: &Directory, headers: &HeaderMap) -> bool {
    let named = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|names| names.split(',')).any(|name| directory.is_reserved(name.trim()))
}

/// Whether a method that has a body says nothing of where it ends: for us it would end at once, and
/// for another reader where the connection does.
fn is_body_of_no_length(head: &Parts) -> bool {
    let has_body = matches!(head.method, Method::POST | Method::PUT | Method::PATCH);
    let headers = &head.headers;
    has_body && !headers.contains_key(CONTENT_LENGTH) && !headers.contains_key(TRANSFER_ENCODING)
}

/// Whether a value begins or ends with a blank: on HTTP/2 nobody takes it off, and an engine would.
fn is_padded(value: &HeaderValue) -> bool {
    let value = value.as_bytes();
    value.trim_ascii().len() < value.len()
}

/// Whether the head says once for whom it is. HTTP/1.0 need not say so.
fn is_for_one_host(head: &Parts) -> bool {
    let mut hosts = head.headers.get_all(HOST).iter();
    let (host, more) = (hosts.next(), hosts.next());
    let target = head.uri.authority().map(|authority| authority.as_str().as_bytes());
    let named = match head.version {
        Version::HTTP_2 => host.is_none_or(|host| target.is_none_or(|to| to == host.as_bytes())),
        Version::HTTP_11 => host.is_some() && target.is_none(),
        _ => target.is_none(),
    };
    named && more.is_none()
}

impl Call {
    /// The wire format of the route.
    pub const fn wire(&self) -> Wire {
        self.route.wire
    }
}

/// A UUIDv7 for the wall time `at`.
pub fn new_id(at: Timestamp) -> Uuid {
    let seconds = u64::try_from(at.as_second()).unwrap_or(0);
    let nanos = u32::try_from(at.subsec_nanosecond()).unwrap_or(0);
    Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(version: Version, target: &str, headers: &[(&str, &str)]) -> Parts {
        let request = http::Request::builder().version(version).uri(target).method("POST");
        let request = headers.iter().fold(request, |r, (name, value)| r.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_head_says_once_for_whom_it_is() {
        const ONE: (&str, &str) = ("host", "a");
        const LENGTH: (&str, &str) = ("content-length", "0");
        let limits = Limits { headers_max: 2, uri_bytes_max: 4, ..Limits::default() };
        for (version, target, headers, good) in [
            (Version::HTTP_11, "/", &[ONE, LENGTH][..], true),
            (Version::HTTP_11, "/", &[ONE], false),
            (Version::HTTP_11, "/", &[], false),
            (Version::HTTP_11, "/", &[ONE, ONE], false),
            (Version::HTTP_11, "http://a/", &[ONE], false),
            (Version::HTTP_11, "/a?b", &[ONE, LENGTH], true),
            (Version::HTTP_11, "/a?bc", &[ONE, LENGTH], false),
            (Version::HTTP_10, "/", &[LENGTH], true),
            (Version::HTTP_10, "/", &[ONE, ONE], false),
            (Version::HTTP_2, "http://a/", &[], true),
            (Version::HTTP_2, "http://a/", &[ONE], true),
            (Version::HTTP_2, "http://b/", &[ONE], false),
            (Version::HTTP_2, "http://a/", &[("x", "a ")], false),
            (Version::HTTP_2, "http://a/", &[LENGTH; 2], true),
            (Version::HTTP_2, "http://a/", &[LENGTH; 3], false),
        ] {
            let head = head(version, target, headers);
            assert_eq!(framing(&head, &limits).is_ok(), good, "{head:?}");
        }
    }

    #[test]
    fn a_request_id_that_is_not_one_short_word_is_replaced() {
        let arrival = |ids: &[&str]| {
            let ids = ids.iter().map(|id| ("x-request-id", *id)).collect::<Vec<_>>();
            let head = head(Version::HTTP_11, "/", &ids);
            Arrival::new(
                IpAddr::from([127, 0, 0, 1]),
                head.version,
                &head.uri,
                &head.headers,
                taximeter_system::clock::now(),
                Timestamp::UNIX_EPOCH,
            )
        };
        assert_eq!(&*arrival(&["mine"]).request_id, "mine");
        for ids in [&["mine", "mine"][..], &[""], &[&"x".repeat(129)], &[]] {
            let arrival = arrival(ids);
            assert_eq!(*arrival.request_id, arrival.id.0.to_string(), "{ids:?}");
        }
    }
}
