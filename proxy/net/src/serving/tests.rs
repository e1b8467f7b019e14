//! Tests of the server for the admin address and the webhook.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::Full;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::*;

/// Longest that anything here is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Long enough for whatever is not kept from happening.
const MOMENT: Duration = Duration::from_millis(100);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Bounds that nobody comes near to.
const WIDE: Bounds = Bounds {
    connections_max: 16,
    connections_per_peer_max: None,
    handshake_timeout: PATIENCE,
    first_head_timeout: PATIENCE,
    head_timeout: PATIENCE,
    age_max: PATIENCE,
};

/// Heads that nobody sends here but to see what happens.
const HEADS: HeadBounds =
    HeadBounds { bytes_max: 64 << 10, fields_max: 20, target_bytes_max: 1_000 };

/// What answers wait for that are asked to.
#[derive(Default)]
struct Gate {
    came: Notify,
    go: Notify,
}

/// A server that lets everybody in.
struct Served {
    server: Arc<Server>,
    serving: JoinHandle<()>,
    address: SocketAddr,
    gate: Arc<Gate>,
}

async fn served(bounds: Bounds) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (server, gate) = (Arc::new(Server::new(bounds)), Arc::<Gate>::default());
    let (serving, before) = (server.clone(), gate.clone());
    let answer = move |request: Request<Incoming>, caller: Caller| {
        assert!(!caller.is_certified, "there is no TLS");
        let before = before.clone();
        async move {
            if request.uri().path() == "/wait" {
                before.came.notify_one();
                before.go.notified().await;
            }
            Response::new(Full::new(Bytes::from_static(b"well")))
        }
    };
    let serving =
        tokio::spawn(async move { serving.serve(listener, None, || HEADS, answer).await });
    Served { server, serving, address, gate }
}

/// What comes on a connection until it is closed.
async fn to_its_end(socket: &mut TcpStream) -> String {
    let mut came = Vec::new();
    let read = timeout(PATIENCE, socket.read_to_end(&mut came)).await;
    // Whoever is let go may be so with a reset.
    let _: io::Result<usize> = read.expect("it is closed");
    String::from_utf8(came).unwrap()
}

async fn answered(socket: &mut TcpStream) -> String {
    let mut came = Vec::new();
    while !came.ends_with(b"well") {
        let read = timeout(PATIENCE, socket.read_buf(&mut came)).await.expect("an answer");
        assert_ne!(read.unwrap(), 0, "closed");
    }
    String::from_utf8(came).unwrap()
}

#[tokio::test]
async fn whoever_says_nothing_or_half_a_head_is_let_go() {
    let Served { address, .. } = served(Bounds { head_timeout: MOMENT, ..WIDE }).await;
    for words in [b"".as_slice(), b"GET / HT", b"GET / HTTP/1.1\r\nHost: a\r\n"] {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(words).await.unwrap();
        assert_eq!(to_its_end(&mut socket).await, "", "{words:?}");
    }
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(REQUEST).await.unwrap();
    let answer = to_its_end(&mut socket).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("well"), "{answer}");
}

#[tokio::test]
async fn who_never_asks_is_let_go_before_one_who_has_asked() {
    let Served { address, .. } = served(Bounds { first_head_timeout: MOMENT, ..WIDE }).await;
    let mut known = TcpStream::connect(address).await.unwrap();
    known.write_all(REQUEST).await.unwrap();
    answered(&mut known).await;
    for words in [b"".as_slice(), b"GET / HT"] {
        let mut silent = TcpStream::connect(address).await.unwrap();
        silent.write_all(words).await.unwrap();
        assert_eq!(to_its_end(&mut silent).await, "", "{words:?}");
    }
    known.write_all(REQUEST).await.unwrap();
    answered(&mut known).await;
}

