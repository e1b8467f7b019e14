//! Reads server-sent events by the WHATWG rules. A read may begin and end anywhere.
//!
//! The reader hands out an event without a copy where one read holds all of it. It copies only an
//! event that crosses reads, up to a limit.

use memchr::memchr2;

/// Longest line, and longest data of one event, that is read where nothing else is said, in bytes.
/// Longer ones pass and are not read.
pub(crate) const SSE_LINE_BYTES_MAX: usize = 1 << 20;

/// A buffer that grew beyond this is given back after its event.
const KEPT_CAPACITY_BYTES_MAX: usize = 16 << 10;

pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Cuts a stream into blocks: lines up to and including a blank one.
#[derive(Debug)]
pub(crate) struct Splitter {
    /// Longest line, and longest data of one event, that is read.
    bytes_max: usize,
    /// The unfinished line, as far as it came with earlier reads.
    line: Vec<u8>,
    /// The unfinished line is too long; its bytes are not kept.
    line_is_too_long: bool,
    /// A line has ended: a byte order mark is text from now on.
    begun: bool,
    /// The last line ended with CR: an LF that follows belongs to it.
    after_cr: bool,
    /// Data of the unfinished block, lines joined by LF, as far as it is not in place.
    data: Vec<u8>,
    has_data: bool,
    /// The unfinished block holds something that was too long: it says nothing.
    unreadable: bool,
    is_error: bool,
    /// Lines and events that were too long.
    pub(crate) too_long: u32,
}

/// One block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block<'a> {
    /// Offset in the read just behind the byte that ended it.
    pub(crate) end: usize,
    /// What it says; comments and empty blocks say nothing.
    pub(crate) event: Option<Event<'a>>,
}

/// What a block dispatches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    /// Its name is `error`. All other names are repeated in the data by every wire format.
    pub(crate) is_error: bool,
    /// The kind of error that it is, where its frame tells that and not its data.
    pub(crate) exception: Option<&'a [u8]>,
    pub(crate) data: &'a [u8],
}

impl Splitter {
    /// A splitter that reads lines and events of at most `bytes_max`.
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            line: Vec::new(),
            line_is_too_long: false,
            begun: false,
            after_cr: false,
            data: Vec::new(),
            has_data: false,
            unreadable: false,
            is_error: false,
            too_long: 0,
        }
    }

    /// The next block that ends in `read` at or behind offset `at`, which moves behind it.
    ///
    /// `None` when the read is used up; what is left of it is kept for the next.
    pub(crate) fn next<'s>(&'s mut self, read: &'s [u8], at: &mut usize) -> Option<Block<'s>> {
        if !self.has_data {
            reset(&mut self.data);
        }
        let mut in_place: Option<&'s [u8]> = None;
        loop {
            let rest = read.get(*at..).unwrap_or_default();
            if rest.is_empty() {
                self.keep(in_place);
                return None;
            }
            if std::mem::take(&mut self.after_cr) && rest.first() == Some(&b'\n') {
                *at += 1;
                continue;
            }
            // Every other line is blank, and not worth a search.
            let is_blank = rest.first() == Some(&b'\n');
            let length = if is_blank { Some(0) } else { memchr2(b'\n', b'\r', rest) };
            let Some(length) = length else {
                self.gather(rest);
                *at = read.len();
                continue;
            };
            let (line, tail) = rest.split_at_checked(length)?;
            *at += length + 1;
            self.after_cr = tail.first() == Some(&b'\r');
            let is_blank =
                if self.line.is_empty() && !self.line_is_too_long && line.len() <= self.bytes_max {
                    let line = self.without_mark(line);
                    if !line.is_empty() {
                        self.field(line, &mut in_place);
                    }
                    line.is_empty()
                } else {
                    self.gather(line);
                    self.finish_line(in_place.take())
                };
            if is_blank {
                return Some(Block { end: *at, event: self.dispatch(in_place) });
            }
        }
    }

    /// The end of the stream: what an unfinished last block says. The standard drops it; servers
    /// that forget the last blank line are common.
    pub(crate) fn close(&mut self) -> Option<Event<'_>> {
        if !self.line.is_empty() || self.line_is_too_long {
            self.finish_line(None);
        }
        self.dispatch(None)
    }

    fn without_mark<'r>(&mut self, line: &'r [u8]) -> &'r [u8] {
        if std::mem::replace(&mut self.begun, true) {
            return line;
        }
        line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
    }

    /// Adds to the unfinished line.
    fn gather(&mut self, part: &[u8]) {
        if self.line_is_too_long {
            return;
        }
        if self.line.len() + part.len() <= self.bytes_max {
            self.line.extend_from_slice(part);
            return;
        }
        self.too_long = self.too_long.saturating_add(1);
        self.line_is_too_long = true;
        let first = self.line.first().or(part.first());
        self.unreadable |= first != Some(&b':');
        self.line = Vec::new();
    }

    /// Reads the line that was gathered over several reads; tells whether it is blank.
    fn finish_line(&mut self, in_place: Option<&[u8]>) -> bool {
        self.keep(in_place);
        if std::mem::take(&mut self.line_is_too_long) {
            self.begun = true;
            return false;
        }
        let mut gathered = std::mem::take(&mut self.line);
        let line = self.without_mark(&gathered);
        let is_blank = line.is_empty();
        let mut data = None;
        self.field(line, &mut data);
        self.keep(data);
        reset(&mut gathered);
        self.line = gathered;
        is_blank
    }

    fn field<'r>(&mut self, line: &'r [u8], in_place: &mut Option<&'r [u8]>) {
        if let Some(value) = value_of(line, b"data") {
            if self.has_data || in_place.is_some() {
                self.keep(in_place.take());
                self.keep(Some(value));
            } else {
                *in_place = Some(value);
            }
        } else if let Some(value) = value_of(line, b"event") {
            self.is_error = value == b"error";
        }
    }

    /// Copies data that will not be dispatched in place.
    fn keep(&mut self, data: Option<&[u8]>) {
        let Some(data) = data else { return };
        if self.unreadable {
            return;
        }
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        if self.data.len() + data.len() > self.bytes_max {
            self.too_long = self.too_long.saturating_add(1);
            self.unreadable = true;
            self.data = Vec::new();
            return;
        }
        self.data.extend_from_slice(data);
    }

    fn dispatch<'s>(&'s mut self, in_place: Option<&'s [u8]>) -> Option<Event<'s>> {
        let is_error = std::mem::take(&mut self.is_error);
        let has_data = std::mem::take(&mut self.has_data);
        if std::mem::take(&mut self.unreadable) {
            return None;
        }
        let data = if has_data { self.data.as_slice() } else { in_place? };
        (!data.is_empty()).then_some(Event { is_error, data, exception: None })
    }
}

