//! Reads a request body in JSON while it passes.
//!
//! The reader refuses what two readers could read differently: other encodings, keys given twice,
//! bytes behind the end. It keeps the few values that the gateway acts on, and ignores the rest.

mod context;
mod fault;
mod limit;
mod member;
mod noted;
mod parameter;
mod splice;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use context::{Context, names_context};
use context::{ContextMember, Contexts};
pub use fault::RequestFault;
pub use noted::{Members, Note, Noted};
pub use parameter::Parameter;
pub use splice::{BodyEdits, Splice};

pub(crate) use limit::Limit;
use member::BodyMember;
pub(crate) use member::MODEL_REQUIREMENT;
use noted::Spot;
use parameter::{Parent, state};
use splice::{Flag, Options, Places};
use taximeter_json::{Container, Event, Piece, Scalar, StreamReader};
use taximeter_meter::UsageAsk;
use taximeter_meter::{Dialect, Wire};

/// Reads one request body in JSON.
#[derive(Debug)]
pub(crate) struct JsonReader {
    json: StreamReader,
    offset: u64,
    /// The member whose value comes next.
    member: Option<BodyMember>,
    /// The member whose value comes next, if it names a context.
    context: Option<ContextMember>,
    /// The parameter whose value comes next; of a list of them, until its end.
    parameter: Option<Parameter>,
    /// The member whose container is open, if it names a context, and its level.
    contains: Option<(ContextMember, usize)>,
    /// What the container is that comes next, if one does.
    opens: Option<Parent>,
    /// What stands around it, where its members are read.
    parent: Option<Parent>,
    /// Whether parameters are noted.
    states: bool,
    /// Further members that are noted, and where in them the next value stands.
    noting: Option<Arc<Members>>,
    spot: Spot,
    /// Members that were there, one bit each.
    seen: u32,
    facts: RequestFacts,
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFacts {
    /// `model`.
    pub model: Option<String>,
    /// `stream`, or what its absence means.
    pub stream: bool,
    /// `background`: the answer is generated after the request.
    pub background: bool,
    /// `stream_options.include_usage`; `None` when absent or null.
    pub include_usage: Option<bool>,
    /// `n`, where it is at least one.
    pub choices: Option<u64>,
    /// Whether it has one prompt, a text, on the wire format whose answers do not say whether they
    /// are to one prompt or to several.
    pub has_one_prompt: bool,
    /// The most tokens that each answer may have: the largest of `max_tokens`,
    /// `max_completion_tokens`, `max_output_tokens` and `n_predict`, as engines differ in which of
    /// them they obey. `None` where the request has none of them, or one of them is below one.
    pub max_output_tokens: Option<u64>,
    /// `user`, when it is a text of at most 256 bytes.
    pub user: Option<String>,
    /// `service_tier`, when it is a text of at most 256 bytes.
    pub service_tier: Option<String>,
    /// Parameters that it states, where they are asked for: numbers as they are written.
    pub parameters: Vec<(Parameter, String)>,
    /// Members that were to be noted, in the order in which they stand.
    pub notes: Vec<Noted>,
    /// The most answers that the engine generates, by `n` and `best_of`; `None` where either is
    /// below one.
    answers_max: Option<u64>,
    contexts: Contexts,
    /// Whether a limit of the output is below one, which some engines take for no limit.
    is_unlimited: bool,
    wire: Wire,
    places: Places,
}

impl JsonReader {
    /// A reader for the body of a request on `wire`.
    pub(crate) fn new(wire: Wire) -> Self {
        Self {
            json: StreamReader::new(),
            offset: 0,
            member: None,
            context: None,
            parameter: None,
            contains: None,
            opens: None,
            parent: None,
            states: false,
            noting: None,
            spot: Spot::default(),
            seen: 0,
            facts: RequestFacts::nothing(wire),
        }
    }

    /// Reads what is nested so deep, the outermost object included, and nothing deeper.
    pub(crate) const fn nest(&mut self, depth_max: usize) {
        self.json.nest(depth_max);
    }

    /// Notes the request's parameters as well.
    pub(crate) const fn note_parameters(&mut self) {
        self.states = true;
    }

    /// Notes these members as well.
    pub(crate) fn note(&mut self, members: Arc<Members>) {
        self.noting = Some(members);
    }

