//! The socket of a client, with and without TLS.

use std::task::{Context, Poll};

use taximeter_net::socket::Socket;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// What may wait encrypted for a client that does not read, in bytes: one record. More would be
/// counted as sent.
const TLS_BUFFER_BYTES_MAX: usize = 16 << 10;

/// A client's socket.
pub(super) type ClientSocket = Socket<TlsStream<TcpStream>>;

/// A socket whose handshake is done.
pub(super) fn secured(mut stream: TlsStream<TcpStream>) -> ClientSocket {
    stream.get_mut().1.set_buffer_limit(Some(TLS_BUFFER_BYTES_MAX));
    Socket::Tls(Box::new(stream))
}

/// Whether the other end has closed, as far as nobody has read up to there.
pub(super) fn poll_closed(socket: &mut ClientSocket, cx: &mut Context<'_>) -> bool {
    let tcp = match socket {
        Socket::Plain(tcp) => tcp,
        Socket::Tls(stream) => stream.get_mut().0,
    };
    let peeked = tcp.poll_peek(cx, &mut ReadBuf::new(&mut [0]));
    matches!(peeked, Poll::Ready(Ok(0) | Err(_)))
}
