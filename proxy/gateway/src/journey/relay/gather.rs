//! Collects short answers that are not streams. It settles them, and sends them in one write with
//! the receipt in the head. An answer that turns out to be a stream passes as it comes.

use std::future::poll_fn;
use std::sync::Arc;

use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::response::Parts;
use taximeter_meter::{Delivery, StreamEnd};
use taximeter_net::fields::{COST, TOKENS};
use taximeter_net::upstream::Exchange;
use taximeter_system::clock;

use super::super::settle::{Receipt, Settlement};
use super::fault::{RelayFault, broken};
use super::pieces::Pieces;
use super::reply::ReplyBody;
use super::watch::Watch;
use crate::listen::Worker;

/// Whether an answer is short and says so: it is on its way whole, so that waiting for its end
/// delays nothing.
pub(super) fn fits(headers: &HeaderMap, bytes_max: usize) -> bool {
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let streams = headers
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
    !streams && length.and_then(|value| value.parse().ok()).is_some_and(|n: usize| n <= bytes_max)
}

/// The whole answer, after its entry is written; or the rest of a stream.
pub(super) async fn answer(
    worker: &Arc<Worker>,
    upstream: usize,
    mut exchange: Exchange,
    mut settlement: Settlement,
    head: &mut Parts,
) -> ReplyBody {
    let limit = worker.gateway.config.limits.upstream_idle_timeout;
    let (mut pieces, mut held) = (Pieces::default(), Pieces::default());
    let end = loop {
        let limit = settlement.time_left(limit);
        match clock::within(limit, poll_fn(|cx| exchange.poll_frame(cx))).await {
            None if settlement.is_overdue() => {
                break Err((RelayFault::Deadline, StreamEnd::Deadline));
            }
            None => break Err((RelayFault::UpstreamStalled, StreamEnd::UpstreamStalled)),
            Some(None) => break Ok(()),
            Some(Some(Err(fault))) => {
                let end = broken(&worker.gateway, upstream, &fault);
                break Err((RelayFault::UpstreamReset(fault), end));
            }
            Some(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    let Delivery { forward, hold } = settlement.on_bytes(clock::now(), data);
                    pieces.push(forward);
                    held.push(hold);
                }
                if settlement.stream_shape().is_some() && !exchange.is_end() {
                    let watch = Watch::new(worker.clone(), upstream, exchange, Some(settlement));
                    return ReplyBody::watch(watch.after(pieces, held));
                }
            }
        }
    };
    pieces.push(settlement.take_withheld());
    pieces.push(held.join());
    match end {
        Ok(()) => {
            let link = poll_fn(|cx| std::task::Poll::Ready(exchange.take_link(cx))).await;
            if let Some(link) = link {
                worker.pool.put(upstream, clock::now(), link);
            }
            let receipt = settlement.settle(StreamEnd::Clean).await;
            if worker.gateway.config.receipts {
                put_receipt(&mut head.headers, &receipt);
            }
            ReplyBody::whole(pieces.join())
        }
        Err((fault, end)) => {
            drop(exchange);
            settlement.settle(end).await;
            ReplyBody::broken(pieces.join(), fault)
        }
    }
}

fn put_receipt(headers: &mut HeaderMap, receipt: &Receipt) {
    for (name, value) in [(&TOKENS, &receipt.tokens), (&COST, &receipt.cost)] {
        if let Some(value) = value.as_deref().and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_answers_that_say_their_length_are_gathered() {
        let head = |pairs: &[(&'static str, &'static str)]| {
            pairs
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
                .collect::<HeaderMap>()
        };
        let json = ("content-type", "application/json");
        assert!(fits(&head(&[json, ("content-length", "10")]), 10));
        assert!(!fits(&head(&[json, ("content-length", "11")]), 10));
        assert!(!fits(&head(&[json]), 10));
        let stream = ("content-type", "text/event-stream; charset=utf-8");
        assert!(!fits(&head(&[stream, ("content-length", "5")]), 10));
    }
}
