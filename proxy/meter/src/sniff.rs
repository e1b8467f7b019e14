//! What kind of body this is: the content type says, the first bytes decide.

/// How a body is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Kind {
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

impl Kind {
    /// Whether it comes in blocks, each of which says something, or still may.
    pub(crate) const fn is_in_blocks(self) -> bool {
        !matches!(self, Self::Document | Self::Opaque)
    }
}

/// Watches the first bytes.
#[derive(Debug, Default)]
pub(crate) struct Sniffer {
    /// A list is a stream of its elements.
    streams_lists: bool,
    declared: Option<Kind>,
    /// The first bytes that are neither blank nor a byte order mark, as few as decide.
    seen: Vec<u8>,
}

/// The fields that an event stream can begin with; a comment begins with a colon.
const FIELDS: [&[u8]; 4] = [b"data:", b"event:", b"id:", b"retry:"];

impl Sniffer {
    /// Of an answer in which a list is a stream of its elements, or else one document.
    pub(crate) fn new(streams_lists: bool) -> Self {
        Self { streams_lists, ..Self::default() }
    }

    /// Takes the head's word. Returns `Opaque` for what cannot or need not be read.
    pub(crate) fn declare(&mut self, content_type: Option<&str>) -> Kind {
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
        let essence = essence.trim().to_ascii_lowercase();
        self.declared = match essence.as_str() {
            "" => None,
            "text/event-stream" => Some(Kind::Events),
            "application/vnd.amazon.eventstream" => Some(Kind::Frames),
            lines if lines.contains("ndjson") || lines.contains("jsonl") => Some(Kind::Lines),
            json if json.ends_with("/json") || json.ends_with("+json") => Some(Kind::Document),
            _ => Some(Kind::Opaque),
        };
        Kind::Unsure
    }

    /// What the head said.
    pub(crate) const fn declared(&self) -> Option<Kind> {
        self.declared
    }

    /// Whether nothing was announced that could be read, and nothing has come.
    pub(crate) fn expects_nothing(&self) -> bool {
        self.seen.is_empty() && matches!(self.declared, None | Some(Kind::Opaque))
    }

    /// Whether the head and the bytes disagree.
    pub(crate) fn contradicts(&self, kind: Kind) -> bool {
        // A list is JSON.
        let kind = if kind == Kind::Elements { Kind::Document } else { kind };
        matches!(kind, Kind::Events | Kind::Lines | Kind::Frames | Kind::Document)
            && self.declared.is_some_and(|declared| declared != kind)
    }

    /// Looks at the next bytes from the front of the body.
    pub(crate) fn look(&mut self, read: &[u8]) -> Kind {
        for byte in read {
            let is_blank = byte.is_ascii_whitespace() || matches!(byte, 0xef | 0xbb | 0xbf);
            // In frames every byte is of a length, blank or not.
            if self.seen.is_empty() && is_blank && self.declared != Some(Kind::Frames) {
                continue;
            }
            self.seen.push(*byte);
            let kind = self.decide();
            if kind != Kind::Unsure {
                return kind;
            }
        }
        Kind::Unsure
    }

    fn decide(&self) -> Kind {
        let seen = self.seen.as_slice();
        match seen.first() {
            None => Kind::Unsure,
            // What tells lines of JSON from one document stands behind the first of them.
            Some(b'{') if self.declared == Some(Kind::Lines) => Kind::Lines,
            Some(b'[') if self.streams_lists => Kind::Elements,
            Some(b'{' | b'[') => Kind::Document,
            // Nothing tells their first bytes from those of other things.
            Some(_) if self.declared == Some(Kind::Frames) => Kind::Frames,
            Some(b':') => Kind::Events,
            Some(_) if self.declared == Some(Kind::Events) => Kind::Events,
            Some(_) if FIELDS.contains(&seen) => Kind::Events,
            Some(_) if FIELDS.iter().any(|field| field.starts_with(seen)) => Kind::Unsure,
            Some(_) => Kind::Opaque,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(content_type: Option<&str>, body: &str) -> (Kind, bool) {
        let mut sniffer = Sniffer::default();
        let mut kind = sniffer.declare(content_type);
        for byte in body.as_bytes() {
            if kind == Kind::Unsure {
                kind = sniffer.look(&[*byte]);
            }
        }
        (kind, sniffer.contradicts(kind))
    }

    #[test]
    fn the_bytes_decide_and_a_contradiction_is_told() {
        let sse = Some("text/event-stream; charset=utf-8");
        let json = Some("application/json");
        assert_eq!(kind(sse, "data: x"), (Kind::Events, false));
        assert_eq!(kind(sse, "unknown"), (Kind::Events, false));
        assert_eq!(kind(sse, " {\"a\""), (Kind::Document, true));
        assert_eq!(kind(json, "\n{"), (Kind::Document, false));
        assert_eq!(kind(json, "["), (Kind::Document, false));
        assert_eq!(kind(json, "\u{feff}event: x"), (Kind::Events, true));
        assert_eq!(kind(json, ": ping"), (Kind::Events, true));
        assert_eq!(kind(None, "id: 1"), (Kind::Events, false));
        assert_eq!(kind(Some("text/html"), "<html>"), (Kind::Opaque, false));
        assert_eq!(kind(Some("text/plain"), "dinner"), (Kind::Opaque, false));
        assert_eq!(kind(Some("application/x-ndjson"), "{"), (Kind::Lines, false));
        assert_eq!(kind(Some("application/jsonl"), "data: x"), (Kind::Events, true));
        let frames = Some("application/vnd.amazon.eventstream");
        assert_eq!(kind(frames, "\0\0\0\x10"), (Kind::Frames, false));
        assert_eq!(kind(frames, "\n"), (Kind::Frames, false));
        assert_eq!(kind(frames, "{"), (Kind::Document, true));
        assert_eq!(kind(None, "\0\0\0\x10"), (Kind::Opaque, false));
        assert_eq!(kind(json, "  "), (Kind::Unsure, false));
    }

    #[test]
    fn a_list_is_a_stream_where_lists_are() {
        for (streams_lists, kind) in [(true, Kind::Elements), (false, Kind::Document)] {
            let mut sniffer = Sniffer::new(streams_lists);
            sniffer.declare(Some("application/json"));
            assert_eq!((sniffer.look(b"\n["), sniffer.contradicts(kind)), (kind, false));
            let mut sniffer = Sniffer::new(streams_lists);
            sniffer.declare(Some("text/event-stream"));
            assert_eq!((sniffer.look(b"["), sniffer.contradicts(kind)), (kind, true));
        }
    }
}
