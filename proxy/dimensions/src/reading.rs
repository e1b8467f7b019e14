//! What one request says.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use taximeter_ledger::{Dimensions, RequestKind, SessionSource};
use taximeter_request::{Members, Note, Noted};

use crate::client::{Client, Product};
use crate::dimension::Dimension;
use crate::form::{CodexTurn, Form, SUBAGENT};
use crate::names::{self, Names, Rule, Rules};
use crate::settings::TAGS_MAX;
use crate::value::{Dropped, name};

/// How many dimensions a request can have.
const DIMENSIONS: usize = Dimension::COUNT as usize + TAGS_MAX;
/// Room for what most clients of agents say.
const CANDIDATES_USUALLY: usize = 8;

/// The agent that the user talks to, whatever its client calls it.
const ROOT: &str = "root";

/// What the head of a request says. Its body may say more.
#[derive(Debug)]
pub struct Reading<'a> {
    names: &'a Names,
    client: Option<Client>,
    product: Option<Product<'a>>,
    candidates: Vec<Candidate<'a>>,
}

/// A text in a place that has rules.
#[derive(Debug, Clone, Copy)]
struct Candidate<'a> {
    rules: &'a Rules,
    text: Result<Text<'a>, Dropped>,
    source: SessionSource,
}

impl Candidate<'_> {
    /// Whether it is the name of something.
    fn is_name(&self) -> bool {
        match self.text {
            Ok(Text::Header(value)) => {
                str::from_utf8(value).is_ok_and(|text| matches!(name(text), Ok(Some(_))))
            }
            Ok(Text::Member(text)) => matches!(name(text), Ok(Some(_))),
            Err(_) => false,
        }
    }
}

/// The value of a header, which may be no text, or that of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text<'a> {
    Header(&'a [u8]),
    Member(&'a str),
}

/// What a request is part of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// `None` if it says nothing.
    pub dimensions: Option<Box<Dimensions>>,
    /// What it says that cannot be taken.
    pub dropped: Vec<(Dimension, Dropped)>,
    /// What its client says of the session's root.
    pub lineage: Lineage,
}

/// Whether the session of a request is that of the root, where clients have a session for each agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lineage {
    /// All agents of the client have the session of the root.
    #[default]
    Shared,
    /// The session is that of the agent that has started this one: the root, or another sub-agent.
    Parent,
    /// The session is this agent's own: it is the root, or its client has left out who started it.
    Own,
}

/// A candidate by a rule that holds: what counts more is less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    /// The number of the rule.
    rank: u16,
    /// The number of the candidate.
    at: u16,
}

impl Ranked {
    /// What no candidate has.
    const LAST: Self = Self { rank: u16::MAX, at: u16::MAX };
}

/// What counts first for a dimension, and how much there is for it.
#[derive(Debug, Clone, Copy)]
struct First {
    ranked: Ranked,
    count: u32,
}

/// The search for the values that count.
struct Weighing<'a, 'r> {
    reading: &'r Reading<'a>,
    firsts: [First; DIMENSIONS],
    /// What Codex notes on the turn, once it is read.
    turn: Option<Result<CodexTurn<'a>, Dropped>>,
}

/// The value of a dimension that counts.
struct Best<'a> {
    value: Cow<'a, str>,
    source: SessionSource,
    rule: &'a Rule,
}

impl Names {
    /// Reads the headers of a request: names in lower case, and values.
    pub fn read_headers<'a>(
        &'a self,
        headers: impl Iterator<Item = (&'a str, &'a [u8])>,
    ) -> Reading<'a> {
        let mut reading =
            Reading { names: self, client: None, product: None, candidates: Vec::new() };
        for (name, value) in headers {
            if name == "user-agent" {
                reading.on_user_agent(value);
            }
            // Headers that only one client sends say more than `user-agent`, which libraries set.
            if let Some((rules, client)) = self.header(name) {
                reading.client = client.or(reading.client);
                reading.on_header(rules, value);
            }
        }
        reading
    }
}

impl<'a> Reading<'a> {
    fn on_user_agent(&mut self, value: &'a [u8]) {
        if let Some(product) = Product::of_user_agent(value) {
            self.client = self.client.or(product.client());
            self.product = Some(product);
        }
    }

