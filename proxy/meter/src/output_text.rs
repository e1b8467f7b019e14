//! Collects the generated text of one answer, each part of it once.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::channel_text::{ChannelText, News};
use crate::generated::{Channel, ChannelKind, Content, Form, Said};
use crate::json::Text;
use crate::tool_calls::ByTool;

/// Generated text that is kept for counting, in bytes. All of it is added up.
const OUTPUT_TEXT_BYTES_MAX: usize = 1 << 20;

/// Channels that are told apart. The text of further ones counts as it comes.
const CHANNELS_MAX: usize = 256;

/// Names, whole calls and pictures that are recognised if they are said again.
const ONCE_MAX: usize = 256;

/// Generated text.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutputText {
    kept: String,
    bytes: u64,
    channels: Vec<(Channel, ChannelText)>,
    /// The channel that was told last.
    current: usize,
    /// Where in `kept` that begins which the current channel has not noted yet: it notes all at
    /// once.
    unnoted: usize,
    once: Vec<SaidOnce>,
    /// Calls that the client is to run.
    tools: ByTool<u64>,
    /// There was content.
    has_begun: bool,
    /// Deltas hold all so far.
    is_so_far: bool,
}

/// Something that counts once.
#[derive(Debug, Clone, PartialEq)]
struct SaidOnce {
    channel: Channel,
    /// What was said there, hashed.
    text: u64,
    /// The id of the call, hashed; 0 is none.
    call: u64,
    /// Its place tells it from another call with the same id.
    is_placed: bool,
}

impl OutputText {
    /// Adds content. Returns whether any of it is new.
    pub(crate) fn add(&mut self, content: &Content<'_>) -> bool {
        let mut is_news = content.begins || content.begins_again && !self.has_begun;
        let is_restated = |said: &&Said<'_>| said.form == Form::Restated;
        // Deltas say first what a whole text beside them says again.
        for said in content.said().filter(|said| !is_restated(said)) {
            is_news |= self.say(said);
        }
        for said in content.said().filter(is_restated) {
            is_news |= self.say(said);
        }
        self.has_begun |= is_news;
        is_news
    }

    /// Adds more of what was told last. Returns whether it is new.
    pub(crate) fn add_more(&mut self, text: &Text<'_>) -> bool {
        let text = text.decode();
        let unnoted = self.kept.len() - self.unnoted;
        match self.channels.get(self.current) {
            Some((_, channel)) if !channel.is_plain(text.len(), unnoted) => {
                self.tell(&text, ChannelText::delta)
            }
            _ => {
                self.append(&text);
                true
            }
        }
    }

