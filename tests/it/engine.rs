//! A scripted engine: the test itself reads what came over the wire and says which bytes go back,
//! and when.
//!
//! Everything happens on the test's own thread, in the order in which it is written there.

use std::io::{ErrorKind, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use crate::client::Client;
use crate::http::{Message, STREAM_HEAD, Unframed, ends, json_answer, read_head, read_message};
use crate::patience::{PATIENCE, patiently};

/// Listens where the gateway expects an engine.
pub(crate) struct Engine {
    listener: TcpListener,
}

impl Engine {
    pub(crate) fn start() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").expect("bind the engine") }
    }

    /// Where one has been before.
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self { listener: TcpListener::bind(address).expect("bind the engine") }
    }

    /// Its kernel takes in little of what is not read.
    pub(crate) fn start_with_small_buffers() -> Self {
        let engine = Self::start();
        let listener = socket2::SockRef::from(&engine.listener);
        listener.set_recv_buffer_size(4 << 10).expect("set the buffer's size");
        engine
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("the engine's address")
    }

    /// The next connection, if there is one by now.
    pub(crate) fn try_accept(&self) -> Option<Connection> {
        self.listener.set_nonblocking(true).expect("set nonblocking");
        let came = self.listener.accept();
        self.listener.set_nonblocking(false).expect("set blocking");
        let (stream, _) = came.ok()?;
        stream.set_nonblocking(false).expect("a socket that waits");
        Some(Connection::over(stream))
    }

    /// Waits for the next connection.
    pub(crate) fn accept(&self) -> Connection {
        let listener = socket2::SockRef::from(&self.listener);
        listener.set_read_timeout(Some(PATIENCE)).expect("set the time limit");
        let (stream, _) = self.listener.accept().expect("the gateway did not connect in time");
        Connection::over(stream)
    }

    /// Waits for a connection with a whole request on it.
    pub(crate) fn request(&self) -> (Connection, Message) {
        let mut connection = self.accept();
        let request = connection.request();
        (connection, request)
    }

    /// The connection on which the client's request comes; `None` when the client is answered without
    /// it.
    pub(crate) fn taken(&self, client: &Client) -> Option<Connection> {
        let came = patiently(|| match self.try_accept() {
            None if client.has_answer() => Some(None),
            None => None,
            came => Some(came),
        });
        let mut connection = came.expect("an answer, or a request at the engine")?;
        connection.request();
        Some(connection)
    }

    /// Takes one request, and begins to answer it with a stream of events.
    pub(crate) fn begin_stream(&self) -> Connection {
        let (mut connection, _) = self.request();
        connection.send(STREAM_HEAD);
        connection
    }

    /// Takes one request, answers it with these bytes, closes. The request as it came.
    pub(crate) fn answer_once(&self, answer: &[u8]) -> Message {
        let (mut connection, request) = self.request();
        connection.send(answer);
        request
    }

    /// Answers questions about its models, by which a gateway finds out what it is, until another
    /// request comes.
    pub(crate) fn serve_until_answered(&self, answer: &str) {
        loop {
            let (mut connection, request) = self.request();
            if request.first_line.starts_with("POST ") {
                connection.send(&json_answer(answer));
                return;
            }
            connection.send(&json_answer(r#"{"object":"list","data":[]}"#));
        }
    }

    /// Fails if the gateway has connected.
    ///
    /// Meaningful once the client has its answer: a connection made before that is in the backlog
    /// by now.
    pub(crate) fn assert_untouched(&self) {
        self.listener.set_nonblocking(true).expect("set nonblocking");
        let came = self.listener.accept();
        self.listener.set_nonblocking(false).expect("set blocking");
        assert_eq!(came.map(drop).map_err(|e| e.kind()), Err(ErrorKind::WouldBlock));
    }
}

/// One connection of the gateway to the engine. Dropped, it is closed the polite way.
pub(crate) struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Connection {
    fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("set the time limit");
        stream.set_write_timeout(Some(PATIENCE)).expect("set the time limit");
        stream.set_nodelay(true).expect("set nodelay");
        Self { stream, unread: Vec::new() }
    }

    /// Waits for a whole request.
    pub(crate) fn request(&mut self) -> Message {
        read_message(&mut self.stream, &mut self.unread, Unframed::Empty)
            .expect("the gateway's request")
    }

    /// Waits for the head of a request, and leaves its body unread.
    pub(crate) fn head(&mut self) -> Message {
        read_head(&mut self.stream, &mut self.unread).expect("the gateway's request")
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).expect("send to the gateway");
    }

    /// Sends to a gateway that may have gone.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Breaks the connection with a reset, as a crashed engine does.
    pub(crate) fn reset(self) {
        let socket = socket2::SockRef::from(&self.stream);
        socket.set_linger(Some(std::time::Duration::ZERO)).expect("set linger");
    }

    /// Waits until the gateway has closed or reset the connection. Fails if it sends anything
    /// first.
    pub(crate) fn assert_closed_by_gateway(mut self) {
        assert!(ends(&mut self.stream), "the gateway sent more");
    }
}

/// A program that another test starts holds a copy of this socket until it runs, and the connection
/// would not end before: the gateway would send its next request on it.
impl Drop for Connection {
    fn drop(&mut self) {
        let is_to_be_reset =
            socket2::SockRef::from(&self.stream).linger().is_ok_and(|l| l.is_some());
        if !is_to_be_reset {
            let _ = self.stream.shutdown(Shutdown::Both);
        }
    }
}