/// Empties a buffer and gives memory of an unusual size back.
fn reset(buffer: &mut Vec<u8>) {
    if buffer.capacity() > KEPT_CAPACITY_BYTES_MAX {
        *buffer = Vec::new();
    } else {
        buffer.clear();
    }
}

/// Value of the line if its field is `name`.
fn value_of<'r>(line: &'r [u8], name: &[u8]) -> Option<&'r [u8]> {
    match line.strip_prefix(name)? {
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        [] => Some(&[]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name and data of every event, however the stream is cut into reads of `step` bytes.
    fn events(stream: &[u8], step: usize) -> (Vec<(bool, String)>, u32) {
        let mut splitter = Splitter::new(SSE_LINE_BYTES_MAX);
        let mut events = Vec::new();
        let mut note = |event: Event<'_>| {
            events.push((event.is_error, String::from_utf8_lossy(event.data).into_owned()));
        };
        for read in stream.chunks(step) {
            let mut at = 0;
            while let Some(block) = splitter.next(read, &mut at) {
                assert_eq!(block.end, at);
                block.event.map(&mut note);
            }
        }
        splitter.close().map(&mut note);
        (events, splitter.too_long)
    }

    fn assert_events(stream: &str, expected: &[&str]) {
        for step in 1..=stream.len() {
            let (events, too_long) = events(stream.as_bytes(), step);
            let data: Vec<&str> = events.iter().map(|(_, data)| data.as_str()).collect();
            assert_eq!(data, expected, "reads of {step} bytes");
            assert_eq!(too_long, 0);
        }
    }

    #[test]
    fn every_line_end_ends_a_line_once() {
        assert_events("data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\r\n\n", &["a", "b", "c", "d"]);
    }

    #[test]
    fn one_blank_behind_the_colon_is_removed() {
        assert_events("data:a\n\ndata: b\n\ndata:  c\n\n", &["a", "b", " c"]);
    }

    #[test]
    fn several_data_lines_are_joined() {
        assert_events("data: a\ndata\ndata: b\n\n", &["a\n\nb"]);
    }

    #[test]
    fn comments_unknown_fields_and_empty_data_dispatch_nothing() {
        assert_events(
            ": hi\n\nid: 1\nretry: 5\nfoo: bar\n\ndata:\n\ndatax: 1\n\n: \ndata: a\n\n",
            &["a"],
        );
    }

    #[test]
    fn a_byte_order_mark_counts_only_at_the_start() {
        assert_events("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["a"]);
        assert_events("\u{feff}\ndata: a\n\n", &["a"]);
    }

    #[test]
    fn the_unfinished_last_event_is_read() {
        assert_events("data: a\n\ndata: b\n", &["a", "b"]);
        assert_events("data: a\n\ndata: b", &["a", "b"]);
    }

    #[test]
    fn the_name_error_holds_for_one_event() {
        let stream = b"event: error\ndata: a\n\ndata: b\n\nevent: error\n\ndata: c\n\n";
        for step in 1..=stream.len() {
            let (events, _) = events(stream, step);
            let errors: Vec<bool> = events.iter().map(|(is_error, _)| *is_error).collect();
            assert_eq!(errors, [true, false, false], "reads of {step} bytes");
        }
    }

    #[test]
    fn what_is_too_long_is_counted_and_not_read() {
        let long = "x".repeat(SSE_LINE_BYTES_MAX);
        let half = "x".repeat(SSE_LINE_BYTES_MAX / 2);
        let most = &long["data: ".len()..];
        let stream = format!(
            "data: {long}\ndata: tail\n\n:{long}\ndata: a\n\ndata: {most}\n\n\
             data: {half}\ndata: {half}\n\ndata: b\n\n"
        );
        for step in [4096, 65_536, 1_000_003, stream.len()] {
            let (events, too_long) = events(stream.as_bytes(), step);
            let data: Vec<&str> = events.iter().map(|(_, data)| data.as_str()).collect();
            assert_eq!(data, ["a", most, "b"], "reads of {step} bytes");
            assert_eq!(too_long, 3, "reads of {step} bytes");
        }
    }
}
