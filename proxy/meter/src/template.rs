//! A short cut for the chunks of one stream, which differ in little but their text.
//!
//! The template remembers one event and where its text, running totals, token ids and padding
//! stand. An event that is equal everywhere else says the same with another text. Comparing costs a
//! tenth of reading. The meter reads any other event in full, so the result is the same.

use memchr::{memchr, memchr2};

use crate::cut::Cut;
use crate::facts::{Facts, count_ids};
use crate::json::Text;

/// Longest event that is remembered, in bytes.
const TEMPLATE_BYTES_MAX: usize = 2 << 10;

/// Most digits of a running total: all of these are whole numbers in range.
const DIGITS_MAX: usize = 15;

/// The last event that was read in full, if it brought one text and nothing else that is new.
#[derive(Debug, Clone, Default)]
pub(crate) struct Template {
    data: Vec<u8>,
    /// What may differ, in order; none while nothing is remembered.
    gaps: Vec<Gap>,
    /// The choice that it was about.
    choice: u64,
}

/// A stretch of the event that may differ, or a place in it that has a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Gap {
    from: usize,
    to: usize,
    kind: GapKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum GapKind {
    /// A place: what is taken out ends.
    CutEnds,
    /// A place: the usage object begins.
    UsageBegins,
    /// A place: the usage object ends.
    UsageEnds,
    /// A place: what is taken out begins, and what comes instead.
    CutBegins(&'static [u8]),
    Text,
    /// A string or a number that says nothing.
    Filler,
    /// A number in the usage object, as it was last: a smaller one is news.
    Total(u64),
    /// Token ids.
    Ids,
}

/// What an event says that is like the one remembered.
#[derive(Debug, Default)]
pub(crate) struct TemplateMatch<'a> {
    pub(crate) text: Text<'a>,
    /// The usage object, unread.
    pub(crate) usage: Option<&'a [u8]>,
    /// The choice whose usage it is.
    pub(crate) choice: u64,
    /// Token ids of the output.
    pub(crate) ids: u64,
}

impl Template {
    /// What an event says that is like the one remembered; what to take out of it is added to
    /// `cuts`.
    pub(crate) fn match_with<'a>(
        &mut self,
        data: &'a [u8],
        cuts: &mut Vec<Cut>,
    ) -> Option<TemplateMatch<'a>> {
        let mut found = TemplateMatch { choice: self.choice, ..TemplateMatch::default() };
        let mut usage_from = 0;
        let mut rest = data;
        let mut at = 0;
        if self.gaps.is_empty() {
            return None;
        }
        for gap in &mut self.gaps {
            // What lies between is the same, or will turn out not to be.
            let place = data.len() - rest.len() + (gap.from - at);
            match gap.kind {
                GapKind::CutBegins(instead) => cuts.push(Cut { from: place, to: place, instead }),
                GapKind::CutEnds => cuts.last_mut()?.to = place,
                GapKind::UsageBegins => usage_from = place,
                GapKind::UsageEnds => found.usage = data.get(usage_from..place),
                _ => {
                    rest = rest.strip_prefix(self.data.get(at..gap.from)?)?;
                    at = gap.to;
                    let is_quoted = self.data.get(at) == Some(&b'"');
                    rest = rest.get(gap.kind.fill(is_quoted, rest, &mut found)?..)?;
                }
            }
        }
        (self.data.get(at..) == Some(rest)).then_some(found)
    }

    /// Remembers the event that says `facts`, or nothing if it is not the kind that is repeated.
    /// `cuts` is what was taken out of it.
    pub(crate) fn learn(&mut self, data: &[u8], facts: &Facts<'_>, cuts: &[Cut]) {
        self.gaps.clear();
        let Some(text) = facts.only_text() else { return };
        if data.len() > TEMPLATE_BYTES_MAX || self.place_gaps(data, text, facts, cuts).is_none() {
            self.gaps.clear();
            return;
        }
        self.gaps.sort_unstable();
        self.choice = facts.running_choice.unwrap_or(0);
        self.data.clear();
        self.data.extend_from_slice(data);
    }

    /// `None` where something cannot be told apart.
    fn place_gaps(
        &mut self,
        data: &[u8],
        text: &Text<'_>,
        facts: &Facts<'_>,
        cuts: &[Cut],
    ) -> Option<()> {
        let mut gap = |kind, (from, to)| self.gaps.push(Gap { from, to, kind });
        gap(GapKind::Text, text.place_in(data)?);
        for filler in facts.fillers.iter().flatten() {
            gap(GapKind::Filler, filler.place_in(data)?);
        }
        for ids in &facts.token_ids {
            gap(GapKind::Ids, ids.place_in(data)?);
        }
        if let Some(usage) = &facts.usage_text {
            let (from, to) = usage.place_in(data)?;
            gap(GapKind::UsageBegins, (from, from));
            gap(GapKind::UsageEnds, (to, to));
            for (total, from, to) in totals(data, from, to)? {
                gap(GapKind::Total(total), (from, to));
            }
        }
        for cut in cuts {
            gap(GapKind::CutBegins(cut.instead), (cut.from, cut.from));
            gap(GapKind::CutEnds, (cut.to, cut.to));
        }
        Some(())
    }
}