#[tokio::test]
async fn silent_clients_of_one_address_leave_places_for_another() {
    let bounds = Bounds { connections_per_peer_max: Some(128), ..Bounds::of_age(PATIENCE) };
    let Served { address, .. } = served(bounds).await;
    let mut silent = Vec::new();
    for _ in 0..300 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        silent.push(socket.connect(address).await.unwrap());
    }
    let mut probe = TcpStream::connect(address).await.unwrap();
    probe.write_all(REQUEST).await.unwrap();
    // Long before any of them is let go.
    let well = timeout(Duration::from_secs(8), answered(&mut probe)).await;
    assert!(well.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 ")), "nobody else is heard");
}

#[tokio::test]
async fn more_than_there_is_room_for_wait_until_somebody_leaves() {
    let Served { address, .. } = served(Bounds { connections_max: 2, ..WIDE }).await;
    let mut there = Vec::new();
    for _ in 0..2 {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(REQUEST).await.unwrap();
        answered(&mut socket).await;
        there.push(socket);
    }
    let mut third = TcpStream::connect(address).await.unwrap();
    third.write_all(REQUEST).await.unwrap();
    let early = timeout(MOMENT, third.read_u8()).await;
    assert!(early.is_err(), "there is no room: {early:?}");
    there.pop();
    answered(&mut third).await;
}

#[tokio::test]
async fn a_head_as_large_as_may_be_is_read_and_a_larger_one_is_refused() {
    let Served { address, .. } = served(WIDE).await;
    let head = |bytes: usize| {
        let start = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: ";
        format!("{start}{}\r\n\r\n", "x".repeat(bytes - start.len() - 4))
    };
    let fields = |count: usize| {
        format!("GET / HTTP/1.1\r\n{}Connection: close\r\n\r\n", "X: 1\r\n".repeat(count - 1))
    };
    let target = |bytes: usize| {
        format!("GET /{} HTTP/1.1\r\nConnection: close\r\n\r\n", "x".repeat(bytes - 1))
    };
    for (request, status) in [
        (head(HEADS.bytes_max), 200),
        (head(HEADS.bytes_max + 1), 431),
        (fields(HEADS.fields_max), 200),
        (fields(HEADS.fields_max + 1), 431),
        (target(HEADS.target_bytes_max), 200),
        (target(HEADS.target_bytes_max + 1), 414),
    ] {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let answer = to_its_end(&mut socket).await;
        let shown = &request[..40];
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{shown}: {answer}");
    }
    let mut socket = TcpStream::connect(address).await.unwrap();
    // It may be cut off while it still sends.
    let _ = socket.write_all(head(4 * HEADS.bytes_max).as_bytes()).await;
    let answer = to_its_end(&mut socket).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn an_old_connection_ends_behind_its_answer() {
    let Served { address, gate, .. } = served(Bounds { age_max: 10 * MOMENT, ..WIDE }).await;
    let mut idle = TcpStream::connect(address).await.unwrap();
    let mut busy = TcpStream::connect(address).await.unwrap();
    busy.write_all(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    gate.came.notified().await;
    assert_eq!(to_its_end(&mut idle).await, "");
    gate.go.notify_one();
    assert!(to_its_end(&mut busy).await.ends_with("well"));
}

#[tokio::test]
async fn a_drain_lets_what_runs_end_and_waits_for_it() {
    let Served { server, serving, address, gate } = served(WIDE).await;
    let mut idle = TcpStream::connect(address).await.unwrap();
    let mut busy = TcpStream::connect(address).await.unwrap();
    busy.write_all(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    gate.came.notified().await;
    serving.abort();
    let draining = tokio::spawn(async move { server.drain().await });
    assert_eq!(to_its_end(&mut idle).await, "");
    assert!(!draining.is_finished(), "one is not answered yet");
    gate.go.notify_one();
    assert!(to_its_end(&mut busy).await.ends_with("well"));
    timeout(PATIENCE, draining).await.expect("nobody is left").unwrap();
}
