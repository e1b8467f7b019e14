//! What one event, or one whole answer, says was generated.

use std::hash::{DefaultHasher, Hasher as _};

use crate::calls::Calls;
use crate::json::Text;
use crate::measurement::Kinds;

/// Bytes at either end of a picture by which it is recognised.
const PICTURE_ENDS_BYTES: usize = 64;

/// One text of an answer. Each channel grows by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Channel {
    /// The choice that it belongs to.
    pub(crate) choice: u64,
    pub(crate) kind: ChannelKind,
    /// Tells the calls, blocks or items of one choice apart.
    pub(crate) slot: u64,
}

/// What the text of a channel is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum ChannelKind {
    #[default]
    Text,
    Refusal,
    Reasoning,
    /// A summary of the reasoning.
    Summary,
    /// The name of the tool that the client is to run.
    Name,
    /// The name of the tool that the provider runs.
    HostedName,
    /// The arguments of a call, or code to be run.
    Arguments,
    /// What sound says.
    Transcript,
    /// A picture. It has no text.
    Picture,
}

impl ChannelKind {
    /// Whether the engine needs more, or other, tokens than the text shows.
    const fn is_formed(self) -> bool {
        !matches!(self, Self::Text | Self::Refusal | Self::Reasoning)
    }
}

/// How a text stands to what its channel has said before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// It is what is new. Some engines repeat all so far here too.
    #[default]
    Delta,
    /// It is all so far, by the rules of the wire format.
    Whole,
    /// It is all, after or beside deltas that may have said it.
    Restated,
    /// It counts once, however often it is said: a name, or a call that comes whole. `call` is the
    /// id of the call, hashed; 0 where the engine gives none.
    Once {
        /// Which call it is.
        call: u64,
        /// Its place tells it from another call with the same id.
        is_placed: bool,
    },
}

/// One text that was generated.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Said<'a> {
    pub(crate) channel: Channel,
    pub(crate) form: Form,
    pub(crate) text: Text<'a>,
}

/// Generated content: text, reasoning, calls, refusals, in the order in which it stands.
#[derive(Debug, Default)]
pub(crate) struct Content<'a> {
    /// There was a place for content, and it was an empty object.
    pub(crate) is_bare: bool,
    /// What else than plain text it is.
    pub(crate) kinds: Kinds,
    /// There is content without text that is new, such as sound.
    pub(crate) begins: bool,
    /// There is content without text that deltas may have brought before.
    pub(crate) begins_again: bool,
    /// Calls of hosted tools.
    pub(crate) calls: Option<Box<Calls>>,
    first: Option<Said<'a>>,
    /// Most events have one text at most.
    more: Vec<Said<'a>>,
}

impl<'a> Content<'a> {
    /// Adds text of the answer itself.
    pub(crate) fn push(&mut self, text: Option<Text<'a>>) {
        self.push_to(ChannelKind::Text, text);
    }

    /// Adds reasoning.
    pub(crate) fn push_reasoning(&mut self, text: Option<Text<'a>>) {
        self.push_to(ChannelKind::Reasoning, text);
    }

    /// Adds arguments of a call, or code to be run.
    pub(crate) fn push_formed(&mut self, text: Option<Text<'a>>) {
        self.push_to(ChannelKind::Arguments, text);
    }