impl GapKind {
    /// Length of what stands in the gap at the front of `rest`; `None` if that says something new.
    fn fill<'a>(
        &mut self,
        is_quoted: bool,
        rest: &'a [u8],
        found: &mut TemplateMatch<'a>,
    ) -> Option<usize> {
        match self {
            // A backslash ends the gap early, and then nothing fits. A number ends before its
            // comma, and whatever else stands there would have to be quoted.
            Self::Text => {
                let length = memchr2(b'"', b'\\', rest)?;
                found.text = Text::plain(rest.get(..length)?);
                Some(length)
            }
            Self::Filler if is_quoted => memchr2(b'"', b'\\', rest),
            Self::Filler => digits(rest).map(|(_, length)| length),
            Self::Total(last) => {
                let (total, length) = digits(rest)?;
                if total < *last {
                    return None;
                }
                *last = total;
                Some(length)
            }
            Self::Ids => {
                let length = memchr(b']', rest)? + 1;
                found.ids += count_ids(rest.get(..length)?)?;
                Some(length)
            }
            Self::CutBegins(_) | Self::CutEnds | Self::UsageBegins | Self::UsageEnds => Some(0),
        }
    }
}

/// The whole number at the front and how many digits it has; `None` if there is none in range.
fn digits(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number: u64 = 0;
    let mut length = 0;
    for digit in bytes.iter().take_while(|byte| byte.is_ascii_digit()) {
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        length += 1;
    }
    (1..=DIGITS_MAX).contains(&length).then_some((number, length))
}