    /// Reads on, to the first fault.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(), RequestFault> {
        let end = self.offset + bytes.len() as u64;
        let mut piece = Piece { rest: bytes, end };
        while let Some(event) = self.json.next(&mut piece)? {
            match event {
                Event::Key => self.on_key()?,
                Event::Scalar { kind, start, end } => self.on_scalar(kind, start, end)?,
                Event::Open { container, inside } => self.on_open(container, inside)?,
                Event::Close { empty } => self.on_close(empty),
            }
        }
        self.offset = end;
        Ok(())
    }

    /// Close the body; `InvalidJson` when it ends too early.
    pub(crate) fn finish(self) -> Result<RequestFacts, RequestFault> {
        self.json.finish(self.offset)?;
        Ok(self.facts)
    }

    fn on_key(&mut self) -> Result<(), RequestFault> {
        let (key, depth, parent) = (self.json.text(), self.json.depth(), self.parent);
        if let Some(members) = &self.noting {
            self.spot.on_key(members, depth, key);
        }
        let is_read = matches!(parent, None | Some(Parent::StreamOptions));
        self.member = key.filter(|_| is_read).and_then(|key| BodyMember::named(depth, key));
        self.context = key.and_then(|key| match parent {
            None => ContextMember::named(self.facts.wire, key),
            Some(Parent::Conversation) if key == "id" => Some(ContextMember::Conversation),
            Some(_) => None,
        });
        let stated = key.filter(|_| self.states);
        self.parameter = stated.and_then(|key| Parameter::named(parent, key));
        self.opens = stated.and_then(|key| Parent::named(parent, key));
        if parent.is_none() {
            self.opens = self.opens.or(self.context.and_then(ContextMember::parent));
        }
        // Engines judge by themselves what several prompts are.
        let is_prompt = |member| matches!(member, BodyMember::Prompt | BodyMember::PromptIds);
        if let Some(member) = self.member.filter(|member| !is_prompt(*member)) {
            let bit = 1 << member as u32;
            if self.seen & bit != 0 {
                return Err(RequestFault::DuplicateKey { key: member.path() });
            }
            self.seen |= bit;
        }
        Ok(())
    }

    fn on_scalar(&mut self, kind: Scalar, start: u64, end: u64) -> Result<(), RequestFault> {
        if let Some(noted) = self.spot.on_scalar(kind, &self.json) {
            noted::add(&mut self.facts.notes, noted);
        }
        if let Some(parameter) = self.parameter {
            state(&mut self.facts.parameters, parameter, kind, self.json.text());
        }
        if let Some(context) = self.context.take() {
            self.facts.contexts.add_scalar(context, kind, self.json.text());
        }
        let Some(member) = self.member else {
            self.on_first_id(kind == Scalar::Number);
            return Ok(());
        };
        let places = &mut self.facts.places;
        match member {
            BodyMember::Model => self.facts.model = model(kind, self.json.text())?,
            BodyMember::Stream => match kind {
                Scalar::True => self.facts.stream = true,
                Scalar::False => self.facts.stream = false,
                Scalar::Null => {}
                Scalar::String | Scalar::Number => self.unclear(member)?,
            },
            BodyMember::Background => self.facts.background = kind == Scalar::True,
            BodyMember::StreamOptions => {
                places.options = match kind {
                    Scalar::Null => Options::Null { start, end },
                    _ => Options::Odd,
                };
            }
            BodyMember::IncludeUsage => {
                places.include_usage = asked(kind, start, end);
                self.facts.include_usage = match kind {
                    Scalar::True => Some(true),
                    Scalar::False => Some(false),
                    Scalar::Null | Scalar::String | Scalar::Number => None,
                };
            }
            BodyMember::Choices
            | BodyMember::BestOf
            | BodyMember::MaxTokens
            | BodyMember::MaxCompletionTokens
            | BodyMember::MaxOutputTokens
            | BodyMember::Predict => self.on_limit(member, kind)?,
            BodyMember::User => self.facts.user = text(kind, self.json.text()),
            BodyMember::ServiceTier => self.facts.service_tier = text(kind, self.json.text()),
            BodyMember::ContinuousUsageStats => places.continuous_usage = asked(kind, start, end),
            BodyMember::ReturnTokenIds => places.token_ids = asked(kind, start, end),
            BodyMember::Prompt => self.facts.note_prompt(kind == Scalar::String),
            BodyMember::PromptIds => self.facts.note_prompt(false),
            BodyMember::IncludeObfuscation => {}
        }
        Ok(())
    }

