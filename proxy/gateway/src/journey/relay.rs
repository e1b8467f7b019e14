//! Sends the request to the engine and passes the answer to the client. The bytes pass unchanged
//! and at once, and the meter reads them.
//!
//! If the body of the answer is dropped before its end, the client has left. The connection to the
//! engine is dropped with it, which cancels the engine's work. The dropped settlement writes its
//! entry.

mod call;
mod drain;
mod fault;
mod gather;
mod guard;
mod headers;
mod interim;
mod pieces;
mod question;
mod reply;
mod send;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode, Version, response};
use taximeter_system::clock;
use taximeter_telemetry::events::UpstreamRefusedUs;

use super::refuse::Refusal;
use super::route::Chosen;
use super::settle::Settlement;
use crate::listen::{Peer, Worker};
use call::{Answer, call};
use question::{BareRequest, REFUSAL_BYTES_MAX, may_be_refusal};
use taximeter_ledger::VoidReason;
use taximeter_meter::StreamEnd;
use taximeter_net::upstream::Exchange;

pub(crate) use reply::ReplyBody;

/// How long the body of an answer is waited for that the client will not see.
const REFUSAL_WAIT: Duration = Duration::from_secs(1);

/// Takes out of an engine's answer what belongs to the engine's connection.
pub(super) fn drop_hop_by_hop(headers: &mut HeaderMap) {
    headers::answer(headers);
}

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
    let question = chosen.question.take();
    let bare = question.map(|question| BareRequest { question, head: head.clone() });
    let mut answer = call(worker, peer, head, chosen, &mut settlement).await?;
    if let Some(bare) = bare.filter(|_| may_be_refusal(answer.head.status)) {
        // Seldom, and large.
        answer = Box::pin(bare.instead(worker, peer, chosen, answer, &mut settlement)).await?;
    }
    let Answer { mut head, exchange } = answer;
    let hides = chosen.hidden.is_any();
    let health = worker.gateway.health(chosen.index);
    let ours = worker.gateway.upstream(chosen.index).credential.is_some() && !chosen.is_preflight;
    match head.status {
        StatusCode::TOO_MANY_REQUESTS => health.failed(clock::wall(), "status_429"),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if ours => {
            health.failed(clock::wall(), "credential");
        }
        status if status.is_server_error() => health.failed(clock::wall(), "status_5xx"),
        _ => health.answered(clock::wall()),
    }
    // Which version the engine speaks is between it and us.
    head.version = Version::HTTP_11;
    if head.status == StatusCode::UNAUTHORIZED && ours
        || head.status == StatusCode::SWITCHING_PROTOCOLS
    {
        // Seldom, and large.
        return Err(Box::pin(refuse(worker, chosen, &head, exchange, settlement)).await);
    }
    if let Some(settlement) = &mut settlement {
        settlement.answered(head.status.as_u16(), &head.headers);
    }
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

/// What the client is told instead of an answer that it must not see: the engine refuses our own
/// credential, or changes to another protocol.
async fn refuse(
    worker: &Worker,
    chosen: &Chosen,
    head: &response::Parts,
    mut exchange: Exchange,
    settlement: Option<Settlement>,
) -> Refusal {
    if head.status != StatusCode::UNAUTHORIZED {
        let refusal = Refusal::UpstreamProtocol;
        if let Some(mut settlement) = settlement {
            settlement.refused(&refusal);
            settlement.end_unused(VoidReason::UpstreamRefused, StreamEnd::UpstreamProtocol);
        }
        return refusal;
    }
    let refusal = Refusal::UpstreamAuth;
    if let Some(mut settlement) = settlement {
        settlement.refused(&refusal);
        let mut refused =
            RefusedCredential { settlement: Some(settlement), head, body: Vec::new() };
        // What the engine calls its error is for the record.
        let body = clock::within(REFUSAL_WAIT, exchange.peek(REFUSAL_BYTES_MAX)).await;
        refused.body = body.unwrap_or_default();
    }
    let upstream = &worker.gateway.upstream(chosen.index).name;
    worker.gateway.telemetry.emit(&UpstreamRefusedUs { upstream });
    refusal
}

/// A request whose engine has refused our own credential. It ends when this is dropped, also if its
/// client leaves meanwhile.
struct RefusedCredential<'a> {
    settlement: Option<Settlement>,
    head: &'a response::Parts,
    body: Vec<u8>,
}

impl Drop for RefusedCredential<'_> {
    fn drop(&mut self) {
        if let Some(settlement) = self.settlement.take() {
            settlement.end_refused(self.head, std::mem::take(&mut self.body));
        }
    }
}