    /// Bytes of all generated text.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds text that was too long to be kept: only its length is known.
    pub(crate) const fn add_unkept(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Bytes that are kept for counting.
    pub(crate) const fn kept_bytes(&self) -> usize {
        self.kept.len()
    }

    /// Hands over what is kept, and keeps it no longer.
    pub(crate) fn fold(&mut self, fold: impl FnOnce(&str)) {
        self.note();
        fold(&self.kept);
        self.kept.clear();
        self.unnoted = 0;
    }

    /// Adds what waits to be understood: nothing follows.
    pub(crate) fn complete(&mut self) {
        self.release(ChannelText::end);
    }

    /// What is kept.
    pub(crate) fn into_kept(self) -> String {
        self.kept
    }

    /// The calls that the client is to run.
    pub(crate) fn take_tools(&mut self) -> ByTool<u64> {
        std::mem::take(&mut self.tools)
    }

    fn say(&mut self, Said { channel, form, text }: &Said<'_>) -> bool {
        if let Form::Once { call, is_placed } = form {
            return self.say_once(*channel, text, *call, *is_placed);
        }
        if *form == Form::Restated && self.is_told_elsewhere(*channel) {
            return false;
        }
        let text = text.decode();
        if !self.turn_to(*channel) {
            self.keep(&text);
            self.unnoted = self.kept.len();
            return true;
        }
        match form {
            Form::Restated => self.tell(&text, ChannelText::restated),
            Form::Whole => self.tell(&text, |channel, text| channel.whole(text)),
            Form::Delta | Form::Once { .. } => self.tell(&text, ChannelText::delta),
        }
    }

    /// Adds what the current channel finds to be new of `text`.
    fn tell(&mut self, text: &str, find: impl FnOnce(&mut ChannelText, &str) -> News) -> bool {
        self.note();
        let Some((_, channel)) = self.channels.get_mut(self.current) else { return false };
        let news = find(channel, text);
        if channel.is_so_far() && !std::mem::replace(&mut self.is_so_far, true) {
            self.release(ChannelText::follow);
        }
        match news {
            News::Nothing => return false,
            News::Waits => {}
            News::From(at) => self.append(text.get(at..).unwrap_or_default()),
            News::Behind(waited) => {
                self.append(&waited);
                self.append(text);
            }
        }
        true
    }

    /// Adds what each channel gives of what waits there.
    fn release(&mut self, give: impl Fn(&mut ChannelText) -> Option<String>) {
        let current = self.current;
        self.note();
        for at in 0..self.channels.len() {
            let waited = self.channels.get_mut(at).and_then(|(_, channel)| give(channel));
            self.current = at;
            self.append(&waited.unwrap_or_default());
            self.note();
        }
        self.current = current;
    }

    fn say_once(&mut self, channel: Channel, text: &Text<'_>, call: u64, is_placed: bool) -> bool {
        let text = text.decode();
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let said = SaidOnce { channel, text: hasher.finish(), call, is_placed };
        if self.once.iter().any(|earlier| earlier.is_same(&said)) {
            return false;
        }
        if self.once.len() < ONCE_MAX {
            self.once.push(said);
        }
        if channel.kind == ChannelKind::Name && !text.is_empty() {
            *self.tools.get_mut(&text) += 1;
        }
        self.note();
        self.keep(&text);
        self.unnoted = self.kept.len();
        true
    }

    /// Whether deltas have told such a text under another number: engines number items otherwise at
    /// the end.
    fn is_told_elsewhere(&self, channel: Channel) -> bool {
        let is_like = |other: Channel| other.choice == channel.choice && other.kind == channel.kind;
        let is_known = self.channels.iter().any(|(other, _)| *other == channel);
        let mut like = self.channels.iter().filter(|(other, _)| is_like(*other));
        !is_known && like.any(|(_, told)| told.is_told_by_deltas())
    }

    /// Makes `channel` the current one; `false` if there are too many.
    fn turn_to(&mut self, channel: Channel) -> bool {
        if self.channels.get(self.current).is_some_and(|(current, _)| *current == channel) {
            return true;
        }
        self.note();
        let found = self.channels.iter().position(|(other, _)| *other == channel);
        let has_room = self.channels.len() < CHANNELS_MAX;
        self.current = found.unwrap_or(self.channels.len());
        if found.is_none() && has_room {
            self.channels.push((channel, ChannelText::new(self.is_so_far)));
        }
        found.is_some() || has_room
    }

    /// Adds text of the current channel.
    #[inline]
    fn append(&mut self, text: &str) {
        if self.kept.len() + text.len() <= OUTPUT_TEXT_BYTES_MAX {
            self.bytes += text.len() as u64;
            self.kept.push_str(text);
        } else {
            self.append_to_full(text);
        }
    }

    /// Adds text of which not all is kept.
    #[cold]
    fn append_to_full(&mut self, text: &str) {
        self.note();
        self.keep(text);
        self.unnoted = self.kept.len();
        if let Some((_, channel)) = self.channels.get_mut(self.current) {
            channel.note(text);
        }
    }

    fn keep(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        let room = OUTPUT_TEXT_BYTES_MAX.saturating_sub(self.kept.len());
        self.kept.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
    }

    /// Lets the current channel note what it has been told.
    fn note(&mut self) {
        let text = self.kept.get(self.unnoted..).unwrap_or_default();
        if let Some((_, channel)) = self.channels.get_mut(self.current) {
            channel.note(text);
        }
        self.unnoted = self.kept.len();
    }
}

impl SaidOnce {
    /// Whether both are the same call, by their ids if both have one. Some engines give every call
    /// the same id; what is said again may be numbered otherwise.
    fn is_same(&self, other: &Self) -> bool {
        let [one, two] = [self.channel, other.channel];
        let is_there = if self.call != 0 && other.call != 0 {
            let are_placed = self.is_placed && other.is_placed;
            self.call == other.call && (!are_placed || one.slot == two.slot)
        } else {
            one == two
        };
        let [one, two] = [one, two].map(|it| (it.choice, it.kind));
        is_there && self.text == other.text && one == two
    }
}
