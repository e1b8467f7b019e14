//! Decides how a body is framed, by its content type and its first bytes.

/// How a body is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BodyKind {
    /// Too few bytes yet.
    #[default]
    Unsure,
    /// Server-sent events.
    Events,
    /// JSON documents, one a line.
    Lines,
    /// Messages of AWS's event streams.
    Frames,
    /// Elements of one JSON list.
    Elements,
    /// One JSON document.
    Document,
    /// Passes unread.
    Opaque,
}

impl BodyKind {
    /// Whether it comes in blocks, each of which says something, or still may.
    #[must_use]
    pub const fn is_in_blocks(self) -> bool {
        !matches!(self, Self::Document | Self::Opaque)
    }
}

/// Watches the first bytes.
#[derive(Debug, Default)]
pub struct Sniffer {
    /// A list is a stream of its elements.
    streams_lists: bool,
    declared: Option<BodyKind>,
    /// The head announced a web page.
    is_page: bool,
    /// The first bytes that are neither blank nor a byte order mark, as few as decide.
    seen: Vec<u8>,
}

/// The fields that an event stream can begin with; a comment begins with a colon.
const FIELDS: [&[u8]; 4] = [b"data:", b"event:", b"id:", b"retry:"];

impl Sniffer {
    /// Of an answer in which a list is a stream of its elements, or else one document.
    #[must_use]
    pub fn new(streams_lists: bool) -> Self {
        Self { streams_lists, ..Self::default() }
    }

    /// Takes the head's word. Returns `Opaque` for what cannot or need not be read.
    pub fn declare(&mut self, content_type: Option<&str>) -> BodyKind {
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
        let essence = essence.trim().to_ascii_lowercase();
        self.is_page = matches!(essence.as_str(), "text/html" | "application/xhtml+xml");
        self.declared = match essence.as_str() {
            "" => None,
            "text/event-stream" => Some(BodyKind::Events),
            "application/vnd.amazon.eventstream" => Some(BodyKind::Frames),
            lines if lines.contains("ndjson") || lines.contains("jsonl") => Some(BodyKind::Lines),
            json if json.ends_with("/json") || json.ends_with("+json") => Some(BodyKind::Document),
            _ => Some(BodyKind::Opaque),
        };
        BodyKind::Unsure
    }

    /// What the head said.
    #[must_use]
    pub const fn declared(&self) -> Option<BodyKind> {
        self.declared
    }

    /// Whether the head announced a web page, which no engine generates: something in front of the
    /// engine has answered.
    #[must_use]
    pub const fn is_page(&self) -> bool {
        self.is_page
    }

    /// Whether nothing was announced that could be read, and nothing has come.
    #[must_use]
    pub fn expects_nothing(&self) -> bool {
        self.seen.is_empty() && matches!(self.declared, None | Some(BodyKind::Opaque))
    }

    /// Whether the head and the bytes disagree.
    #[must_use]
    pub fn contradicts(&self, kind: BodyKind) -> bool {
        // A list is JSON.
        let kind = if kind == BodyKind::Elements { BodyKind::Document } else { kind };
        matches!(kind, BodyKind::Events | BodyKind::Lines | BodyKind::Frames | BodyKind::Document)
            && self.declared.is_some_and(|declared| declared != kind)
    }

    /// Looks at the next bytes from the front of the body.
    pub fn look(&mut self, read: &[u8]) -> BodyKind {
        for byte in read {
            let is_blank = byte.is_ascii_whitespace() || matches!(byte, 0xef | 0xbb | 0xbf);
            // In frames every byte is of a length, blank or not.
            if self.seen.is_empty() && is_blank && self.declared != Some(BodyKind::Frames) {
                continue;
            }
            self.seen.push(*byte);
            let kind = self.decide();
            if kind != BodyKind::Unsure {
                return kind;
            }
        }
        BodyKind::Unsure
    }

    fn decide(&self) -> BodyKind {
        let seen = self.seen.as_slice();
        match seen.first() {
            None => BodyKind::Unsure,
            // What tells lines of JSON from one document stands behind the first of them.
            Some(b'{') if self.declared == Some(BodyKind::Lines) => BodyKind::Lines,
            Some(b'[') if self.streams_lists => BodyKind::Elements,
            Some(b'{' | b'[') => BodyKind::Document,
            // Nothing tells their first bytes from those of other things.
            Some(_) if self.declared == Some(BodyKind::Frames) => BodyKind::Frames,
            Some(b':') => BodyKind::Events,
            Some(_) if self.declared == Some(BodyKind::Events) => BodyKind::Events,
            Some(_) if FIELDS.contains(&seen) => BodyKind::Events,
            Some(_) if FIELDS.iter().any(|field| field.starts_with(seen)) => BodyKind::Unsure,
            Some(_) => BodyKind::Opaque,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(content_type: Option<&str>, body: &str) -> (BodyKind, bool) {
        let mut sniffer = Sniffer::default();
        let mut kind = sniffer.declare(content_type);
        for byte in body.as_bytes() {
            if kind == BodyKind::Unsure {
                kind = sniffer.look(&[*byte]);
            }
        }
        (kind, sniffer.contradicts(kind))
    }

    #[test]
    fn the_bytes_decide_and_a_contradiction_is_told() {
        let sse = Some("text/event-stream; charset=utf-8");
        let json = Some("application/json");
        assert_eq!(kind(sse, "data: x"), (BodyKind::Events, false));
        assert_eq!(kind(sse, "unknown"), (BodyKind::Events, false));
        assert_eq!(kind(sse, " {\"a\""), (BodyKind::Document, true));
        assert_eq!(kind(json, "\n{"), (BodyKind::Document, false));
        assert_eq!(kind(json, "["), (BodyKind::Document, false));
        assert_eq!(kind(json, "\u{feff}event: x"), (BodyKind::Events, true));
        assert_eq!(kind(json, ": ping"), (BodyKind::Events, true));
        assert_eq!(kind(None, "id: 1"), (BodyKind::Events, false));
        assert_eq!(kind(Some("text/html"), "<html>"), (BodyKind::Opaque, false));
        assert_eq!(kind(Some("text/plain"), "dinner"), (BodyKind::Opaque, false));
        assert_eq!(kind(Some("application/x-ndjson"), "{"), (BodyKind::Lines, false));
        assert_eq!(kind(Some("application/jsonl"), "data: x"), (BodyKind::Events, true));
        let frames = Some("application/vnd.amazon.eventstream");
        assert_eq!(kind(frames, "\0\0\0\x10"), (BodyKind::Frames, false));
        assert_eq!(kind(frames, "\n"), (BodyKind::Frames, false));
        assert_eq!(kind(frames, "{"), (BodyKind::Document, true));
        assert_eq!(kind(None, "\0\0\0\x10"), (BodyKind::Opaque, false));
        assert_eq!(kind(json, "  "), (BodyKind::Unsure, false));
    }

    #[test]
    fn a_list_is_a_stream_where_lists_are() {
        for (streams_lists, kind) in [(true, BodyKind::Elements), (false, BodyKind::Document)] {
            let mut sniffer = Sniffer::new(streams_lists);
            sniffer.declare(Some("application/json"));
            assert_eq!((sniffer.look(b"\n["), sniffer.contradicts(kind)), (kind, false));
            let mut sniffer = Sniffer::new(streams_lists);
            sniffer.declare(Some("text/event-stream"));
            assert_eq!((sniffer.look(b"["), sniffer.contradicts(kind)), (kind, true));
        }
    }
}
