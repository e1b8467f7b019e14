//! The W3C trace context of a request.

/// The trace that a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// Never all zero.
    pub(crate) trace_id: [u8; 16],
    /// The caller's span. It is never all zero.
    pub parent: [u8; 8],
    /// Whether the caller keeps it, so that an id leads somewhere.
    pub(crate) sampled: bool,
}

impl TraceContext {
    /// Parses `traceparent`; `None` if it does not follow the specification, because it must be
    /// ignored then.
    ///
    /// Source: W3C Trace Context, §3.2; later versions may have more behind the flags.
    pub fn parse(traceparent: &str) -> Option<Self> {
        let mut fields = traceparent.split('-');
        let version = hex::<1>(fields.next()?)?;
        let trace_id = hex::<16>(fields.next()?)?;
        let parent = hex::<8>(fields.next()?)?;
        let [flags] = hex::<1>(fields.next()?)?;
        let known = version != [0] || fields.next().is_none();
        let valid = known && version != [0xff] && trace_id != [0; 16] && parent != [0; 8];
        valid.then_some(Self { trace_id, parent, sampled: flags & 1 == 1 })
    }
}

/// Bytes written in lower-case hexadecimal, as many as asked for.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    #[test]
    fn it_is_read_as_the_specification_writes_it() {
        let parse = |rest: &str| TraceContext::parse(&format!("00-{TRACE}-{rest}"));
        let context = parse("b7ad6b7169203331-01").unwrap();
        assert_eq!((context.trace_id[0], context.trace_id[15], context.sampled), (10, 0x9c, true));
        assert!(!parse("b7ad6b7169203331-00").unwrap().sampled);
        assert_eq!(parse("b7ad6b7169203331-01-more"), None);
        let later = format!("cc-{TRACE}-b7ad6b7169203331-01-more");
        assert!(TraceContext::parse(&later).is_some());
    }

    #[test]
    fn what_does_not_follow_it_says_nothing() {
        for wrong in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333ä-01",
        ] {
            assert_eq!(TraceContext::parse(wrong), None, "{wrong}");
        }
    }
}
