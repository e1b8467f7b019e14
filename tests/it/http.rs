//! HTTP/1.1 messages as bytes: made by hand and read by hand, so that nothing is repaired on the
//! way.

use std::io::{Error, ErrorKind, Read};

/// One message as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// Request line or status line.
    pub(crate) first_line: String,
    /// Names as written, in the order in which they came.
    pub(crate) headers: Vec<(String, String)>,
    /// Without chunk framing.
    pub(crate) body: Vec<u8>,
    /// The message ended as its framing says.
    pub(crate) complete: bool,
}

impl Message {
    pub(crate) fn status(&self) -> u16 {
        let code = self.first_line.split(' ').nth(1).expect("a status line");
        code.parse().expect("a status code")
    }

    /// The value of the only header with this name, in any case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values =
            self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v);
        let first = values.next();
        assert_eq!(values.next(), None, "{name} is there twice");
        first.map(String::as_str)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body in UTF-8")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e} in {:?}", String::from_utf8_lossy(&self.body)))
    }
}

/// The bytes of a request with a body and its length.
pub(crate) fn post(target: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         {headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The bytes of a request without a body.
pub(crate) fn bare(method: &str, target: &str, headers: &str) -> Vec<u8> {
    format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").into_bytes()
}

/// The bytes of an answer with a length.
pub(crate) fn answer(status: &str, content_type: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The bytes of a JSON answer.
pub(crate) fn json_answer(body: impl AsRef<[u8]>) -> Vec<u8> {
    answer("200 OK", "application/json", body)
}

/// Head of a stream of events, sent in chunks.
pub(crate) const STREAM_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// The end of a message that is sent in chunks.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// One chunk of a message.
pub(crate) fn chunk(data: impl AsRef<[u8]>) -> Vec<u8> {
    let data = data.as_ref();
    [format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat()
}

/// One chunk for each event.
pub(crate) fn chunks<T: AsRef<[u8]>>(events: &[T]) -> Vec<u8> {
    events.iter().flat_map(chunk).collect()
}

/// A whole stream: head, one chunk an event, end.
pub(crate) fn stream_answer<T: AsRef<[u8]>>(events: &[T]) -> Vec<u8> {
    [STREAM_HEAD, &chunks(events), LAST_CHUNK].concat()
}

/// Whether a message without length and chunks has a body, up to where the connection ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unframed {
    Empty,
    UntilClose,
}

/// Reads one message to the end that its framing gives it, or to where the connection ends.
///
/// `unread` holds what was read beyond.
pub(crate) fn read_message(
    from: &mut impl Read,
    unread: &mut Vec<u8>,
    unframed: Unframed,
) -> std::io::Result<Message> {
    let mut message = read_head(from, unread)?;
    if message.header("transfer-encoding").is_some() {
        message.complete = loop {
            match next_chunk(from, unread)? {
                None => break false,
                Some(data) if data.is_empty() => break true,
                Some(data) => message.body.extend(data),
            }
        };
    } else if let Some(length) = message.header("content-length") {
        let length = length.parse().map_err(|e| Error::new(ErrorKind::InvalidData, e))?;
        message.complete = fill(from, unread, length)?;
        message.body = unread.drain(..length.min(unread.len())).collect();
    } else if unframed == Unframed::UntilClose {
        while more(from, unread)? > 0 {}
        message.body = std::mem::take(unread);
    }
    Ok(message)
}

/// Reads the head of a message; its body stays empty.
pub(crate) fn read_head(from: &mut impl Read, unread: &mut Vec<u8>) -> std::io::Result<Message> {
    let head_end = loop {
        if let Some(at) = find(unread, b"\r\n\r\n") {
            break at;
        }
        if more(from, unread)? == 0 {
            return Err(Error::new(ErrorKind::UnexpectedEof, "closed before a whole head"));
        }
    };
    let head: Vec<u8> = unread.drain(..head_end + 4).collect();
    let head = String::from_utf8(head).map_err(|e| Error::new(ErrorKind::InvalidData, e))?;
    let mut lines = head.trim_end().split("\r\n");
    let first_line = lines.next().unwrap_or_default().to_owned();
    let headers = lines
        .map(|line| {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            (name.to_owned(), value.trim().to_owned())
        })
        .collect();
    Ok(Message { first_line, headers, body: Vec::new(), complete: true })
}

/// The data of the next chunk, empty for the last; `None` when the connection ended inside.
pub(crate) fn next_chunk(
    from: &mut impl Read,
    unread: &mut Vec<u8>,
) -> std::io::Result<Option<Vec<u8>>> {
    let line_end = loop {
        if let Some(at) = find(unread, b"\r\n") {
            break at;
        }
        if more(from, unread)? == 0 {
            return Ok(None);
        }
    };
    let size = std::str::from_utf8(&unread[..line_end])
        .ok()
        .and_then(|text| usize::from_str_radix(text, 16).ok())
        .ok_or_else(|| Error::new(ErrorKind::InvalidData, "no chunk size"))?;
    if !fill(from, unread, line_end + 2 + size + 2)? {
        return Ok(None);
    }
    let framed: Vec<u8> = unread.drain(..line_end + 2 + size + 2).collect();
    Ok(Some(framed[line_end + 2..line_end + 2 + size].to_vec()))
}

/// Reads until `unread` has `length` bytes; false when the connection ends before.
fn fill(from: &mut impl Read, unread: &mut Vec<u8>, length: usize) -> std::io::Result<bool> {
    while unread.len() < length {
        if more(from, unread)? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Waits until the connection ends, politely or not; false when something comes instead.
pub(crate) fn ends(from: &mut impl Read) -> bool {
    more(from, &mut Vec::new()).expect("the connection stays open") == 0
}

/// One read; 0 when the connection has ended, politely or not.
fn more(from: &mut impl Read, unread: &mut Vec<u8>) -> std::io::Result<usize> {
    let mut buffer = [0; 16 << 10];
    match from.read(&mut buffer) {
        Ok(count) => {
            unread.extend(&buffer[..count]);
            Ok(count)
        }
        Err(e) if e.kind() == ErrorKind::ConnectionReset => Ok(0),
        Err(e) if e.kind() == ErrorKind::Interrupted => more(from, unread),
        Err(e) => Err(e),
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[test]
fn messages_are_read_the_same_however_their_bytes_arrive() {
    /// Gives one byte a read.
    struct Drip<'a>(&'a [u8]);
    impl Read for Drip<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            into[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }
    let read = |mut from: &mut dyn Read, unread: &mut Vec<u8>| {
        read_message(&mut from, unread, Unframed::UntilClose).expect("a message")
    };
    for bytes in [
        json_answer("{\"a\":1}"),
        stream_answer(&["data: 1\n\n", "data: 2\n\n"]),
        post("/v1/x", "A: b\r\n", "body"),
        b"HTTP/1.1 200 OK\r\n\r\nup to the close".to_vec(),
        json_answer("cut short")[..70].to_vec(),
    ] {
        let whole = read(&mut bytes.as_slice(), &mut Vec::new());
        assert_eq!(read(&mut Drip(&bytes), &mut Vec::new()), whole);
        assert_eq!(whole.complete, bytes.len() != 70, "{whole:?}");
    }
    let mut unread = Vec::new();
    let both = [json_answer("1"), json_answer("2")].concat();
    assert_eq!(read(&mut both.as_slice(), &mut unread).text(), "1");
    assert_eq!(unread, json_answer("2"));
}
