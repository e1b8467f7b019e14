//! One request, top to bottom: accept → identify → admit → route → relay (the meter watches) →
//! settle → report.
//!
//! `listen` accepts connections. Each later step is a file in this folder. A request with a
//! reservation ends in exactly one post or void, whatever ends it: its `Settlement` makes it.

pub mod admit;
mod body;
mod cors;
mod dimensions;
pub mod identify;
mod probe;
pub mod refuse;
mod relay;
pub(crate) mod report;
mod route;
pub mod settle;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::header::HeaderValue;
use http::request::Parts;
use http::{Method, Request, Response};
use http_body::Body as _;
use hyper::body::Incoming;
use taximeter_ledger::RequestId;
use taximeter_net::fields;
use taximeter_net::framing::FramingFault;
use taximeter_system::clock;
use taximeter_telemetry::ended::{Onward, StageTimes};

use crate::gateway::Gateway;
use crate::listen::{Peer, Worker};
use crate::refusals::RefusedRequest;
use cors::{Answerer, Page};
use identify::{Arrival, Billing};
use refuse::{Refusal, Shape};
use report::Report;
use settle::Settlement;

pub(crate) use relay::ReplyBody;

/// Serves one request whose head has just been read.
pub async fn journey(
    worker: &Arc<Worker>,
    peer: &Arc<Peer>,
    request: Request<Incoming>,
) -> Response<ReplyBody> {
    let (uri, headers) = (request.uri(), request.headers());
    let client = worker.gateway.directory.client(peer.address.ip(), headers);
    let version = request.version();
    let arrival = Arrival::new(client, version, uri, headers, clock::now(), clock::wall());
    let method = request.method().clone();
    let page = Page::of(&worker.gateway, peer.address.ip(), uri, headers);
    let mut report = Report::new(&worker.gateway, &arrival, &method);
    let steps = steps(worker, peer, &arrival, &mut report, page.as_ref(), request);
    let (mut reply, is_refusal) = match caught(steps).await {
        Ok(reply) => (reply, false),
        Err(refusal) => {
            report.refused(&refusal);
            let answer = refusal.answer(arrival.shape, &arrival.request_id);
            // The answer to HEAD has no body, and HTTP/2 would send one.
            let answer = answer.map(|body| {
                ReplyBody::whole(if method == Method::HEAD { Bytes::new() } else { body })
            });
            (answer, true)
        }
    };
    let headers = reply.headers_mut();
    if let Some(page) = &page {
        page.mark(headers, is_refusal);
    }
    if let Ok(id) = HeaderValue::from_str(&arrival.id.0.to_string()) {
        headers.insert(&fields::REQUEST_ID, id);
    }
    if !headers.contains_key(&fields::X_REQUEST_ID)
        && let Ok(id) = HeaderValue::from_str(&arrival.request_id)
    {
        headers.insert(&fields::X_REQUEST_ID, id);
    }
    reply
}

/// A panic ends this request and no other; a settlement that is dropped writes its entry.
///
/// No `async fn`, which would hold the steps twice: as its argument and as what it waits for.
fn caught<T>(
    steps: impl Future<Output = Result<T, Refusal>>,
) -> impl Future<Output = Result<T, Refusal>> {
    AssertUnwindSafe(steps).catch_unwind().map(|end| end.unwrap_or(Err(Refusal::Internal)))
}

/// The answer to what cannot be read as a request, of which the beginning is known.
pub fn unreadable(gateway: &Gateway, fault: FramingFault, first_line: &[u8]) -> Response<Bytes> {
    let (at, refusal) = (clock::wall(), Refusal::Framing(fault));
    let id = RequestId(identify::new_id(at));
    gateway.refusals.refused(RefusedRequest {
        id,
        at,
        tenant: None,
        key_id: None,
        route: None,
        upstream: None,
        status: Some(refusal.status().0.as_u16()),
        reason: refusal.code(),
    });
    let id = id.to_string();
    let target = first_line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let shape = Shape::of(target);
    let mut answer = refusal.answer(shape, &id);
    if let Ok(id) = HeaderValue::from_str(&id) {
        answer.headers_mut().insert(&fields::REQUEST_ID, id.clone());
        answer.headers_mut().insert(&fields::X_REQUEST_ID, id);
    }
    answer
}

