//! Makes one gRPC call: an HTTP/2 request whose answer has its status in the trailers.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use taximeter_net::upstream::EngineSocket;

use super::answer::{Answer, of_grpc};
use super::fault::SendFault;

/// Sends `request` over a fresh socket; what its answer, of at most `bytes_max` bytes, means.
///
/// Errors: the connection breaks, or the answer is longer than is read.
pub(super) async fn call(
    socket: EngineSocket,
    request: Request<Bytes>,
    bytes_max: usize,
) -> Result<Answer, SendFault> {
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(socket)).await?;
    // Ends with the sender, or with an error that the answer has too.
    tokio::spawn(connection);
    let answer = sender.send_request(request.map(Full::new)).await?;
    let (head, body) = answer.into_parts();
    let collected =
        Limited::new(body, bytes_max).collect().await.map_err(|fault| fault.to_string())?;
    let trailers = collected.trailers().cloned();
    let ends = trailers.filter(|trailers| trailers.contains_key("grpc-status"));
    let message = collected.to_bytes();
    Ok(of_grpc(head.status, ends.as_ref().unwrap_or(&head.headers), &message))
}