    fn on_header(&mut self, rules: &'a Rules, value: &'a [u8]) {
        let mut before = self.candidates.iter_mut();
        match before.find(|candidate| std::ptr::eq(candidate.rules, rules)) {
            Some(candidate) if candidate.text == Ok(Text::Header(value)) => {}
            Some(candidate) => candidate.text = Err(Dropped::Disagreement),
            None => {
                if self.candidates.is_empty() {
                    self.candidates = Vec::with_capacity(CANDIDATES_USUALLY);
                }
                let text = Ok(Text::Header(value));
                self.candidates.push(Candidate { rules, text, source: SessionSource::Header });
            }
        }
    }

    /// What to note of the body.
    #[must_use]
    pub fn noted(&self) -> &'a Arc<Members> {
        self.names.noted(self.client, |rank| {
            let is_its = |candidate: &&Candidate<'_>| {
                candidate.rules.of(self.client).iter().any(|rule| rule.rank == rank)
            };
            let candidate = self.candidates.iter().find(is_its);
            candidate.is_some_and(|candidate| candidate.is_name())
        })
    }

    /// What the request is part of, by its head, by what was noted of its body, and by the body's
    /// `user`.
    #[must_use]
    pub fn finish(mut self, notes: &'a [Noted], user: Option<&'a str>) -> Found {
        for Noted { path, note } in notes {
            let text = match note {
                Note::Text(text) => Ok(Text::Member(text)),
                Note::TooLong => Err(Dropped::TooLong),
                Note::Twice => Err(Dropped::Disagreement),
            };
            self.add_member(self.names.member(*path), text);
        }
        if let Some(user) = user {
            self.add_member(self.names.user(), Ok(Text::Member(user)));
        }
        if self.candidates.is_empty() { self.only_client() } else { self.weigh() }
    }

    fn add_member(&mut self, rules: Option<&'a Rules>, text: Result<Text<'a>, Dropped>) {
        let source = SessionSource::Body;
        self.candidates.extend(rules.map(|rules| Candidate { rules, text, source }));
    }

    /// Of a request that says nothing, or that names its client and nothing else.
    fn only_client(&self) -> Found {
        let client = self.shown_client();
        let dimensions = client
            .map(|client| Box::new(Dimensions { client: Some(client), ..Dimensions::default() }));
        Found { dimensions, ..Found::default() }
    }

    /// Of several values of a dimension the first good one counts. What would count less is not read.
    fn weigh(&self) -> Found {
        let mut weighing = Weighing { reading: self, firsts: self.firsts(), turn: None };
        let mut found = Found::default();
        let mut best = |dimension| weighing.best(dimension, &mut found.dropped);
        let (session, agent) = (best(Dimension::Session), best(Dimension::Agent));
        let (parent, turn) = (best(Dimension::ParentAgent), best(Dimension::Turn));
        let (kind, client) = (best(Dimension::Kind), best(Dimension::Client));
        let end_user = best(Dimension::EndUser);
        let mut tags = BTreeMap::new();
        for (number, name) in (0..).zip(self.names.tags()) {
            if let Some(tag) = best(Dimension::Tag(number)) {
                tags.insert(name.clone(), tag.value.into_owned());
            }
        }
        found.lineage = lineage(session.as_ref(), agent.as_ref());
        let (agent, parent) = self.agents(session.as_ref(), agent, parent, &mut found);
        let dimensions = Dimensions {
            session_source: session.as_ref().map(|session| session.source),
            session: session.and_then(|session| self.names.checked(session.value)),
            agent,
            parent_agent: parent,
            turn: turn.and_then(|turn| self.names.checked(turn.value)),
            kind: kind.and_then(|kind| request_kind(&kind.value)),
            client: client.map(|client| client.value.into_owned()).or_else(|| self.shown_client()),
            end_user: end_user.and_then(|user| self.names.end_user(user.value)),
            tags,
        };
        found.dimensions = dimensions.if_any();
        found
    }

    /// What counts first for each dimension.
    fn firsts(&self) -> [First; DIMENSIONS] {
        let mut firsts = [First { ranked: Ranked::LAST, count: 0 }; DIMENSIONS];
        self.each_ranked(|slot, next| {
            if let Some(first) = firsts.get_mut(usize::from(slot)) {
                first.ranked = first.ranked.min(next);
                first.count += 1;
            }
        });
        firsts
    }

    /// What counts next for a dimension, behind the rule of this number.
    #[cold]
    fn after(&self, rank: u16, dimension: Dimension) -> Ranked {
        let (of, mut after) = (dimension.slot(), Ranked::LAST);
        self.each_ranked(|slot, next| {
            if slot == of && next.rank > rank {
                after = after.min(next);
            }
        });
        after
    }

    /// Shows `visit` what there is for the dimension of each number, by the rules that hold for the client.
    #[inline]
    fn each_ranked(&self, mut visit: impl FnMut(u8, Ranked)) {
        for (at, candidate) in (0..).zip(&self.candidates) {
            for names::Ranked { rank, slot } in candidate.rules.of(self.client).iter().copied() {
                visit(slot, Ranked { rank, at });
            }
        }
    }

    /// The agent and the one that has started it.
    fn agents(
        &self,
        session: Option<&Best<'_>>,
        agent: Option<Best<'_>>,
        parent: Option<Best<'_>>,
        found: &mut Found,
    ) -> (Option<String>, Option<String>) {
        let session = session.map(|session| &*session.value);
        let own = agent.as_ref().map(|agent| &*agent.value);
        let is_own = own.is_some() && parent.as_ref().map(|parent| &*parent.value) == own;
        let parent = parent.filter(|_| !is_own);
        if is_own {
            found.drop(Dimension::ParentAgent, Dropped::OwnParent);
        }
        let shown = |one: Best<'_>| {
            let one = one.value;
            if session == Some(&*one) {
                return Some(ROOT.to_owned());
            }
            // What a client says in words is no id.
            if matches!(&*one, ROOT | SUBAGENT) {
                return Some(one.into_owned());
            }
            self.names.checked(one)
        };
        (agent.and_then(shown), parent.and_then(shown))
    }

    /// The client program, as far as the head names it.
    fn shown_client(&self) -> Option<String> {
        match (self.client, &self.product) {
            (Some(Client::Copilot), _) => Some("copilot-cli".to_owned()),
            (_, Some(product)) => Some(product.shown()),
            (Some(client), None) => Some(client.as_str().to_owned()),
            (None, None) => None,
        }
    }
}

