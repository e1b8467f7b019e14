//! Sends the request to the engine and passes the answer to the client. The bytes pass unchanged
//! and at once, and the meter reads them.
//!
//! If the body of the answer is dropped before its end, the client has left. The connection to the
//! engine is dropped with it, which cancels the engine's work. The dropped settlement writes its
//! entry.

mod drain;
mod fault;
mod gather;
mod guard;
mod headers;
mod interim;
mod pieces;
mod reply;
mod send;
mod watch;

use std::sync::Arc;

use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{Response, StatusCode, Version};
use taximeter_net::upstream::Exchange;
use taximeter_system::clock;
use taximeter_telemetry::events::UpstreamRefusedUs;

use super::refuse::Refusal;
use super::route::Chosen;
use super::settle::Settlement;
use crate::health::Health;
use crate::listen::{Peer, Worker};
use headers::Codings;
use send::{Unsent, send};
use taximeter_ledger::VoidReason;

pub(crate) use reply::ReplyBody;

/// Sends the request and opens the answer. Without a settlement nothing is measured.
///
/// Errors: the engine cannot be reached, does not answer, or refuses our own credential.
pub(super) async fn open(
    worker: &Arc<Worker>,
    peer: &Arc<Peer>,
    head: Parts,
    chosen: &mut Chosen,
    mut settlement: Option<Settlement>,
) -> Result<Response<ReplyBody>, Refusal> {
    let hides = chosen.hidden.is_any();
    let codings = match &settlement {
        Some(settlement) if hides || settlement.may_owe_receipt() => Codings::None,
        Some(settlement) if settlement.is_read() => Codings::Readable,
        _ => Codings::AsAsked,
    };
    let version = head.version;
    let mut request = headers::request(&worker.gateway, head, chosen, codings);
    interim::pass_on(&mut request, version, peer);
    let (link, answer) = match send(worker, chosen.index, request, &mut settlement).await {
        Ok(sent) => sent,
        Err((refusal, settled)) => {
            let refusal = failed(worker.gateway.health(chosen.index), refusal);
            unsent(settlement, &refusal, settled).await;
            return Err(refusal);
        }
    };
    let (mut head, body) = answer.into_parts();
    let health = worker.gateway.health(chosen.index);
    if head.status.is_server_error() {
        health.failed(clock::wall(), "status_5xx");
    } else {
        health.answered(clock::wall());
    }
    // Which version the engine speaks is between it and us.
    head.version = Version::HTTP_11;
    let ours = worker.gateway.upstream(chosen.index).credential.is_some();
    if head.status == StatusCode::UNAUTHORIZED && ours
        || head.status == StatusCode::SWITCHING_PROTOCOLS
    {
        let (refusal, reason) = match head.status {
            StatusCode::UNAUTHORIZED => (Refusal::UpstreamAuth, VoidReason::UpstreamAuth),
            _ => (Refusal::UpstreamProtocol, VoidReason::UpstreamRefused),
        };
        if let Some(mut settlement) = settlement {
            settlement.refused(&refusal);
            settlement.void(reason);
        }
        if head.status == StatusCode::UNAUTHORIZED {
            let upstream = &worker.gateway.upstream(chosen.index).name;
            worker.gateway.telemetry.emit(&UpstreamRefusedUs { upstream });
        }
        return Err(refusal);
    }
    if let Some(settlement) = &mut settlement {
        settlement.answered(head.status.as_u16(), &head.headers);
    }
    let exchange = Exchange::new(link, body);
    // hyper never asks for a body that cannot be there (204, 304, HEAD), so nobody would settle.
    let fits = gather::fits(&head.headers, worker.gateway.config.limits.relay_buffer_bytes);
    headers::answer(&mut head.headers);
    let rewrites = hides || settlement.as_ref().is_some_and(Settlement::owes_receipt);
    let rewritten = head.status.is_success()
        && rewrites
        && !settlement.as_ref().is_some_and(Settlement::is_encoded);
    if rewritten {
        // What we take out or add is not in the engine's length.
        head.headers.remove(CONTENT_LENGTH);
    }
    let gathered = exchange.is_end() || fits && !rewritten;
    let body = match settlement {
        Some(settlement) if gathered => {
            gather::answer(worker, chosen.index, exchange, settlement, &mut head).await
        }
        settlement => {
            let watch = watch::Watch::new(worker.clone(), chosen.index, exchange, settlement);
            ReplyBody::watch(if rewritten { watch.of_any_length() } else { watch })
        }
    };
    Ok(Response::from_parts(head, body))
}

/// Notes what an upstream has failed; what the client is told.
fn failed(health: &Health, refusal: Refusal) -> Refusal {
    let was_away = health.known().is_away();
    // An engine is not to blame for what we have no room for.
    if !matches!(refusal, Refusal::Overloaded) {
        health.failed(clock::wall(), refusal.code());
    }
    match refusal {
        // It may be back at any moment, and each request finds out; where that was not enough, the
        // next one is told to wait.
        Refusal::UpstreamConnect { .. } if was_away => Refusal::NoUpstream,
        refusal => refusal,
    }
}

/// Ends the settlement of a request that got no answer.
async fn unsent(settlement: Option<Settlement>, refusal: &Refusal, becomes: Unsent) {
    let Some(mut settlement) = settlement else { return };
    settlement.refused(refusal);
    match becomes {
        Unsent::Void => settlement.void(VoidReason::NotSent),
        Unsent::Post(end) => drop(settlement.settle(end).await),
    }
}
