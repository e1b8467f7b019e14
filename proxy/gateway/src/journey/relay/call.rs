//! Calls the engine: prepares the request, sends it, and waits for the head of its answer.

use std::sync::Arc;

use http::request::Parts;
use http::response;
use taximeter_ledger::VoidReason;
use taximeter_net::upstream::Exchange;
use taximeter_system::clock;

use super::super::refuse::Refusal;
use super::super::route::Chosen;
use super::super::settle::Settlement;
use super::headers::{self, Codings};
use super::interim;
use super::send::{Unsent, send};
use crate::health::Health;
use crate::listen::{Peer, Worker};

/// An answer whose head has come.
pub(super) struct Answer {
    pub(super) head: response::Parts,
    pub(super) exchange: Exchange,
}

/// Calls the upstream that is chosen; takes the body out of `chosen`.
///
/// Errors: there is no answer, and the settlement has ended.
pub(super) async fn call(
    worker: &Arc<Worker>,
    peer: &Arc<Peer>,
    head: Parts,
    chosen: &mut Chosen,
    settlement: &mut Option<Settlement>,
) -> Result<Answer, Refusal> {
    let hides = chosen.hidden.is_any();
    let codings = match settlement {
        Some(settlement) if hides || settlement.may_owe_receipt() => Codings::None,
        Some(settlement) if settlement.is_read() => Codings::Readable,
        _ => Codings::AsAsked,
    };
    let version = head.version;
    let mut request = headers::request(&worker.gateway, head, chosen, codings);
    interim::pass_on(&mut request, version, peer);
    match send(worker, chosen.index, request, settlement).await {
        Ok((link, answer)) => {
            let (head, body) = answer.into_parts();
            Ok(Answer { head, exchange: Exchange::new(link, body) })
        }
        Err((refusal, settled)) => {
            let refusal = failed(worker.gateway.health(chosen.index), refusal);
            unsent(settlement.take(), &refusal, settled).await;
            Err(refusal)
        }
    }
}

/// Notes what an upstream has failed; what the client is told.
fn failed(health: &Health, refusal: Refusal) -> Refusal {
    let was_away = health.known().is_away();
    // An engine is not to blame for what we have no room for.
    if !matches!(refusal, Refusal::Overloaded { .. }) {
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
        Unsent::Unused(end) => settlement.end_unused(VoidReason::NotSent, end),
        Unsent::Post(end) => drop(settlement.settle(end).await),
    }
}
