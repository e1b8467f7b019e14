//! What one request says.

use std::borrow::Cow;
use std::sync::Arc;

use taximeter_ledger::{Dimensions, RequestKind, SessionSource};
use taximeter_request::{Members, Note, Noted};

use crate::client::{Client, Product, of_header};
use crate::dimension::Dimension;
use crate::names::{Names, Rule};
use crate::settings::TAGS_MAX;
use crate::value::Dropped;

/// The agent that the user talks to, whatever its client calls it.
const ROOT: &str = "root";

/// What the head of a request says. Its body may say more.
#[derive(Debug)]
pub struct Heard<'a> {
    names: &'a Names,
    client: Option<Client>,
    product: Option<Product<'a>>,
    said: Vec<Said<'a>>,
}

/// A text in a place that has rules.
#[derive(Debug)]
struct Said<'a> {
    rules: &'a [u16],
    text: Result<&'a str, Dropped>,
    source: SessionSource,
}

/// What a request is part of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
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

/// The value of a dimension that counts so far.
struct Best<'a> {
    rank: u16,
    value: Cow<'a, str>,
    source: SessionSource,
    rule: Rule,
}

impl Names {
    /// Reads the headers of a request: names in lower case, and values.
    pub fn hear<'a>(&'a self, headers: impl Iterator<Item = (&'a str, &'a [u8])>) -> Heard<'a> {
        let mut heard = Heard { names: self, client: None, product: None, said: Vec::new() };
        for (name, value) in headers {
            if name == "user-agent" {
                heard.on_user_agent(value);
            }
            if let Some(rules) = self.header(name) {
                heard.on_header(name, rules, value);
            }
        }
        heard
    }
}

impl<'a> Heard<'a> {
    fn on_user_agent(&mut self, value: &'a [u8]) {
        let product = str::from_utf8(value).ok().and_then(Product::of_user_agent);
        if let Some(product) = product {
            self.client = self.client.or(product.client());
            self.product = Some(product);
        }
    }

    fn on_header(&mut self, name: &str, rules: &'a [u16], value: &'a [u8]) {
        // Headers that only one client sends say more than `user-agent`, which libraries set.
        self.client = of_header(name).or(self.client);
        let text = str::from_utf8(value).map_err(|_| Dropped::Characters);
        let mut before = self.said.iter_mut();
        match before.find(|said| std::ptr::eq(said.rules, rules)) {
            Some(said) if said.text == text => {}
            Some(said) => said.text = Err(Dropped::Disagreement),
            None => self.said.push(Said { rules, text, source: SessionSource::Header }),
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
    pub fn finish(mut self, notes: &'a [Noted], user: Option<&'a str>) -> Told {
        let user = user.filter(|_| !self.names.user().is_empty());
        if self.said.is_empty()
            && notes.is_empty()
            && user.is_none()
            && self.product.is_none()
            && self.client.is_none()
        {
            return Told::default();
        }
        let noted = notes.iter().map(|Noted { path, note }| Said {
            rules: self.names.member(*path),
            text: match note {
                Note::Text(text) => Ok(text.as_str()),
                Note::TooLong => Err(Dropped::TooLong),
                Note::Twice => Err(Dropped::Disagreement),
            },
            source: SessionSource::Body,
        });
        let user = user.map(|user| Said {
            rules: self.names.user(),
            text: Ok(user),
            source: SessionSource::Body,
        });
        self.said.extend(noted.chain(user));
        self.weigh()
    }

    fn weigh(self) -> Told {
        const COUNT: usize = Dimension::COUNT + TAGS_MAX;
        let mut told = Told::default();
        let mut best: [Option<Best<'a>>; COUNT] = [const { None }; COUNT];
        for Said { rules, text, source } in &self.said {
            for rank in *rules {
                let Some(rule) = self.names.rule(*rank) else { continue };
                if rule.client.is_some() && rule.client != self.client {
                    continue;
                }
                let value = match text.and_then(|text| rule.form.read(text)) {
                    Ok(Some(value)) => value,
                    Ok(None) => continue,
                    Err(why) => {
                        told.drop(rule.gives, why);
                        continue;
                    }
                };
                let Some(slot) = best.get_mut(rule.gives.index()) else { continue };
                if slot.as_ref().is_none_or(|best| *rank < best.rank) {
                    *slot = Some(Best { rank: *rank, value, source: *source, rule: *rule });
                }
            }
        }
        let [session, agent, parent, turn, kind, client, end_user, tags @ ..] = best;
        told.lineage = lineage(session.as_ref(), agent.as_ref());
        let (agent, parent) = self.agents(session.as_ref(), agent, parent, &mut told);
        let tags = (0..).zip(tags).filter_map(|(number, tag)| {
            Some((self.names.tag(number)?.clone(), tag?.value.into_owned()))
        });
        let dimensions = Dimensions {
            session_source: session.as_ref().map(|session| session.source),
            session: session.and_then(|session| self.names.session(&session.value)),
            agent,
            parent_agent: parent,
            turn: turn.and_then(|turn| self.names.session(&turn.value)),
            kind: kind.and_then(|kind| request_kind(&kind.value)),
            client: client.map(|client| client.value.into_owned()).or_else(|| self.shown_client()),
            end_user: end_user.and_then(|user| self.names.end_user(&user.value)),
            tags: tags.collect(),
        };
        told.dimensions = dimensions.if_any();
        told
    }

    /// The agent and the one that has started it.
    fn agents(
        &self,
        session: Option<&Best<'_>>,
        agent: Option<Best<'_>>,
        parent: Option<Best<'_>>,
        told: &mut Told,
    ) -> (Option<String>, Option<String>) {
        let session = session.map(|session| &*session.value);
        let same = |one: &Option<Best<'_>>, other: Option<&str>| {
            one.as_ref().is_some_and(|one| Some(&*one.value) == other)
        };
        let is_own = agent.is_some() && same(&parent, agent.as_ref().map(|agent| &*agent.value));
        let parent = parent.filter(|_| !is_own);
        if is_own {
            told.drop(Dimension::ParentAgent, Dropped::OwnParent);
        }
        let shown = |one: Option<Best<'_>>| {
            let is_root = same(&one, session);
            let one = one?.value;
            // What a client says in words is no id.
            if is_root || matches!(&*one, ROOT | "subagent") {
                let word = if is_root { ROOT } else { &*one };
                return Some(word.to_owned());
            }
            self.names.session(&one)
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

impl Told {
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
