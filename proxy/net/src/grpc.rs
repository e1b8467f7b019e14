//! Makes one gRPC call: an HTTP/2 request whose answer has its status in the trailers.

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::upstream::EngineSocket;

/// Why there is no whole answer.
pub type CallFault = Box<dyn std::error::Error + Send + Sync>;

/// What came back.
#[derive(Debug)]
pub struct Reply {
    /// HTTP's own status, which is 200 whatever gRPC's is.
    pub status: StatusCode,
    /// The fields that may have gRPC's status: the trailers, or the head where nothing else came.
    pub ends: HeaderMap,
    /// The body, with what stands before each message.
    pub body: Bytes,
}

/// Sends `request` over a fresh socket, and reads an answer of at most `bytes_max` bytes.
///
/// Errors: the connection breaks, or the answer is longer than is read (`LengthLimitError`).
pub async fn call(
    socket: EngineSocket,
    request: Request<Bytes>,
    bytes_max: usize,
) -> Result<Reply, CallFault> {
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(socket)).await?;
    // Ends with the sender, or with an error that the answer has too.
    tokio::spawn(connection);
    let answer = sender.send_request(request.map(Full::new)).await?;
    let (head, body) = answer.into_parts();
    let collected = Limited::new(body, bytes_max).collect().await?;
    let trailers = collected.trailers().cloned();
    let ends = trailers.filter(|trailers| trailers.contains_key("grpc-status"));
    let body = collected.to_bytes();
    Ok(Reply { status: head.status, ends: ends.unwrap_or(head.headers), body })
}
