//! Opens the sockets that listen.

use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::task::Poll;

use socket2::{Domain, Protocol, Socket, Type};
use taximeter_config::Addresses;
use tokio::net::TcpStream;

/// Connections that may wait to be accepted; the kernel may allow fewer.
const BACKLOG: i32 = 4096;

/// Sockets that listen, as one.
#[derive(Debug)]
pub struct Listeners {
    sockets: Vec<tokio::net::TcpListener>,
    /// Which is asked first, so that none waits for the others.
    next: usize,
}

impl Listeners {
    /// All of these.
    pub const fn new(sockets: Vec<tokio::net::TcpListener>) -> Self {
        Self { sockets, next: 0 }
    }

    /// The next connection on any of them.
    ///
    /// Errors: as of `accept` of one of them.
    pub async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        poll_fn(|cx| {
            let (before, behind) = self.sockets.split_at(self.next.min(self.sockets.len()));
            let first = self.next;
            for (index, socket) in (first..).zip(behind).chain((0..).zip(before)) {
                if let Poll::Ready(accepted) = socket.poll_accept(cx) {
                    self.next = index + 1;
                    return Poll::Ready(accepted);
                }
            }
            Poll::Pending
        })
        .await
    }
}

impl From<tokio::net::TcpListener> for Listeners {
    fn from(socket: tokio::net::TcpListener) -> Self {
        Self::new(vec![socket])
    }
}

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}")]
pub struct BindFault {
    /// The address.
    pub address: SocketAddr,
    /// Why.
    pub source: io::Error,
}

/// Listens on each of the addresses.
///
/// Errors: the first that does not go.
pub fn bind(addresses: &Addresses) -> Result<Vec<TcpListener>, BindFault> {
    let bound = addresses.iter().map(|address| {
        let leaves_ipv4 = addresses.iter().any(|other| leaves_to(address, other));
        listener(address, leaves_ipv4).map_err(|source| BindFault { address, source })
    });
    bound.collect()
}

/// Whether a socket for all addresses of IPv6, which would take those of IPv4 too, must leave them to
/// another one.
fn leaves_to(address: SocketAddr, other: SocketAddr) -> bool {
    let takes_all = address.is_ipv6() && address.ip().is_unspecified();
    takes_all && other.ip().to_canonical().is_ipv4() && other.port() == address.port()
}

fn listener(address: SocketAddr, leaves_ipv4: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if leaves_ipv4 {
        socket.set_only_v6(true)?;
    }
    // Connections of a gateway that has ended may still be closing.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_for_all_of_ipv6_leaves_ipv4_to_another_with_its_port() {
        for (address, other, leaves) in [
            ("[::]:80", "0.0.0.0:80", true),
            ("[::]:80", "127.0.0.1:80", true),
            ("[::]:80", "127.0.0.1:81", false),
            ("[::]:80", "[::1]:80", false),
            ("[::1]:80", "0.0.0.0:80", false),
            ("0.0.0.0:80", "[::]:80", false),
        ] {
            let [one, two] = [address, other].map(|text| text.parse().unwrap());
            assert_eq!(leaves_to(one, two), leaves, "{address} {other}");
        }
    }
}
