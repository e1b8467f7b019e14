//! May it be served now? Then the worst case is reserved on the ledger, before anything is sent.

use std::sync::Arc;

use taximeter_config::OnUnavailable;
use taximeter_ledger::{Entry, Reserve, VoidReason};

use super::identify::{Billing, Call};
use super::refuse::Refusal;
use super::route::Chosen;
use super::settle::Fare;
use crate::edge::journal::AppendError;
use crate::edge::listen::Peer;
use crate::gateway::Gateway;
use crate::telemetry::events::LedgerSlow;

/// Leave to be served. Used up by the reservation.
#[derive(Debug)]
pub(crate) struct Permit(());

/// Leave to be served, as far as the gateway's own state goes.
///
/// Errors: draining, little memory left, ledger cannot be written, target too long.
pub(crate) fn permit(
    gateway: &Gateway,
    call: &Call,
    head: &http::request::Parts,
) -> Result<Permit, Refusal> {
    let bytes_max = gateway.config.limits.uri_bytes_max;
    if head.uri.path_and_query().is_some_and(|target| target.as_str().len() > bytes_max) {
        return Err(Refusal::UriTooLong { bytes_max });
    }
    if gateway.is_draining() {
        return Err(Refusal::Draining);
    }
    if gateway.memory.is_tight() {
        return Err(Refusal::Overloaded);
    }
    if call.route.billing == Billing::Ledger && !gateway.journal.is_open() {
        return Err(Refusal::LedgerUnavailable);
    }
    Ok(Permit(()))
}

impl Permit {
    /// Writes the reservation and waits until the kernel has it. From here on the fare settles the
    /// request.
    ///
    /// Errors: the ledger cannot be written.
    pub(crate) async fn reserve(
        self,
        gateway: &Arc<Gateway>,
        peer: &Arc<Peer>,
        call: Call,
        chosen: &mut Chosen,
    ) -> Result<Fare, Refusal> {
        let entry = Entry::Reserve(Box::new(Reserve {
            id: call.id,
            request_id: call.request_id.to_string(),
            started_at: call.started_at,
            tenant: call.caller.tenant.clone(),
            key_id: call.caller.key_id.clone(),
            identity: call.caller.identity,
            labels: call.caller.labels.clone(),
            operation: call.route.operation.as_str().to_owned(),
            route: call.route.template.to_owned(),
            stream: chosen.stream,
            upstream: gateway.upstream(chosen.index).name.clone(),
            provider: gateway.provider(chosen.index).to_owned(),
            request_model: chosen.request_model.clone(),
            service_tier: chosen.service_tier.clone(),
            amount: chosen.amount_max,
        }));
        let Ok(written) = gateway.journal.append(&entry) else {
            return Err(Refusal::LedgerUnavailable);
        };
        let fare = Fare::new(gateway.clone(), peer.clone(), call, chosen);
        let limit = gateway.config.limits.ledger_write_timeout;
        let written = tokio::time::timeout(limit, written).await;
        if written.is_err() {
            gateway.telemetry.emit(&LedgerSlow { action: "reserve", took: limit });
        }
        let serves = gateway.config.ledger.unavailable == OnUnavailable::Serve;
        match written {
            Ok(Ok(_)) => Ok(fare),
            // It is queued, and will be written before what follows it.
            Ok(Err(AppendError::Unavailable)) | Err(_) if serves => Ok(fare),
            // The entry may still reach the disk later; the void that follows it keeps the sums
            // right.
            Ok(Err(_)) | Err(_) => {
                fare.void(VoidReason::NotSent);
                Err(Refusal::LedgerUnavailable)
            }
        }
    }
}
