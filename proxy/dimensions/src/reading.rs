//! What one request says.

use std::borrow::Cow;
use std::sync::Arc;

use taximeter_ledger::{Dimensions, RequestKind, SessionSource};
use taximeter_request::{Members, Note, Noted};

use crate::client::{Client, Product};
use crate::dimension::Dimension;
use crate::form::Form;
use crate::names::{Names, Rule};
use crate::settings::TAGS_MAX;
use crate::value::Dropped;

/// How many dimensions a request can have.
const DIMENSIONS: usize = Dimension::COUNT + TAGS_MAX;
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
    rules: &'a [u16],
    text: Result<Text<'a>, Dropped>,
    source: SessionSource,
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

    fn on_header(&mut self, rules: &'a [u16], value: &'a [u8]) {
        let mut before = self.candidates.iter_mut();
        match before.find(|candidate| std::ptr::eq(candidate.rules, rules)) {
            Some(candidate) if candidate.text == Ok(Text::Header(value)) => {}
            Some(candidate) => candidate.text = Err(Dropped::Disagreement),
            None => {
                if self.candidates.is_empty() {
                    self.candidates.reserve(CANDIDATES_USUALLY);
                }
                let text = Ok(Text::Header(value));
                self.candidates.push(Candidate { rules, text, source: SessionSource::Header });
            }
        }
    }

    /// What to note of the body.
    #[must_use]
    pub const fn noted(&self) -> &'a Arc<Members> {
        self.names.noted(self.client)
    }

    /// What the request is part of, by its head, by what was noted of its body, and by the body's
    /// `user`.
    #[must_use]
    pub fn finish(mut self, notes: &'a [Noted], user: Option<&'a str>) -> Found {
        let user = user.filter(|_| !self.names.user().is_empty());
        if self.candidates.is_empty()
            && notes.is_empty()
            && user.is_none()
            && self.product.is_none()
            && self.client.is_none()
        {
            return Found::default();
        }
        let noted = notes.iter().map(|Noted { path, note }| Candidate {
            rules: self.names.member(*path),
            text: match note {
                Note::Text(text) => Ok(Text::Member(text)),
                Note::TooLong => Err(Dropped::TooLong),
                Note::Twice => Err(Dropped::Disagreement),
            },
            source: SessionSource::Body,
        });
        let user = user.map(|user| Candidate {
            rules: self.names.user(),
            text: Ok(Text::Member(user)),
            source: SessionSource::Body,
        });
        self.candidates.extend(noted.chain(user));
        self.weigh()
    }

    /// Of several values of a dimension the first good one counts. What would count less is not read.
    fn weigh(self) -> Found {
        let mut found = Found::default();
        let mut best: [Option<Best<'a>>; DIMENSIONS] = [const { None }; DIMENSIONS];
        for (slot, mut next) in best.iter_mut().zip(self.firsts()) {
            while let Some((rank, at)) = next {
                let (Some(rule), Some(candidate)) = (self.names.rule(rank), self.candidate(at))
                else {
                    break;
                };
                match candidate.read(rule.form) {
                    Ok(Some(value)) => {
                        *slot = Some(Best { value, source: candidate.source, rule });
                        break;
                    }
                    Ok(None) => {}
                    Err(why) => found.drop(rule.gives, why),
                }
                next = self.after(rank, rule.gives);
            }
        }
        let [session, agent, parent, turn, kind, client, end_user, tags @ ..] = best;
        found.lineage = lineage(session.as_ref(), agent.as_ref());
        let (agent, parent) = self.agents(session.as_ref(), agent, parent, &mut found);
        let tags = (0..).zip(tags).filter_map(|(number, tag)| {
            Some((self.names.tag(number)?.clone(), tag?.value.into_owned()))
        });
        let dimensions = Dimensions {
            session_source: session.as_ref().map(|session| session.source),
            session: session.and_then(|session| self.names.checked(&session.value)),
            agent,
            parent_agent: parent,
            turn: turn.and_then(|turn| self.names.checked(&turn.value)),
            kind: kind.and_then(|kind| request_kind(&kind.value)),
            client: client.map(|client| client.value.into_owned()).or_else(|| self.shown_client()),
            end_user: end_user.and_then(|user| self.names.end_user(&user.value)),
            tags: tags.collect(),
        };
        found.dimensions = dimensions.if_any();
        found
    }

    fn candidate(&self, at: u16) -> Option<&Candidate<'a>> {
        self.candidates.get(usize::from(at))
    }

    /// What counts first for each dimension: the number of a rule, and that of a candidate.
    fn firsts(&self) -> [Option<(u16, u16)>; DIMENSIONS] {
        let mut firsts = [None; DIMENSIONS];
        for (rank, gives, at) in self.ranked() {
            if let Some(first) = firsts.get_mut(gives.index())
                && first.is_none_or(|(before, _)| rank < before)
            {
                *first = Some((rank, at));
            }
        }
        firsts
    }

    /// What counts next for a dimension, behind the rule of this number.
    fn after(&self, rank: u16, dimension: Dimension) -> Option<(u16, u16)> {
        let of = self.ranked().filter(|(next, gives, _)| *gives == dimension && *next > rank);
        of.map(|(rank, _, at)| (rank, at)).min()
    }

    /// The candidates by the number of each rule that holds for the client, and what that rule gives.
    fn ranked(&self) -> impl Iterator<Item = (u16, Dimension, u16)> {
        (0..).zip(&self.candidates).flat_map(move |(at, candidate)| {
            candidate.rules.iter().filter_map(move |rank| {
                let rule = self.names.rule(*rank)?;
                let holds = rule.client.is_none() || rule.client == self.client;
                holds.then_some((*rank, rule.gives, at))
            })
        })
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
        let same = |one: &Option<Best<'_>>, other: Option<&str>| {
            one.as_ref().is_some_and(|one| Some(&*one.value) == other)
        };
        let is_own = agent.is_some() && same(&parent, agent.as_ref().map(|agent| &*agent.value));
        let parent = parent.filter(|_| !is_own);
        if is_own {
            found.drop(Dimension::ParentAgent, Dropped::OwnParent);
        }
        let shown = |one: Option<Best<'_>>| {
            let is_root = same(&one, session);
            let one = one?.value;
            // What a client says in words is no id.
            if is_root || matches!(&*one, ROOT | "subagent") {
                let word = if is_root { ROOT } else { &*one };
                return Some(word.to_owned());
            }
            self.names.checked(&one)
        };
        (shown(agent), shown(parent))
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

impl<'a> Candidate<'a> {
    fn read(&self, form: Form) -> Result<Option<Cow<'a, str>>, Dropped> {
        match self.text? {
            Text::Member(text) => form.read(text),
            Text::Header(value) => {
                form.read(str::from_utf8(value).map_err(|_| Dropped::Characters)?)
            }
        }
    }
}

impl Found {
    fn drop(&mut self, dimension: Dimension, why: Dropped) {
        if !self.dropped.contains(&(dimension, why)) {
            self.dropped.push((dimension, why));
        }
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