    fn on_limit(&mut self, member: BodyMember, kind: Scalar) -> Result<(), RequestFault> {
        let limit = match kind {
            Scalar::Null => return Ok(()),
            Scalar::Number => self.json.text().and_then(Limit::read),
            Scalar::String | Scalar::True | Scalar::False => None,
        };
        let Some(limit) = limit else { return self.unclear(member) };
        match member {
            BodyMember::Choices => self.facts.count_choices(limit),
            BodyMember::BestOf => self.facts.generate(limit),
            _ => self.facts.limit_output(limit),
        }
        Ok(())
    }

    /// The first element of a list of token ids, which tells whether they are one prompt: the others
    /// are not reported.
    fn on_first_id(&mut self, is_id: bool) {
        if self.parent == Some(Parent::PromptIds) {
            self.facts.note_prompt(is_id);
            self.parent = None;
            self.json.leave();
        }
    }

    /// Refuses a value that two readers could read differently, if the gateway acts on it.
    fn unclear(&self, member: BodyMember) -> Result<(), RequestFault> {
        if member.is_acted_on(self.facts.wire) { Err(invalid(member)) } else { Ok(()) }
    }

    fn on_open(&mut self, container: Container, inside: u64) -> Result<(), RequestFault> {
        self.open(container, inside)?;
        let Some(members) = &self.noting else { return Ok(()) };
        let has_members = self.spot.on_open(members, container, self.json.depth());
        if has_members && self.parent.is_none() {
            self.parent = Some(Parent::Noted);
            self.json.follow();
        }
        Ok(())
    }

    fn open(&mut self, container: Container, inside: u64) -> Result<(), RequestFault> {
        if self.json.depth() == 1 {
            self.facts.places.members = inside;
            return Ok(());
        }
        if let Some(context) = self.context.take() {
            self.contains = Some((context, self.json.depth()));
        }
        let Some(member) = self.member.take() else {
            if self.parent == Some(Parent::PromptIds) {
                self.on_first_id(false);
                return Ok(());
            }
            if self.opens == Some(Parent::Conversation) {
                // Its id is a member, and comes before its end.
                self.contains = None;
                self.facts.contexts.add_container(ContextMember::Conversation);
            }
            self.follow(container);
            return Ok(());
        };
        match (member, container) {
            (BodyMember::StreamOptions, Container::Object) => {
                self.parent = Some(Parent::StreamOptions);
                self.facts.places.options = Options::Object { inside, empty: false };
                self.json.follow();
                Ok(())
            }
            (BodyMember::StreamOptions, Container::Array) => {
                self.facts.places.options = Options::Odd;
                Ok(())
            }
            (BodyMember::IncludeUsage, _) => {
                self.facts.places.include_usage = Flag::Odd;
                Ok(())
            }
            (BodyMember::ContinuousUsageStats, _) => {
                self.facts.places.continuous_usage = Flag::Odd;
                Ok(())
            }
            (BodyMember::ReturnTokenIds, _) => {
                self.facts.places.token_ids = Flag::Odd;
                Ok(())
            }
            (BodyMember::Prompt, _) => {
                self.facts.note_prompt(false);
                self.follow(container);
                Ok(())
            }
            (BodyMember::PromptIds, Container::Array) if self.facts.wire == Wire::Generate => {
                self.facts.note_prompt(false);
                self.parent = Some(Parent::PromptIds);
                self.json.follow();
                Ok(())
            }
            _ => self.unclear(member),
        }
    }

    /// Reads what is in a container, where that are parameters.
    fn follow(&mut self, container: Container) {
        let is_list = container == Container::Array;
        let of_list = self.parameter.filter(|it| it.is_listed() && is_list);
        let parent = match (of_list, self.parent) {
            (Some(_), None) => Some(Parent::List),
            _ => self.opens.take().filter(|opens| !is_list || *opens == Parent::Kept),
        };
        self.parameter = of_list.filter(|_| parent.is_some());
        if parent.is_some() {
            self.parent = parent;
            self.json.follow();
        }
    }

