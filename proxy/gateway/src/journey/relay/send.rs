//! Sends a request over an idle connection or a new one. It tries once more if nothing has reached
//! an engine.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use taximeter_meter::StreamEnd;
use taximeter_net::upstream::{DialFault, Link, RequestBody, SendFault};
use taximeter_system::clock;
use taximeter_telemetry::events::{UpstreamRetried, UpstreamUnreachable};

use super::fault::broken;
use crate::journey::refuse::Refusal;
use crate::journey::settle::Settlement;
use crate::listen::Worker;

/// Between two tries to connect, times the tries that there were: an engine that is started anew
/// listens again within it.
const REST: Duration = Duration::from_millis(50);

/// What becomes of a settlement whose request got no answer.
pub(super) enum Unsent {
    /// The engine did no work.
    Unused(StreamEnd),
    /// It may have.
    Post(StreamEnd),
}

/// A try that brought no answer.
struct Failed {
    refusal: Refusal,
    becomes: Unsent,
    /// What may be tried again, since nothing of it has reached an engine.
    again: Option<Again>,
}

struct Again {
    request: Box<Request<RequestBody>>,
    cause: &'static str,
    /// Whether it is worth a rest.
    rests: bool,
}

/// Sends, at most `attempts_max` times.
///
/// Errors: what the last try met, and what becomes of the settlement.
pub(super) async fn send(
    worker: &Worker,
    upstream: usize,
    mut request: Request<RequestBody>,
    settlement: &mut Option<Settlement>,
) -> Result<(Box<Link>, Response<Incoming>), (Refusal, Unsent)> {
    let mut link = poll_fn(|cx| Poll::Ready(worker.pool.take(upstream, clock::now(), cx))).await;
    let mut tries = 1;
    loop {
        let failed = match send_once(worker, upstream, link.take(), request, settlement).await {
            Ok(answer) => return Ok(answer),
            Err(failed) => failed,
        };
        let may_go_again = tries < worker.gateway.config.limits.attempts_max
            && !settlement.as_ref().is_some_and(Settlement::is_overdue);
        let Some(again) = failed.again.filter(|_| may_go_again) else {
            return Err((failed.refusal, failed.becomes));
        };
        if let Some(settlement) = settlement {
            settlement.tried(again.cause);
        }
        if again.rests {
            let rest = REST * tries;
            let rest = settlement.as_ref().map_or(rest, |settlement| settlement.time_left(rest));
            tokio::time::sleep(rest).await;
        }
        tries += 1;
        let name = &worker.gateway.upstream(upstream).name;
        worker.gateway.telemetry.emit(&UpstreamRetried { upstream: name, cause: again.cause });
        request = *again.request;
    }
}

async fn send_once(
    worker: &Worker,
    upstream: usize,
    pooled: Option<Box<Link>>,
    request: Request<RequestBody>,
    settlement: &mut Option<Settlement>,
) -> Result<(Box<Link>, Response<Incoming>), Failed> {
    // An engine may have closed a connection while a request was on its way.
    let may_go_again =
        pooled.is_some() && request.method().is_idempotent() && request.body().is_empty();
    let copy = may_go_again.then(|| Box::new(request.clone()));
    let mut link = match pooled {
        Some(link) => link,
        // Seldom, and large.
        None => match Box::pin(dial(worker, upstream)).await {
            Ok(link) => link,
            Err(fault) => return Err(unreachable(worker, upstream, request, &fault)),
        },
    };
    let again = |request| Again { request, cause: "reset", rests: false };
    match exchange(worker, upstream, &mut link, request, settlement).await {
        Ok(answer) => Ok((link, answer)),
        Err(Missed::NotSent(request)) => Err(Failed {
            refusal: Refusal::UpstreamReset,
            becomes: Unsent::Unused(StreamEnd::UpstreamReset),
            again: Some(again(request)),
        }),
        Err(Missed::Over(refusal, becomes)) => {
            let was_closed = matches!(refusal, Refusal::UpstreamReset) && !link.has_answer();
            Err(Failed { refusal, becomes, again: copy.filter(|_| was_closed).map(again) })
        }
    }
}

async fn dial(worker: &Worker, upstream: usize) -> Result<Box<Link>, DialFault> {
    let url = &worker.gateway.upstream(upstream).url;
    Link::new(worker.gateway.dialer.dial(url).await?).await
}

fn unreachable(
    worker: &Worker,
    upstream: usize,
    request: Request<RequestBody>,
    fault: &DialFault,
) -> Failed {
    let cause = fault.cause();
    worker.gateway.telemetry.emit(&UpstreamUnreachable {
        upstream: &worker.gateway.upstream(upstream).name,
        cause,
        message: fault.to_string(),
    });
    let (refusal, end) = match fault {
        DialFault::Descriptors => {
            (Refusal::Overloaded { limit: "file_descriptors" }, StreamEnd::Internal)
        }
        _ => (Refusal::UpstreamConnect { cause }, StreamEnd::UpstreamReset),
    };
    let again = Again { request: Box::new(request), cause, rests: true };
    Failed { refusal, becomes: Unsent::Unused(end), again: fault.may_pass().then_some(again) }
}

/// Why a connection brought no answer.
enum Missed {
    NotSent(Box<Request<RequestBody>>),
    Over(Refusal, Unsent),
}

async fn exchange(
    worker: &Worker,
    upstream: usize,
    link: &mut Link,
    request: Request<RequestBody>,
    settlement: &mut Option<Settlement>,
) -> Result<Response<Incoming>, Missed> {
    if let Some(settlement) = settlement {
        settlement.sent(clock::now());
    }
    let limit = worker.gateway.config.limits.upstream_head_timeout;
    let limit = settlement.as_ref().map_or(limit, |settlement| settlement.time_left(limit));
    match tokio::time::timeout(limit, link.send(request)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(SendFault::NotSent(request))) => Err(Missed::NotSent(request)),
        Ok(Err(SendFault::Broken(fault))) => {
            let end = broken(&worker.gateway, upstream, &fault);
            let refusal = match end {
                StreamEnd::UpstreamProtocol => Refusal::UpstreamProtocol,
                _ => Refusal::UpstreamReset,
            };
            Err(Missed::Over(refusal, Unsent::Post(end)))
        }
        Err(_) => {
            let overdue = settlement.as_ref().is_some_and(Settlement::is_overdue);
            let end = if overdue { StreamEnd::Deadline } else { StreamEnd::UpstreamStalled };
            // What it has in part it cannot have begun to work on.
            let becomes = if link.has_sent() { Unsent::Post(end) } else { Unsent::Unused(end) };
            Err(Missed::Over(Refusal::UpstreamTimeout, becomes))
        }
    }
}
