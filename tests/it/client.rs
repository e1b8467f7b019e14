//! A client on a bare socket: says exactly what it is told to, keeps exactly what it hears.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use crate::http::{Message, Unframed, ends, next_chunk, read_head, read_message};
use crate::patience::PATIENCE;

pub(crate) struct Client {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).expect("connect")
    }

    /// Connects to a gateway that may have gone.
    pub(crate) fn try_connect(address: SocketAddr) -> std::io::Result<Self> {
        Self::over(TcpStream::connect_timeout(&address, PATIENCE)?)
    }

    fn over(stream: TcpStream) -> std::io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, unread: Vec::new() })
    }

    /// Connects from an address of this machine.
    pub(crate) fn from(here: &str, address: SocketAddr) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let stream = runtime.expect("a runtime").block_on(async {
            let socket = tokio::net::TcpSocket::new_v4()?;
            socket.bind(here.parse().expect("an address"))?;
            socket.connect(address).await?.into_std()
        });
        let stream = stream.expect("connect");
        stream.set_nonblocking(false).expect("a socket that waits");
        Self::over(stream).expect("a socket")
    }

    /// Connects and sends.
    pub(crate) fn saying(address: SocketAddr, bytes: &[u8]) -> Self {
        let mut client = Self::connect(address);
        client.send(bytes);
        client
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).expect("send to the gateway");
    }

    /// Sends to a gateway that may have gone.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Says that nothing more will be sent; answers can still be read.
    pub(crate) fn close_half(&self) {
        self.stream.shutdown(Shutdown::Write).expect("close one half");
    }

    /// Waits for a whole answer, or for as much of it as comes.
    pub(crate) fn answer(&mut self) -> Message {
        self.try_answer().expect("an answer")
    }

    /// As `answer`; an error when not even a head comes.
    pub(crate) fn try_answer(&mut self) -> std::io::Result<Message> {
        read_message(&mut self.stream, &mut self.unread, Unframed::UntilClose)
    }

    /// Waits until the connection ends; all that came, as it came.
    pub(crate) fn all(&mut self) -> String {
        let mut all = std::mem::take(&mut self.unread);
        self.stream.read_to_end(&mut all).expect("an end in time");
        String::from_utf8(all).expect("UTF-8")
    }

    /// Waits for the head alone; the body is for `next_chunk`.
    pub(crate) fn head(&mut self) -> Message {
        read_head(&mut self.stream, &mut self.unread).expect("a head in time")
    }

    /// Waits for the next chunk of a body: empty for the last, `None` when the connection ends
    /// without it.
    pub(crate) fn next_chunk(&mut self) -> Option<Vec<u8>> {
        next_chunk(&mut self.stream, &mut self.unread).expect("a chunk in time")
    }

    /// Waits until this much of a body has come. Fails if it is anything else.
    pub(crate) fn expect(&mut self, expected: &str) {
        let mut came = Vec::new();
        while came.len() < expected.len() {
            let chunk = self.next_chunk().expect("a chunk");
            assert!(!chunk.is_empty(), "it ended after {:?}", String::from_utf8_lossy(&came));
            came.extend(chunk);
        }
        assert_eq!(String::from_utf8_lossy(&came), expected);
    }

    /// Whether something of the answer has come by now.
    pub(crate) fn has_answer(&self) -> bool {
        self.stream.set_nonblocking(true).expect("set nonblocking");
        let came = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).expect("set blocking");
        came.is_ok()
    }

    /// Waits until something of the answer has come.
    pub(crate) fn wait_for_byte(&mut self) -> std::io::Result<()> {
        let mut byte = [0];
        self.stream.read_exact(&mut byte)?;
        self.unread.extend(byte);
        Ok(())
    }

    /// Fails unless the gateway closes the connection without another byte.
    pub(crate) fn assert_closed(&mut self) {
        assert!(self.unread.is_empty(), "unread: {:?}", String::from_utf8_lossy(&self.unread));
        assert!(ends(&mut self.stream), "the gateway sent more");
    }
}

/// A program that another test starts holds a copy of this socket until it runs, and the connection
/// would not end before.
impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// One request, one answer, one connection.
pub(crate) fn ask(address: SocketAddr, bytes: &[u8]) -> Message {
    Client::saying(address, bytes).answer()
}