    fn on_close(&mut self, closed_empty: bool) {
        let depth = self.json.depth() + 1;
        if let Some((context, _)) = self.contains.take_if(|(_, opened)| *opened == depth)
            && !closed_empty
        {
            self.facts.contexts.add_container(context);
        }
        let closed = self.parent.take();
        self.parameter = None;
        if let Options::Object { empty, .. } = &mut self.facts.places.options
            && closed == Some(Parent::StreamOptions)
        {
            *empty = closed_empty;
        }
        self.parent = closed.and_then(Parent::parent);
    }
}

impl RequestFacts {
    /// What a body asks for that says nothing.
    pub(crate) fn nothing(wire: Wire) -> Self {
        Self {
            model: None,
            stream: wire.streams_by_default(),
            background: false,
            include_usage: None,
            choices: None,
            has_one_prompt: false,
            max_output_tokens: None,
            user: None,
            service_tier: None,
            parameters: Vec::new(),
            notes: Vec::new(),
            answers_max: Some(1),
            contexts: Contexts::default(),
            is_unlimited: false,
            wire,
            places: Places::default(),
        }
    }

    /// Notes a prompt, or a list of them.
    const fn note_prompt(&mut self, is_text: bool) {
        self.has_one_prompt = is_text && matches!(self.wire, Wire::Generate);
    }

    /// Notes `n`.
    pub(crate) fn count_choices(&mut self, limit: Limit) {
        self.choices = limit.at_most();
        self.generate(limit);
    }

    /// Notes how many answers the engine generates. It need not send all of them.
    fn generate(&mut self, limit: Limit) {
        let most = self.answers_max.zip(limit.at_most());
        self.answers_max = most.map(|(most, more)| most.max(more));
    }

    /// Notes a limit of the output of each answer.
    fn limit_output(&mut self, limit: Limit) {
        self.is_unlimited |= limit == Limit::Open;
        let largest = self.max_output_tokens.max(limit.at_most());
        self.max_output_tokens = largest.filter(|_| !self.is_unlimited);
    }

    /// The most tokens that the engine may generate for all answers together; `None` where the
    /// request sets no limit.
    #[must_use]
    pub fn output_tokens_max(&self) -> Option<u64> {
        self.max_output_tokens?.checked_mul(self.answers_max?)
    }

    /// What the prompt has beside what the request contains, as far as its members say so.
    #[must_use]
    pub fn context(&self) -> Option<Context> {
        self.contexts.context()
    }

    /// What to change in the body so that an engine of this dialect tells of usage, as far as it
    /// can be asked so, and what of its answer is then to be hidden.
    ///
    /// Nothing when there is nothing to ask: no stream, asked for already, a wire or an engine that
    /// has no such question.
    #[must_use]
    pub fn question(&self, dialect: Dialect, ask: UsageAsk) -> BodyEdits {
        let asks =
            matches!(self.wire, Wire::ChatCompletions | Wire::Completions | Wire::Invocations);
        if !asks || !self.stream || !dialect.accepts_include_usage() {
            return BodyEdits::default();
        }
        let ask = if ask.suits(dialect) { ask } else { UsageAsk::Final };
        self.places.question(ask, dialect.accepts_continuous_usage())
    }
}

fn invalid(member: BodyMember) -> RequestFault {
    RequestFault::InvalidValue { param: member.path(), what: member.requirement() }
}

fn model(kind: Scalar, text: Option<&str>) -> Result<Option<String>, RequestFault> {
    match (kind, text) {
        (Scalar::Null, _) => Ok(None),
        (Scalar::String, Some(text)) if !text.is_empty() && !text.chars().any(char::is_control) => {
            Ok(Some(text.to_owned()))
        }
        _ => Err(invalid(BodyMember::Model)),
    }
}

/// The same for the question of usage, where only the engine cares what else stands there.
fn asked(kind: Scalar, start: u64, end: u64) -> Flag {
    match kind {
        Scalar::True => Flag::On,
        Scalar::False | Scalar::Null => Flag::Off { start, end },
        Scalar::String | Scalar::Number => Flag::Odd,
    }
}

fn text(kind: Scalar, text: Option<&str>) -> Option<String> {
    if kind == Scalar::String { text.map(str::to_owned) } else { None }
}
