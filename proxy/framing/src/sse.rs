//! Reads server-sent events by the WHATWG rules. A read may begin and end anywhere.
//!
//! The reader hands out an event without a copy where one read holds all of it. It copies only an
//! event that crosses reads, and condenses a long one.

use memchr::memchr2;
use taximeter_json::Condensed;

use crate::partial::{Data, PLAIN_BYTES_MAX, Partial};

/// The beginning of a line that tells its field, in bytes: a byte order mark, a name, a blank, and
/// more than the longest event name that says something.
const LINE_START_BYTES: usize = 32;

pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Cuts a stream into blocks: lines up to and including a blank one.
#[derive(Debug)]
pub(crate) struct Splitter {
    /// The beginning of the unfinished line, as far as it came with earlier reads.
    line: Vec<u8>,
    rest: LineRest,
    /// A line has ended: a byte order mark is text from now on.
    begun: bool,
    /// The last line ended with CR: an LF that follows belongs to it.
    after_cr: bool,
    /// Data of the unfinished block, lines joined by LF, as far as it is not in place.
    data: Partial,
    has_data: bool,
    is_error: bool,
}

/// What the rest of the unfinished line is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LineRest {
    /// The beginning does not tell yet.
    #[default]
    Unknown,
    Data,
    /// A comment, or a field that says nothing.
    Nothing,
}

/// One block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block<'a> {
    /// Offset in the read just behind the byte that ended it.
    pub end: usize,
    /// What it says; comments and empty blocks say nothing.
    pub event: Option<Event<'a>>,
}

/// What a block dispatches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its name is `error`. All other names are repeated in the data by every wire format.
    pub is_error: bool,
    /// The kind of error that it is, where its frame tells that and not its data.
    pub exception: Option<&'a [u8]>,
    /// What it says: for every wire format that is read, a JSON document or a mark.
    pub data: &'a [u8],
    /// The data with what it lacks, where it was condensed.
    pub condensed: Option<&'a Condensed>,
}

impl<'a> Event<'a> {
    /// An event that is no error by its name.
    #[must_use]
    pub const fn of(data: Data<'a>) -> Self {
        let Data { bytes, condensed } = data;
        Self { is_error: false, exception: None, data: bytes, condensed }
    }
}

impl Splitter {
    /// A splitter that has read nothing yet.
    pub(crate) const fn new() -> Self {
        Self {
            line: Vec::new(),
            rest: LineRest::Unknown,
            begun: false,
            after_cr: false,
            data: Partial::new(),
            has_data: false,
            is_error: false,
        }
    }

