//! What a client is told whose request cannot be read. hyper answers it in its place, behind all
//! requests before it, but with a bare status; what it writes is replaced by an answer in words.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use memchr::memmem;
use tokio::io::AsyncWrite;

/// All heads of ours have this, and hyper's own have not.
const OURS: &[u8] = b"x-taximeter-request-id";
const HEAD_END: &[u8] = b"\r\n\r\n";

/// An answer in the place of hyper's own.
#[derive(Debug)]
pub(super) struct Instead {
    answer: Vec<u8>,
    written: usize,
}

impl Instead {
    pub(super) const fn new(answer: Vec<u8>) -> Self {
        Self { answer, written: 0 }
    }

    /// Writes the answer if what hyper wants to write is its own; then all of that counts as
    /// written. `None` where it is something else.
    pub(super) fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut S,
        wanted: &[u8],
    ) -> Option<Poll<io::Result<usize>>> {
        is_hypers(wanted).then(|| self.poll_answer(cx, socket, wanted.len()))
    }

    fn poll_answer<S: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut S,
        wanted: usize,
    ) -> Poll<io::Result<usize>> {
        while let Some(rest) = self.answer.get(self.written..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut *socket).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.written += written,
            }
        }
        Poll::Ready(Ok(wanted))
    }
}

/// One head and nothing else, of an answer that did not come from us.
fn is_hypers(wanted: &[u8]) -> bool {
    wanted.starts_with(b"HTTP/1.")
        && wanted.get(b"HTTP/1.1".len()..).is_some_and(|status| status.starts_with(b" 4"))
        && memmem::find(wanted, HEAD_END) == wanted.len().checked_sub(HEAD_END.len())
        && memmem::find(wanted, OURS).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hyper_says_by_itself_is_told_from_what_we_say() {
        for (wanted, hypers) in [
            ("HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", true),
            ("HTTP/1.0 400 Bad Request\r\nconnection: close\r\n\r\n", true),
            ("HTTP/1.1 400 Bad Request\r\nx-taximeter-request-id: 1\r\n\r\n", false),
            ("HTTP/1.1 400 Bad Request\r\n\r\nx", false),
            ("HTTP/1.1 200 OK\r\n\r\n", false),
            ("{}", false),
        ] {
            assert_eq!(is_hypers(wanted.as_bytes()), hypers, "{wanted:?}");
        }
    }
}
