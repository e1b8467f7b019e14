//! Decides whether a request may run now, and reserves its highest possible cost in the ledger
//! before a byte is sent.

use std::sync::Arc;
use std::time::Duration;

use taximeter_config::OnUnavailable;
use taximeter_journal::AppendError;
use taximeter_ledger::{Entry, Reserve, TenantId, VoidReason};
use taximeter_meter::{Output, StreamEnd};
use taximeter_net::concurrency::Permit;
use taximeter_telemetry::events::{LedgerSlow, TenantLimited};
use taximeter_tokenizer::estimate;

use super::identify::{Billing, Call};
use super::refuse::Refusal;
use super::route::Chosen;
use super::settle::Settlement;
use crate::contexts::PromptContext;
use crate::gateway::Gateway;
use crate::listen::Peer;

/// Leave to be served. Used up by the reservation.
#[derive(Debug)]
pub struct Admission(Option<Permit<TenantId>>);

/// Leave to be served, as far as the gateway's own state and the tenant's other requests go.
///
/// Errors: draining, little memory left, ledger cannot be written, the tenant has as many requests as
/// it may.
pub fn admission(gateway: &Gateway, call: &Call) -> Result<Admission, Refusal> {
    if gateway.is_draining() {
        return Err(Refusal::Draining);
    }
    if gateway.memory.is_tight() {
        return Err(Refusal::Overloaded { limit: "memory" });
    }
    if call.route.billing == Billing::Ledger && !gateway.takes_entries() {
        return Err(Refusal::LedgerUnavailable);
    }
    let tenant = &call.caller.tenant;
    let Some(most) = gateway.directory.concurrency(tenant) else { return Ok(Admission(None)) };
    match gateway.tenants.admit(tenant, most) {
        Some(permit) => Ok(Admission(Some(permit))),
        None => {
            gateway.telemetry.emit(&TenantLimited { tenant });
            Err(Refusal::ConcurrencyLimited { most })
        }
    }
}

impl Admission {
    /// Writes the reservation and waits until the kernel has it. From here on the settlement owns the
    /// request's entries.
    ///
    /// Errors: the ledger cannot be written.
    pub async fn reserve(
        self,
        gateway: &Arc<Gateway>,
        peer: &Arc<Peer>,
        call: Call,
        chosen: &mut Chosen,
    ) -> Result<Settlement, Refusal> {
        let wire = call.wire();
        let entry = Entry::Reserve(Box::new(Reserve {
            id: call.id,
            request_id: call.request_id.to_string(),
            started_at: call.started_at,
            tenant: call.caller.tenant.clone(),
            key_id: call.caller.key_id.clone(),
            identity: call.caller.identity,
            labels: call.caller.labels.clone(),
            dimensions: None,
            operation: call.route.operation.as_str().to_owned(),
            route: call.route.template.to_owned(),
            stream: chosen.stream,
            upstream: gateway.upstream(chosen.index).name.clone(),
            provider: gateway.provider(chosen.index).to_owned(),
            request_model: chosen.request_model.clone(),
            service_tier: chosen.service_tier.clone(),
            amount: chosen.amount_max,
            input_tokens: match chosen.context {
                PromptContext::None => wire.is_text().then(|| estimate(chosen.body_bytes)),
                PromptContext::Known(size) => {
                    Some(estimate(chosen.body_bytes).saturating_add(size.likely))
                }
                PromptContext::Unknown => None,
            },
            output_tokens: (wire.is_text() && wire.output() == Output::Text).then_some(0),
            context: chosen.context == PromptContext::Unknown,
            background: chosen.background,
        }));
        let Ok(written) = gateway.journal.append(&entry) else {
            return Err(Refusal::LedgerUnavailable);
        };
        let settlement = Settlement::new(gateway.clone(), peer.clone(), call, chosen, self.0);
        let limit = gateway.config.limits.ledger_write_timeout;
        let serves = gateway.config.ledger.unavailable == OnUnavailable::Serve;
        let tell_slow = || gateway.telemetry.emit(&LedgerSlow { action: "reserve", took: limit });
        if may_go_on(written, limit, serves, tell_slow).await {
            return Ok(settlement);
        }
        // The entry may still reach the disk later; the void that follows it keeps the sums right.
        settlement.end_unused(VoidReason::NotSent, StreamEnd::Internal);
        Err(Refusal::LedgerUnavailable)
    }
}

/// Whether a request may go on whose reservation is `written` within `limit`, or is not.
async fn may_go_on<T>(
    written: impl Future<Output = Result<T, AppendError>>,
    limit: Duration,
    serves: bool,
    tell_slow: impl FnOnce(),
) -> bool {
    match tokio::time::timeout(limit, written).await {
        Ok(Ok(_)) => true,
        // It is queued, and will be written before what follows it.
        Ok(Err(AppendError::Unavailable)) => serves,
        Ok(Err(_)) => false,
        Err(_) => {
            tell_slow();
            serves
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, ready};

    use super::*;

    #[test]
    fn a_ledger_that_takes_too_long_refuses_and_where_it_serves_it_is_waited_for_no_longer() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let limit = Duration::from_millis(5);
        let goes_on = |serves, written: Option<Result<(), AppendError>>| {
            let slow = Cell::new(false);
            let tell_slow = || slow.set(true);
            let goes_on = runtime.block_on(async {
                match written {
                    Some(written) => may_go_on(ready(written), limit, serves, tell_slow).await,
                    None => may_go_on::<()>(pending(), limit, serves, tell_slow).await,
                }
            });
            (goes_on, slow.get())
        };
        for serves in [false, true] {
            assert_eq!(goes_on(serves, Some(Ok(()))), (true, false));
            assert_eq!(goes_on(serves, None), (serves, true));
            assert_eq!(goes_on(serves, Some(Err(AppendError::Unavailable))), (serves, false));
            assert_eq!(goes_on(serves, Some(Err(AppendError::Closed))), (false, false));
        }
    }
}