impl<'a> Weighing<'a, '_> {
    /// The first good value of a dimension. What cannot be taken before it is added to `dropped`.
    #[inline]
    fn best(
        &mut self,
        dimension: Dimension,
        dropped: &mut Vec<(Dimension, Dropped)>,
    ) -> Option<Best<'a>> {
        let first = self.firsts.get(usize::from(dimension.slot())).copied()?;
        if first.count == 0 { None } else { self.best_of(dimension, first, dropped) }
    }

    fn best_of(
        &mut self,
        dimension: Dimension,
        First { mut ranked, count }: First,
        dropped: &mut Vec<(Dimension, Dropped)>,
    ) -> Option<Best<'a>> {
        for left in (0..count).rev() {
            let rule = self.reading.names.rule(ranked.rank)?;
            let candidate = self.reading.candidates.get(usize::from(ranked.at))?;
            match self.read(rule.form, candidate.text) {
                Ok(Some(value)) => return Some(Best { value, source: candidate.source, rule }),
                Ok(None) => {}
                Err(why) => add_dropped(dropped, dimension, why),
            }
            if left > 0 {
                ranked = self.reading.after(ranked.rank, dimension);
            }
        }
        None
    }

    fn read(
        &mut self,
        form: Form,
        text: Result<Text<'a>, Dropped>,
    ) -> Result<Option<Cow<'a, str>>, Dropped> {
        match (form, text?) {
            (Form::CodexTurn(member), Text::Header(value)) => {
                // All of its members are in one header.
                let turn = self.turn.get_or_insert_with(|| CodexTurn::read(value));
                turn.as_ref().map_err(|why| *why)?.member(member)
            }
            (form, Text::Header(value)) => {
                form.read(str::from_utf8(value).map_err(|_| Dropped::Characters)?)
            }
            (form, Text::Member(text)) => form.read(text),
        }
    }
}

impl Found {
    fn drop(&mut self, dimension: Dimension, why: Dropped) {
        add_dropped(&mut self.dropped, dimension, why);
    }
}

fn add_dropped(dropped: &mut Vec<(Dimension, Dropped)>, dimension: Dimension, why: Dropped) {
    if !dropped.contains(&(dimension, why)) {
        dropped.push((dimension, why));
    }
}

fn lineage(session: Option<&Best<'_>>, agent: Option<&Best<'_>>) -> Lineage {
    match (session, agent) {
        (Some(session), _) if session.rule.by_parent => Lineage::Parent,
        (Some(session), Some(agent))
            if agent.rule.client == Some(Client::OpenCode) && agent.value == session.value =>
        {
            Lineage::Own
        }
        _ => Lineage::Shared,
    }
}

fn request_kind(word: &str) -> Option<RequestKind> {
    [RequestKind::Prewarm, RequestKind::Compaction, RequestKind::Title]
        .into_iter()
        .find(|kind| kind.as_str() == word)
}