async fn steps(
    worker: &Arc<Worker>,
    peer: &Arc<Peer>,
    arrival: &Arrival,
    report: &mut Report<'_>,
    page: Option<&Page>,
    request: Request<Incoming>,
) -> Result<Response<ReplyBody>, Refusal> {
    let gateway = &worker.gateway;
    let (mut head, body) = request.into_parts();
    peer.body_is_unread(!body.is_end_stream());
    identify::clear(gateway, peer, &head)?;
    if head.method == Method::OPTIONS {
        match (page.map(Page::answerer), identify::allowed(gateway, head.uri.path())) {
            (Some(Answerer::Engine), _) => return preflight(worker, peer, report, head).await,
            (Some(Answerer::Gateway), _) => return Ok(told(report, Page::allowed(&head.headers))),
            (Some(Answerer::Nobody), allow) if allow.is_some() || gateway.config.passthrough => {
                return Ok(told(report, refuse::options(allow.unwrap_or("OPTIONS"))));
            }
            (None, Some(allow)) => return Ok(told(report, refuse::options(allow))),
            _ => {}
        }
    }
    let (route, path_model) = identify::route(gateway, &mut head)?;
    if route.billing == Billing::Probe {
        let answer = probe::answer(gateway, &head).await?;
        report.passed((Some(route.template), Some(answer.status())));
        return Ok(answer.map(ReplyBody::whole));
    }
    let directory = &gateway.directory;
    if page.is_some_and(|page| page.is_kept_out(directory, &head.method, &head.headers)) {
        return Err(Refusal::OtherOrigin);
    }
    let mut call = identify::call(gateway, peer, arrival, &mut head, (route, path_model))?;
    report.identified(&call.caller);
    let admission = admit::admission(gateway, &call)?;
    call.stage_times.identified = Some(clock::now());
    let reading = dimensions::read_headers(gateway, &head.headers);
    let order = body::read(gateway, &call, &head.headers, reading.noted(), body).await?;
    call.dimensions = dimensions::find(gateway, &call, reading, order.facts.as_ref());
    call.stage_times.read = Some(clock::now());
    peer.body_is_unread(false);
    let mut chosen = route::choose(gateway, &call, order)?;
    call.stage_times.routed = Some(clock::now());
    match call.route.billing {
        Billing::Ledger => {
            report.is_being_reserved();
            let mut settlement = admission.reserve(gateway, peer, call, &mut chosen).await?;
            settlement.admitted(clock::now());
            report.is_left_to_settlement();
            relay::open(worker, peer, head, &mut chosen, Some(settlement)).await
        }
        Billing::Free | Billing::Probe => {
            let template = call.route.template;
            report.goes_on(Onward { upstream: chosen.index, stage_times: call.stage_times });
            route::forget_changed(gateway, &call, &chosen);
            let shown = Settlement::of_shown(gateway, &call, &chosen);
            let reply = relay::open(worker, peer, head, &mut chosen, shown).await?;
            report.passed((Some(template), Some(reply.status())));
            Ok(reply)
        }
    }
}

/// An answer of ours that is no refusal.
fn told(report: &mut Report<'_>, answer: Response<Bytes>) -> Response<ReplyBody> {
    report.passed((None, Some(answer.status())));
    answer.map(ReplyBody::whole)
}

/// Lets the engine answer what a web page asks before its request.
async fn preflight(
    worker: &Arc<Worker>,
    peer: &Arc<Peer>,
    report: &mut Report<'_>,
    mut head: Parts,
) -> Result<Response<ReplyBody>, Refusal> {
    let gateway = &worker.gateway;
    let asked = cors::asked_method(&head.headers);
    let (route, model) = identify::preflight(gateway, &asked, &mut head)?;
    let mut chosen = route::preflight(gateway, route, model);
    report.goes_on(Onward { upstream: chosen.index, stage_times: StageTimes::default() });
    let reply = relay::open(worker, peer, head, &mut chosen, None).await?;
    report.passed((Some(route.template), Some(reply.status())));
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;

    use super::*;

    #[test]
    fn a_panic_ends_its_request_and_what_that_owes_is_settled() {
        /// Notes that it was dropped, and how.
        struct Owes<'a>(&'a Cell<Option<bool>>);
        impl Drop for Owes<'_> {
            fn drop(&mut self) {
                self.0.set(Some(std::thread::panicking()));
            }
        }
        let settled = Cell::new(None);
        let owes = Owes(&settled);
        let ended = caught(async {
            let _owes = owes;
            ready(()).await;
            Ok(Vec::<u8>::new().remove(0))
        });
        let refused = ended.now_or_never().expect("it ends at once").unwrap_err();
        assert_eq!((refused.code(), refused.status().0.as_u16()), ("internal", 500));
        assert_eq!(settled.get(), Some(true));
        assert!(matches!(caught(ready(Ok(7))).now_or_never(), Some(Ok(7))));
    }
}
