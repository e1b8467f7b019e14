//! The causes for which an answer is cut, and the way each one is shown to the client.

use std::error::Error as _;
use std::io;
use std::task::{Context, Poll};

use taximeter_meter::StreamEnd;
use taximeter_net::framing::FramingFault;
use taximeter_telemetry::events::UpstreamProtocol;

use crate::gateway::Gateway;

/// Why a client's answer was cut.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayFault {
    /// The engine's message broke off.
    #[error("the engine's answer broke off")]
    UpstreamReset(#[source] hyper::Error),
    /// The engine fell silent.
    #[error("the engine was silent for too long")]
    UpstreamStalled,
    /// The whole request took longer than allowed.
    #[error("the request took longer than this gateway allows")]
    Deadline,
    /// The client has not read for too long.
    #[error("the client did not read for too long")]
    ClientStalled,
    /// We are shutting down.
    #[error("the gateway is shutting down")]
    Shutdown,
}

/// How an answer ended that broke: with its connection, or because it is not valid HTTP, which is
/// told.
pub(super) fn broken(gateway: &Gateway, upstream: usize, fault: &hyper::Error) -> StreamEnd {
    let Some(cause) = protocol_cause(fault) else { return StreamEnd::UpstreamReset };
    let upstream = &gateway.upstream(upstream).name;
    gateway.telemetry.emit(&UpstreamProtocol { upstream, cause });
    StreamEnd::UpstreamProtocol
}

/// What is wrong with a message. hyper tells a bad body by the kind of its cause.
fn protocol_cause(fault: &hyper::Error) -> Option<&'static str> {
    let cause = fault.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    let inner = cause.and_then(io::Error::get_ref);
    if let Some(framing) = inner.and_then(|inner| inner.downcast_ref::<FramingFault>()) {
        return Some(framing.cause());
    }
    match cause.map(io::Error::kind) {
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => Some("body"),
        _ if fault.is_parse_too_large() => Some("head_too_large"),
        _ => fault.is_parse().then_some("head"),
    }
}

/// Lets the connection write what it has before it hears of a fault: hyper drops its buffer with
/// the connection when the body fails.
#[derive(Debug, Default)]
pub(super) struct Flush(bool);

impl Flush {
    /// Pending once, and then ready.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