/// The numbers in an object of numbers, with their places; `None` if it holds anything that could
/// be taken for one.
fn totals(data: &[u8], from: usize, to: usize) -> Option<Vec<(u64, usize, usize)>> {
    let mut totals = Vec::new();
    let mut at = from;
    let mut is_quoted = false;
    while at < to {
        match data.get(at)? {
            b'"' => is_quoted = !is_quoted,
            b'\\' => return None,
            b'0'..=b'9' if !is_quoted => {
                let (total, length) = digits(data.get(at..to)?)?;
                let is_plain = |byte: Option<&u8>| {
                    byte.is_none_or(|byte| matches!(byte, b':' | b',' | b'}' | b' '))
                };
                if !is_plain(data.get(at - 1)) || !is_plain(data.get(at + length)) {
                    return None;
                }
                totals.push((total, at, at + length));
                at += length;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    Some(totals)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::asking::Hidden;
    use crate::json::Reader;
    use crate::usage::Report;
    use crate::wire::Wire;
    use taximeter_framing::Data;
    use taximeter_framing::Event;

    const CHAT: &str = r#"{"id":"c","model":"m","service_tier":"x",
        "choices":[{"index":0,"delta":{"content":" the"},"finish_reason":null}],
        "usage":null,"obfuscation":"ab"}"#;
    const RESPONSES: &str = r#"{"type":"response.output_text.delta","sequence_number":17,
        "delta":" the","logprobs":[],"obfuscation":"ab"}"#;

    const RUNNING: &str = r#"{"id":"c","choices":[{"index":1,"delta":{"content":" the"},
        "token_ids":[5]}],"usage":{"prompt_tokens":14,"completion_tokens":2,"x":null}}"#;
    const HIDDEN: Hidden = Hidden { usage_event: true, running_usage: true, token_ids: true };

    fn read(wire: Wire, data: &str) -> Option<Facts<'_>> {
        wire.format().unwrap().event(&Event::of(Data::plain(data.as_bytes()))).ok()
    }

    /// What of `data` is like the one remembered.
    fn text_of<'a>(template: &mut Template, data: &'a str) -> Option<Text<'a>> {
        template.match_with(data.as_bytes(), &mut Vec::new()).map(|like| like.text)
    }

    fn template(wire: Wire, data: &str) -> Template {
        let mut template = Template::default();
        let facts = read(wire, data).unwrap();
        let mut cuts = Vec::new();
        facts.cut(data.as_bytes(), HIDDEN, true, &mut cuts);
        template.learn(data.as_bytes(), &facts, &cuts);
        template
    }

    #[test]
    fn an_event_that_differs_in_its_text_is_recognised() {
        let mut chat = template(Wire::ChatCompletions, CHAT);
        let next = CHAT.replace(" the", " fare").replace("\"ab\"", "\"\"");
        assert!(text_of(&mut chat, &next).is_some_and(|text| text.is(" fare")));
        let mut responses = template(Wire::Responses, RESPONSES);
        let next = RESPONSES.replace(" the", "").replace(":17", ":180");
        assert!(text_of(&mut responses, &next).is_some_and(|text| text.is_empty()));
    }

    #[test]
    fn an_event_that_differs_elsewhere_is_not() {
        let mut chat = template(Wire::ChatCompletions, CHAT);
        let finish = CHAT.replace("\"finish_reason\":null", "\"finish_reason\":\"stop\"");
        for other in [
            CHAT.replace("\"index\":0", "\"index\":1"),
            CHAT.replace(" the", "\\n"),
            CHAT.replace("\"usage\":null", "\"usage\":{\"prompt_tokens\":1}"),
            format!("{CHAT} "),
            finish.clone(),
        ] {
            assert!(text_of(&mut chat, &other).is_none(), "{other}");
        }
        let mut finish = template(Wire::ChatCompletions, &finish);
        assert!(text_of(&mut finish, CHAT).is_none());
        assert!(text_of(&mut Template::default(), "").is_none());
    }

    #[test]
    fn totals_may_grow_and_ids_may_differ() {
        let mut template = template(Wire::ChatCompletions, RUNNING);
        let mut next = |from: &str, to: &str| {
            let event = RUNNING.replace(" the", "x").replace(from, to);
            let mut cuts = Vec::new();
            let like = template.match_with(event.as_bytes(), &mut cuts)?;
            let usage = like.usage.map(|usage| String::from_utf8(usage.to_vec()).unwrap());
            let cut: Vec<String> =
                cuts.iter().map(|cut| event[cut.from..cut.to].to_owned()).collect();
            Some((usage.unwrap(), like.ids, cut))
        };
        let usage = r#"{"prompt_tokens":14,"completion_tokens":100,"x":null}"#;
        let found = next(":2,", ":100,").unwrap();
        assert_eq!(
            found,
            (usage.to_owned(), 1, vec!["[5]".to_owned(), format!(",\"usage\":{usage}")])
        );
        assert_eq!(next(":2,", ":101,").map(|(_, ids, _)| ids), Some(1));
        assert_eq!(next(":2,", ":101,\"y\":1,"), None, "a new member");
        assert_eq!(next("x", "x"), None, "a total fell");
        let ids = RUNNING.replace("[5]", "[5, 66]");
        let mut template = self::template(Wire::ChatCompletions, RUNNING);
        let like = template.match_with(ids.as_bytes(), &mut Vec::new());
        assert_eq!(like.map(|like| like.ids), Some(2));
    }

    #[test]
    fn what_is_no_plain_total_is_read() {
        for usage in ["1.5", "-1", "1e3", "\"2\"", "9007199254740993", "[2]", "01x"] {
            let event = RUNNING.replace(":2,", &format!(":{usage},"));
            assert!(text_of(&mut template(Wire::ChatCompletions, RUNNING), &event).is_none());
            if read(Wire::ChatCompletions, &event).is_some() {
                let mut template = template(Wire::ChatCompletions, &event);
                assert!(text_of(&mut template, RUNNING).is_none(), "{usage}");
            }
        }
    }

    proptest! {
        /// What is recognised says, read in full, exactly what was found, and nothing else.
        #[test]
        fn the_short_cut_finds_what_reading_finds(
            shape in 0..3_usize,
            at in 0..200_usize,
            length in 0..3_usize,
            change in "[\"\\\\a0,:}]{0,3}|\",\"content\":\"|\",\"usage\":\"|18,\"delta\":\"|[0-9,]{1,4}",
        ) {
            let (wire, known) = [
                (Wire::ChatCompletions, CHAT),
                (Wire::Responses, RESPONSES),
                (Wire::ChatCompletions, RUNNING),
            ][shape];
            let mut data = known.to_owned();
            let from = at.min(data.len());
            data.replace_range(from..(from + length).min(known.len()), &change);
            let mut cuts = Vec::new();
            if let Some(like) = template(wire, known).match_with(data.as_bytes(), &mut cuts) {
                let facts = read(wire, &data).unwrap();
                let found = facts.only_text().map(Text::decode).unwrap_or_default();
                prop_assert_eq!(found, like.text.decode());
                prop_assert_eq!(&facts.id, &read(wire, known).unwrap().id);
                let usage = like.usage.map(|usage| Report::read(&mut Reader::new(usage)).unwrap());
                prop_assert_eq!(usage.flatten(), facts.usage.clone());
                prop_assert_eq!(facts.running_choice.unwrap_or(0), like.choice);
                let ids = facts.token_ids.iter().filter_map(|ids| count_ids(ids.raw()));
                prop_assert_eq!(ids.sum::<u64>(), like.ids);
                let mut all = Vec::new();
                facts.cut(data.as_bytes(), HIDDEN, true, &mut all);
                prop_assert_eq!(all, cuts);
            }
        }
    }
}