    /// The next block that ends in `read` at or behind offset `at`, which moves behind it.
    ///
    /// `None` when the read is used up; what is left of it is kept for the next.
    pub(crate) fn next<'s>(&'s mut self, read: &'s [u8], at: &mut usize) -> Option<Block<'s>> {
        self.data.renew();
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
                self.keep(in_place.take());
                self.gather(rest);
                *at = read.len();
                continue;
            };
            let (line, tail) = rest.split_at_checked(length)?;
            *at += length + 1;
            self.after_cr = tail.first() == Some(&b'\r');
            let is_blank = if self.line.is_empty() && self.rest == LineRest::Unknown {
                let line = self.without_mark(line);
                if !line.is_empty() {
                    self.field(line, &mut in_place);
                }
                line.is_empty()
            } else {
                self.gather(line);
                self.finish_line()
            };
            if is_blank {
                return Some(Block { end: *at, event: self.dispatch(in_place) });
            }
        }
    }

    /// The end of the stream: what an unfinished last block says. The standard drops it; servers
    /// that forget the last blank line are common.
    pub(crate) fn close(&mut self) -> Option<Event<'_>> {
        if !self.line.is_empty() || self.rest != LineRest::Unknown {
            self.finish_line();
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
        let missing = match self.rest {
            LineRest::Unknown => LINE_START_BYTES - self.line.len(),
            LineRest::Data => return self.data.keep(part),
            LineRest::Nothing => return,
        };
        let (start, rest) = part.split_at_checked(missing).unwrap_or((part, &[]));
        self.line.extend_from_slice(start);
        if start.len() == missing {
            self.rest = self.judge();
            self.gather(rest);
        }
    }

    /// What the rest of a line is that is longer than its beginning.
    fn judge(&mut self) -> LineRest {
        let start = std::mem::take(&mut self.line);
        let start = self.without_mark(&start);
        if let Some(value) = value_of(start, b"data") {
            self.keep(Some(value));
            return LineRest::Data;
        }
        if value_of(start, b"event").is_some() {
            self.is_error = false;
        }
        LineRest::Nothing
    }

    /// Reads the line that was gathered over several reads; tells whether it is blank.
    fn finish_line(&mut self) -> bool {
        if std::mem::take(&mut self.rest) != LineRest::Unknown {
            return false;
        }
        let mut gathered = std::mem::take(&mut self.line);
        let line = self.without_mark(&gathered);
        let is_blank = line.is_empty();
        let mut data = None;
        self.field(line, &mut data);
        self.keep(data);
        gathered.clear();
        self.line = gathered;
        is_blank
    }

    #[inline]
    fn field<'r>(&mut self, line: &'r [u8], in_place: &mut Option<&'r [u8]>) {
        if let Some(value) = value_of(line, b"data") {
            if self.has_data || in_place.is_some() || value.len() > PLAIN_BYTES_MAX {
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
        if std::mem::replace(&mut self.has_data, true) {
            self.data.keep(b"\n");
        }
        self.data.keep(data);
    }

    fn dispatch<'s>(&'s mut self, in_place: Option<&'s [u8]>) -> Option<Event<'s>> {
        let is_error = std::mem::take(&mut self.is_error);
        let has_data = std::mem::take(&mut self.has_data);
        let data = if has_data { self.data.close()? } else { Data::plain(in_place?) };
        (!data.bytes.is_empty()).then_some(Event { is_error, ..Event::of(data) })
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
    fn events(stream: &[u8], step: usize) -> Vec<(bool, String)> {
        let mut splitter = Splitter::new();
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
        events
    }

    fn assert_events(stream: &str, expected: &[&str]) {
        for step in 1..=stream.len() {
            let events = events(stream.as_bytes(), step);
            let data: Vec<&str> = events.iter().map(|(_, data)| data.as_str()).collect();
            assert_eq!(data, expected, "reads of {step} bytes");
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
            let events = events(stream, step);
            let errors: Vec<bool> = events.iter().map(|(is_error, _)| *is_error).collect();
            assert_eq!(errors, [true, false, false], "reads of {step} bytes");
        }
    }

    #[test]
    fn a_long_line_is_what_its_beginning_says() {
        let long = "x".repeat(1_000);
        let stream = format!(
            "\u{feff}data: {long}\ndata: {long}\n:{long}\nevent: error\nevent: error{long}\n\n\
             event: error\nid: {long}\ndata: a\r\ndata:{long}\r\n\r\ndatax{long}\n\ndata: b\n\n"
        );
        let [first, second] = [format!("{long}\n{long}"), format!("a\n{long}")];
        for step in (1..80).chain([1_003, stream.len()]) {
            let events = events(stream.as_bytes(), step);
            let events: Vec<_> = events.iter().map(|(error, data)| (*error, &**data)).collect();
            let expected = [(false, &*first), (true, &*second), (false, "b")];
            assert_eq!(events, expected, "reads of {step} bytes");
        }
    }

    #[test]
    fn a_long_event_is_condensed() {
        let picture = "x".repeat(3 << 20);
        let words = "To the station. ".repeat(PLAIN_BYTES_MAX / 16 - 1);
        let [most, more] = [0, 1].map(|more| format!("\"{words}{}\"", "x".repeat(14 + more)));
        let stream = format!(
            "data: {{\"a\":\ndata: \"{picture}\"\ndata: ,\"b\": 7}}\r\n\r\n\
             :{picture}\ndata: {most}\n\ndata: {more}\n\n"
        );
        let expected = format!("{{\"a\":\n\"{}\"\n,\"b\": 7}}", &picture[..4 << 10]);
        let expected = [&*expected, &most, &more];
        assert_eq!(most.len(), PLAIN_BYTES_MAX);
        for step in [4_096, 65_536, 1_000_003, stream.len()] {
            let events = events(stream.as_bytes(), step);
            let data: Vec<&str> = events.iter().map(|(_, data)| data.as_str()).collect();
            assert!(data == expected, "reads of {step} bytes");
        }
    }
}
