//! A short cut: the chunks of one stream differ in little but their text.
//!
//! An event that is, byte for byte, the one before it but for its text (and for members that say
//! nothing, such as a sequence number) says what that one said, with another text. Comparing costs
//! a tenth of reading, and gives the same by construction: whatever differs elsewhere is read in
//! full.

use memchr::memchr2;

use crate::facts::Facts;
use crate::json::Text;

/// Longest event that is remembered, in bytes.
const TEMPLATE_BYTES_MAX: usize = 2 << 10;

/// The last event that was read in full, if it brought one text and nothing else that is new.
#[derive(Debug, Default)]
pub(crate) struct Template {
    data: Vec<u8>,
    /// What may differ, in order; none while nothing is remembered.
    gaps: Vec<Gap>,
}

/// A stretch of the event that may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Gap {
    from: usize,
    to: usize,
    is_text: bool,
}

impl Template {
    /// The text of an event that is like the one remembered.
    pub(crate) fn text_of<'a>(&self, data: &'a [u8]) -> Option<Text<'a>> {
        let mut text = None;
        let mut rest = data;
        let mut at = 0;
        for gap in &self.gaps {
            rest = rest.strip_prefix(self.data.get(at..gap.from)?)?;
            // A backslash ends the gap early, and then nothing fits. A number ends before its
            // comma, and whatever else stands there would have to be quoted.
            let is_quoted = self.data.get(gap.to) == Some(&b'"');
            let length = if is_quoted {
                memchr2(b'"', b'\\', rest)?
            } else {
                rest.iter().position(|byte| !byte.is_ascii_digit())?
            };
            let (value, tail) = rest.split_at_checked(length)?;
            if gap.is_text {
                text = Some(Text::plain(value));
            }
            rest = tail;
            at = gap.to;
        }
        text.filter(|_| self.data.get(at..) == Some(rest))
    }

    /// Remembers the event that says `facts`, or nothing if it is not the kind that is repeated.
    pub(crate) fn learn(&mut self, data: &[u8], facts: &Facts<'_>) {
        self.gaps.clear();
        let Some(text) = facts.only_text() else { return };
        if data.len() > TEMPLATE_BYTES_MAX {
            return;
        }
        let gap = |value: &Text<'_>, is_text| {
            value.place_in(data).map(|(from, to)| Gap { from, to, is_text })
        };
        self.gaps.extend(gap(text, true));
        if self.gaps.is_empty() {
            return;
        }
        self.gaps.extend(facts.fillers.iter().flatten().filter_map(|filler| gap(filler, false)));
        self.gaps.sort_unstable();
        self.data.clear();
        self.data.extend_from_slice(data);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sse::Event;
    use crate::wire::Wire;

    const CHAT: &str = r#"{"id":"c","model":"m","service_tier":"x",
        "choices":[{"index":0,"delta":{"content":" the"},"finish_reason":null}],
        "usage":null,"obfuscation":"ab"}"#;
    const RESPONSES: &str = r#"{"type":"response.output_text.delta","sequence_number":17,
        "delta":" the","logprobs":[],"obfuscation":"ab"}"#;

    fn read(wire: Wire, data: &str) -> Option<Facts<'_>> {
        wire.format().unwrap().event(&Event { is_error: false, data: data.as_bytes() }).ok()
    }

    fn template(wire: Wire, data: &str) -> Template {
        let mut template = Template::default();
        template.learn(data.as_bytes(), &read(wire, data).unwrap());
        template
    }

    #[test]
    fn an_event_that_differs_in_its_text_is_recognised() {
        let chat = template(Wire::ChatCompletions, CHAT);
        let next = CHAT.replace(" the", " fare").replace("\"ab\"", "\"\"");
        assert!(chat.text_of(next.as_bytes()).is_some_and(|text| text.is(" fare")));
        let responses = template(Wire::Responses, RESPONSES);
        let next = RESPONSES.replace(" the", "").replace(":17", ":180");
        assert!(responses.text_of(next.as_bytes()).is_some_and(|text| text.is_empty()));
    }

    #[test]
    fn an_event_that_differs_elsewhere_is_not() {
        let chat = template(Wire::ChatCompletions, CHAT);
        let finish = CHAT.replace("\"finish_reason\":null", "\"finish_reason\":\"stop\"");
        for other in [
            CHAT.replace("\"index\":0", "\"index\":1"),
            CHAT.replace(" the", "\\n"),
            CHAT.replace("\"usage\":null", "\"usage\":{\"prompt_tokens\":1}"),
            format!("{CHAT} "),
            finish.clone(),
        ] {
            assert!(chat.text_of(other.as_bytes()).is_none(), "{other}");
        }
        let finish = template(Wire::ChatCompletions, &finish);
        assert!(finish.text_of(CHAT.as_bytes()).is_none());
        assert!(Template::default().text_of(b"").is_none());
    }

    proptest! {
        /// What is recognised says, read in full, exactly the text that was found, and nothing
        /// else.
        #[test]
        fn the_short_cut_finds_what_reading_finds(
            is_chat: bool,
            at in 0..200_usize,
            length in 0..3_usize,
            change in "[\"\\\\a0,:}]{0,3}|\",\"content\":\"|\",\"usage\":\"|18,\"delta\":\"",
        ) {
            let (wire, known) =
                if is_chat { (Wire::ChatCompletions, CHAT) } else { (Wire::Responses, RESPONSES) };
            let mut data = known.to_owned();
            let from = at.min(data.len());
            data.replace_range(from..(from + length).min(known.len()), &change);
            if let Some(text) = template(wire, known).text_of(data.as_bytes()) {
                let facts = read(wire, &data).unwrap();
                let found = facts.only_text().map(Text::decode).unwrap_or_default();
                prop_assert_eq!(found, text.decode());
                prop_assert_eq!(facts.id, read(wire, known).unwrap().id);
            }
        }
    }
}
