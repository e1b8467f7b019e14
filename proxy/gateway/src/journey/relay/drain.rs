//! Reads the rest of an answer whose client has left, for the usage at its end.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use taximeter_config::OnClientLeft;
use taximeter_meter::StreamEnd;
use taximeter_net::upstream::Exchange;
use taximeter_system::clock;
use taximeter_telemetry::events::AnswerLeft;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

use super::super::settle::Settlement;
use crate::listen::Worker;

/// Longest time that an answer is read on.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(30);

/// The answer will go nowhere. If that is because the client left: reads on where that is wanted
/// and there is a permit. Else cancels the engine's work and settles.
pub(super) fn dropped(
    worker: Arc<Worker>,
    upstream: usize,
    exchange: Exchange,
    mut settlement: Settlement,
) {
    let gateway = &worker.gateway;
    if !settlement.is_left() {
        drop(exchange);
        return drop(settlement);
    }
    let wanted = gateway.upstream(upstream).on_client_left == OnClientLeft::Drain
        && settlement.is_read()
        && !gateway.is_draining();
    let permit = wanted.then(|| gateway.left_answers.clone().try_acquire_owned().ok()).flatten();
    let runtime = Handle::try_current().ok();
    gateway.telemetry.emit(&AnswerLeft { drained: permit.is_some() && runtime.is_some() });
    match (permit, runtime) {
        (Some(permit), Some(runtime)) => {
            settlement.say_progress(clock::now());
            settlement.client_left();
            runtime.spawn(read_on(worker, upstream, exchange, settlement, permit));
        }
        _ => {
            drop(exchange);
            drop(settlement);
        }
    }
}

async fn read_on(
    worker: Arc<Worker>,
    upstream: usize,
    mut exchange: Exchange,
    mut settlement: Settlement,
    permit: OwnedSemaphorePermit,
) {
    let until = clock::now() + DRAIN_TIME_MAX;
    let silence_max = worker.gateway.config.limits.upstream_idle_timeout;
    loop {
        let left = until.saturating_duration_since(clock::now());
        let limit = settlement.time_left(silence_max.min(left));
        if limit.is_zero() {
            break;
        }
        match clock::within(limit, poll_fn(|cx| exchange.poll_frame(cx))).await {
            Some(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    settlement.on_bytes(clock::now(), data);
                }
            }
            Some(None) => {
                let link = poll_fn(|cx| std::task::Poll::Ready(exchange.take_link(cx))).await;
                if let Some(link) = link {
                    worker.pool.put(upstream, clock::now(), link);
                }
                break;
            }
            Some(Some(Err(_))) | None => break,
        }
    }
    drop(exchange);
    drop(settlement.settle(StreamEnd::ClientLeft));
    drop(permit);
}