    /// Adds text to a channel of this kind. An empty text is no content.
    pub(crate) fn push_to(&mut self, kind: ChannelKind, text: Option<Text<'a>>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            let channel = Channel { kind, ..Channel::default() };
            self.say(Said { channel, text, form: Form::Delta });
        }
    }

    /// Adds the name of a tool that the client is to run, and the id of the call.
    pub(crate) fn push_name(&mut self, name: Text<'a>, id: Option<Text<'a>>) {
        self.say_once(ChannelKind::Name, 0, name, id, true);
    }

    /// Adds the name of a tool that the provider runs, and the id of the call. The name is empty
    /// where the kind of the call is all that is said.
    pub(crate) fn push_hosted_name(&mut self, name: Text<'a>, id: Option<Text<'a>>) {
        self.say_once(ChannelKind::HostedName, 0, name, id, true);
    }

    /// Adds a call that comes whole. The engine may say it again.
    pub(crate) fn push_call(
        &mut self,
        name: Option<Text<'a>>,
        arguments: Option<Text<'a>>,
        id: Option<Text<'a>>,
    ) {
        let arguments = arguments.filter(|arguments| !is_empty_object(arguments.raw()));
        let [by_name, by_arguments] = [name, arguments].map(|text| hash(&text.map(|it| it.raw())));
        // Equal calls of one event are different calls.
        let alike = |said: &&Said<'_>| {
            said.channel.kind == ChannelKind::Name
                && Some(said.text) == name
                && said.channel.slot == by_arguments
        };
        let nth = self.said().filter(alike).count() as u64;
        let name = name.unwrap_or_default();
        self.say_once(ChannelKind::Name, by_arguments.wrapping_add(nth), name, id, false);
        if let Some(arguments) = arguments {
            self.say_once(ChannelKind::Arguments, by_name.wrapping_add(nth), arguments, id, false);
        }
    }

    /// Adds a picture. The engine may show it again.
    pub(crate) fn push_picture(&mut self, picture: Text<'a>) {
        let raw = picture.raw();
        let (head, tail) =
            (raw.first_chunk::<PICTURE_ENDS_BYTES>(), raw.last_chunk::<PICTURE_ENDS_BYTES>());
        let ends = head.zip(tail).map(|(head, tail)| (*head, *tail, raw.len()));
        let slot = ends.map_or_else(|| hash(&raw), |ends| hash(&ends));
        self.say_once(ChannelKind::Picture, slot, Text::default(), None, false);
    }

    fn say_once(
        &mut self,
        kind: ChannelKind,
        slot: u64,
        text: Text<'a>,
        id: Option<Text<'a>>,
        is_placed: bool,
    ) {
        let channel = Channel { choice: 0, kind, slot };
        let id = id.filter(|id| !id.is_empty());
        let call = id.map_or(0, |id| hash(&id.raw()));
        self.say(Said { channel, text, form: Form::Once { call, is_placed } });
    }

    fn say(&mut self, said: Said<'a>) {
        self.kinds.reasoning |= said.channel.kind == ChannelKind::Reasoning;
        self.kinds.formed |= said.channel.kind.is_formed();
        if self.first.is_none() {
            self.first = Some(said);
        } else {
            self.more.push(said);
        }
    }

    /// Content without text, such as sound.
    pub(crate) const fn begin(&mut self) {
        self.begins = true;
        self.kinds.formed = true;
    }

    /// Adds the whole of what deltas may have said.
    pub(crate) fn restate(&mut self, mut whole: Self) {
        whole.begins_again |= std::mem::take(&mut whole.begins);
        for said in whole.said_from(0) {
            match &mut said.form {
                Form::Once { is_placed, .. } => *is_placed = false,
                form if *form == Form::Delta => *form = Form::Restated,
                _ => {}
            }
        }
        self.extend(whole);
    }

    /// How many texts there are: those that follow can be placed by [`Self::of_choice`] and
    /// [`Self::of_slot`].
    pub(crate) const fn len(&self) -> usize {
        if self.first.is_none() { 0 } else { self.more.len() + 1 }
    }

    /// Says which choice the texts from `from` on belong to: many formats tell it behind them.
    pub(crate) fn of_choice(&mut self, from: usize, choice: u64) {
        self.said_from(from).for_each(|said| said.channel.choice = choice);
    }

    /// Says which slot the texts from `from` on belong to, but for calls that come whole.
    pub(crate) fn of_slot(&mut self, from: usize, slot: u64) {
        let is_placed = |said: &&mut Said<'_>| said.channel.slot == 0;
        self.said_from(from).filter(is_placed).for_each(|said| said.channel.slot = slot);
    }

    /// Moves all texts to slots that are so much higher.
    pub(crate) fn move_slots(&mut self, by: u64) {
        let has_place = |said: &&mut Said<'_>| {
            said.channel.slot == 0 || !matches!(said.form, Form::Once { .. })
        };
        let slots = self.said_from(0).filter(has_place).map(|said| &mut said.channel.slot);
        slots.for_each(|slot| *slot = slot.wrapping_add(by));
    }

    /// Adds what another part of the same answer says.
    pub(crate) fn extend(&mut self, other: Self) {
        self.begins |= other.begins;
        self.begins_again |= other.begins_again;
        self.kinds.formed |= other.kinds.formed;
        if let Some(calls) = other.calls {
            self.calls.get_or_insert_default().add(*calls);
        }
        for said in other.first.into_iter().chain(other.more) {
            self.say(said);
        }
    }

    /// Says that the texts from `from` on are all so far.
    pub(crate) fn are_whole(&mut self, from: usize) {
        self.said_from(from).for_each(|said| said.form = Form::Whole);
    }

    fn said_from(&mut self, from: usize) -> impl Iterator<Item = &mut Said<'a>> {
        self.first.iter_mut().chain(&mut self.more).skip(from)
    }

    /// Whether there is content of any kind.
    pub(crate) const fn is_any(&self) -> bool {
        self.begins || self.begins_again || self.first.is_some()
    }

    /// The one text that is new, if there is no other. A name may stand beside it: the next event
    /// that is like this one repeats that name.
    pub(crate) fn single(&self) -> Option<&Text<'a>> {
        let mut texts = self.said().filter(|said| !matches!(said.form, Form::Once { .. }));
        let said = texts.next().filter(|said| said.form == Form::Delta)?;
        (texts.next().is_none() && !self.begins && !self.begins_again).then_some(&said.text)
    }

    /// All texts, in order.
    pub(crate) fn said(&self) -> impl Iterator<Item = &Said<'a>> {
        self.first.iter().chain(&self.more)
    }
}

/// Whether it is `{}`, with blanks or without.
pub(crate) fn is_empty_object(json: &[u8]) -> bool {
    let inside = json.strip_prefix(b"{").and_then(|inside| inside.strip_suffix(b"}"));
    inside.is_some_and(|inside| inside.trim_ascii().is_empty())
}

/// Never 0: that stands for none.
fn hash(of: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish() | 1
}
