//! The rows of the table and of the configuration, arranged so that a request is read in one pass.

use std::borrow::Cow;
use std::sync::Arc;

use taximeter_request::Members;

use crate::client::{Client, of_header};
use crate::dimension::Dimension;
use crate::form::Form;
use crate::keep::{Hasher, Keep};
use crate::place::Place;
use crate::settings::{Settings, TAGS_MAX};
use crate::table::{At, CACHE_KEY, CODEX_SESSION, TABLE};
use crate::value;

/// The member of the body that is read for other purposes too.
const USER: &str = "user";

/// How many lists the headers are in.
const PLACES: usize = 128;
/// How many kinds of first letters there are.
const LETTERS: usize = 32;

/// One row, whatever it came from. Its place in the list says how much it counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) client: Option<Client>,
    pub(crate) gives: Dimension,
    pub(crate) form: Form,
    /// Whether it names the session by the agent that has started this one.
    pub(crate) by_parent: bool,
}

/// The rules of a place: those that hold for each client, and for all others.
#[derive(Debug, Default)]
pub(crate) struct Rules([Vec<Ranked>; Client::COUNT + 1]);

/// A rule by its number, and what it gives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranked {
    pub(crate) rank: u16,
    /// The number of the dimension.
    pub(crate) slot: u8,
}

impl Rules {
    /// Those that hold for a client.
    pub(crate) fn of(&self, client: Option<Client>) -> &[Ranked] {
        let at = client.map_or(Client::COUNT, Client::number);
        self.0.get(at).map(Vec::as_slice).unwrap_or_default()
    }

    /// Adds the last one of `all`.
    fn add_last(&mut self, all: &[Rule]) {
        let Some((last, before)) = all.split_last() else { return };
        let Ok(rank) = u16::try_from(before.len()) else { return };
        // One that reads the same again says the same again.
        let is_same = |other: &Ranked| {
            let other = before.get(usize::from(other.rank));
            other.is_some_and(|other| (other.gives, other.form) == (last.gives, last.form))
        };
        for (of, rules) in self.0.iter_mut().enumerate() {
            let holds = last.client.is_none_or(|client| client.number() == of);
            if holds && !rules.iter().any(is_same) {
                rules.push(Ranked { rank, slot: last.gives.slot() });
            }
        }
    }
}

/// A header that has rules.
#[derive(Debug)]
pub(crate) struct HeaderRules {
    name: Box<str>,
    rules: Rules,
    /// The client that sends it, if only one does.
    client: Option<Client>,
}

/// What to note of a body.
#[derive(Debug, Default)]
struct Notes {
    /// All members that have rules.
    all: Arc<Members>,
    /// The same without what only some clients mean.
    usual: Arc<Members>,
    /// The same as all without what counts less than the session that Codex names in its head.
    codex: Arc<Members>,
    /// The rule by which Codex names a session in its head.
    codex_session: Option<u16>,
}

/// All names, for requests under one configuration.
#[derive(Debug)]
pub struct Names {
    rules: Vec<Rule>,
    /// The headers by [`place`] of their names.
    headers: [Vec<HeaderRules>; PLACES],
    /// Bit n of the one of a [`letter`]: a name that begins so has n bytes, or from 63 on that or more.
    lengths: [u64; LETTERS],
    /// The rules of `x-…-session-id`.
    session_header: Rules,
    /// The rules of members, by the number of their path.
    members: Vec<Rules>,
    user: Rules,
    noted: Notes,
    tags: Vec<String>,
    sessions: Keep,
    end_users: Keep,
    hasher: Option<Hasher>,
}

impl Names {
    /// The names of the table and of a configuration.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let mut names = Self::empty(settings);
        let lists = [
            (Dimension::Session, Form::Name, &settings.session),
            (Dimension::Agent, Form::Name, &settings.agent),
            (Dimension::ParentAgent, Form::Name, &settings.parent_agent),
            (Dimension::Turn, Form::Name, &settings.turn),
            (Dimension::Client, Form::Name, &settings.client),
            (Dimension::EndUser, Form::EndUser, &settings.end_user),
        ];
        let tags = (0..).zip(settings.tags.values().take(TAGS_MAX));
        let tags = tags.map(|(tag, places)| (Dimension::Tag(tag), Form::Tag, places));
        let (mut paths, mut of_all) = (Vec::new(), Vec::new());
        for (gives, form, places) in lists.into_iter().chain(tags) {
            for place in places {
                let rule = Rule { client: None, gives, form, by_parent: false };
                match place {
                    Place::Header(name) => names.add_header(name, rule),
                    Place::Body(path) => {
                        of_all.push(path.clone());
                        names.add_member(path, rule, &mut paths);
                    }
                }
            }
        }
        for row in TABLE {
            let by_parent = row.gives == Dimension::Session
                && row.at == At::Header(crate::table::PARENT_SESSION);
            let rule = Rule { client: row.client, gives: row.gives, form: row.form, by_parent };
            match row.at {
                At::Header(name) => names.add_header(name, rule),
                At::SessionHeader => names.add_session_header(rule),
                At::Body(path) => names.add_member(path, rule, &mut paths),
            }
        }
        names.arrange(&paths, &of_all);
        names
    }

    fn empty(settings: &Settings) -> Self {
        let without_key = |keep| match (keep, &settings.hasher) {
            (Keep::Hash, None) => Keep::Off,
            (keep, _) => keep,
        };
        Self {
            rules: Vec::new(),
            headers: [const { Vec::new() }; PLACES],
            lengths: [0; LETTERS],
            session_header: Rules::default(),
            members: Vec::new(),
            user: Rules::default(),
            noted: Notes::default(),
            tags: settings.tags.keys().take(TAGS_MAX).cloned().collect(),
            sessions: without_key(settings.sessions),
            end_users: without_key(settings.end_users),
            hasher: settings.hasher.clone(),
        }
    }

    /// What hashes names. `None` if none are hashed.
    #[must_use]
    pub const fn hasher(&self) -> Option<&Hasher> {
        self.hasher.as_ref()
    }

    /// Adds a rule to the list of all, unless its dimension is left out. Whether it did.
    fn add(&mut self, rule: Rule) -> bool {
        let keep = match rule.gives {
            Dimension::Session
            | Dimension::Agent
            | Dimension::ParentAgent
            | Dimension::Turn
            | Dimension::Kind => self.sessions,
            Dimension::EndUser => self.end_users,
            Dimension::Client | Dimension::Tag(_) => Keep::Keep,
        };
        // Headers that name a client are read in any case.
        let is_read = keep != Keep::Off || rule.form == Form::Nothing;
        self.rules.extend(Some(rule).filter(|_| is_read));
        is_read
    }

    fn add_header(&mut self, name: &str, rule: Rule) {
        if !self.add(rule) {
            return;
        }
        let Some(here) = self.headers.get_mut(place(name)) else { return };
        let known = here.iter().position(|header| *header.name == *name);
        let at = known.unwrap_or_else(|| {
            let (rules, client) = (Rules::default(), of_header(name));
            here.push(HeaderRules { name: name.into(), rules, client });
            here.len() - 1
        });
        if let Some(header) = here.get_mut(at) {
            header.rules.add_last(&self.rules);
        }
        if let Some(lengths) = self.lengths.get_mut(letter(name)) {
            *lengths |= bit(name.len());
        }
    }

    fn add_session_header(&mut self, rule: Rule) {
        if self.add(rule) {
            self.session_header.add_last(&self.rules);
        }
    }

    fn add_member(&mut self, path: &str, rule: Rule, paths: &mut Vec<String>) {
        if !self.add(rule) {
            return;
        }
        if path == USER {
            self.user.add_last(&self.rules);
            return;
        }
        let at = paths.iter().position(|other| other == path).unwrap_or_else(|| {
            paths.push(path.to_owned());
            self.members.push(Rules::default());
            paths.len() - 1
        });
        if let Some(rules) = self.members.get_mut(at) {
            rules.add_last(&self.rules);
        }
    }

    fn arrange(&mut self, paths: &[String], of_all: &[String]) {
        let codex_session = self.named(CODEX_SESSION).and_then(|header| {
            let rules = header.rules.of(Some(Client::Codex)).iter();
            rules.map(|rule| rule.rank).find(|rank| self.gives(*rank) == Some(Dimension::Session))
        });
        let counts_less = |number: u16| {
            let rules = self.member(number).map(|rules| rules.of(Some(Client::Codex)));
            codex_session.is_some_and(|first| {
                rules.unwrap_or_default().iter().all(|rule| {
                    rule.rank > first && self.gives(rule.rank) == Some(Dimension::Session)
                })
            })
        };
        let is_of_all = |path: &String| path != CACHE_KEY || of_all.contains(path);
        let noted = |is_noted: &dyn Fn(u16, &String) -> bool| {
            let paths = (0_u16..).zip(paths).filter(|(number, path)| is_noted(*number, path));
            Arc::new(Members::new(paths.map(|(number, path)| (number, path.as_str()))))
        };
        self.noted = Notes {
            all: noted(&|_, _| true),
            usual: noted(&|_, path| is_of_all(path)),
            codex: noted(&|number, _| !counts_less(number)),
            codex_session,
        };
    }

    /// The dimension that a rule gives.
    fn gives(&self, rank: u16) -> Option<Dimension> {
        self.rule(rank).map(|rule| rule.gives)
    }

    /// The rules of a header, and the client that sends it if only one does.
    #[inline]
    pub(crate) fn header(&self, name: &str) -> Option<(&Rules, Option<Client>)> {
        let lengths = self.lengths.get(letter(name)).copied().unwrap_or_default();
        if lengths & bit(name.len()) != 0
            && let Some(header) = self.named(name)
        {
            return Some((&header.rules, header.client));
        }
        let is_session = name.starts_with("x-") && name.ends_with("-session-id");
        is_session.then(|| (&self.session_header, of_header(name)))
    }

    fn named(&self, name: &str) -> Option<&HeaderRules> {
        self.headers.get(place(name))?.iter().find(|header| *header.name == *name)
    }

    /// The rules of a member, by the number of its path.
    pub(crate) fn member(&self, path: u16) -> Option<&Rules> {
        self.members.get(usize::from(path))
    }

    /// The rules of `user`, if it has any.
    pub(crate) fn user(&self) -> Option<&Rules> {
        Some(&self.user).filter(|user| !user.of(None).is_empty())
    }

    pub(crate) fn rule(&self, number: u16) -> Option<&Rule> {
        self.rules.get(usize::from(number))
    }

    /// What to note of the body of a request of this client. `names_session` says whether its head has a
    /// good name by a rule.
    pub(crate) fn noted(
        &self,
        client: Option<Client>,
        names_session: impl Fn(u16) -> bool,
    ) -> &Arc<Members> {
        let Notes { all, usual, codex, codex_session } = &self.noted;
        match client {
            Some(Client::Codex) if codex_session.is_some_and(names_session) => codex,
            Some(Client::Codex | Client::Copilot) => all,
            _ => usual,
        }
    }

    /// The names of tags, in the order of their numbers.
    pub(crate) fn tags(&self) -> &[String] {
        &self.tags
    }

    /// What is kept of the name of a session, an agent or a turn; `None` if nothing is, or if it is
    /// no such name.
    #[must_use]
    pub fn session(&self, name: &str) -> Option<String> {
        self.checked(value::name(name).ok()??.into())
    }

    /// The same of a name that is one.
    pub(crate) fn checked(&self, name: Cow<'_, str>) -> Option<String> {
        match (self.sessions, &self.hasher) {
            (Keep::Keep, _) => Some(name.into_owned()),
            (Keep::Hash, Some(hasher)) => Some(hasher.session(&name)),
            (Keep::Hash, None) | (Keep::Off, _) => None,
        }
    }

    /// What is kept of an end user; `None` if nothing is.
    pub(crate) fn end_user(&self, name: Cow<'_, str>) -> Option<String> {
        match (self.end_users, &self.hasher) {
            (Keep::Keep, _) => Some(name.into_owned()),
            (Keep::Hash, Some(hasher)) => Some(hasher.end_user(&name)),
            (Keep::Hash, None) | (Keep::Off, _) => None,
        }
    }
}

/// Where a header is looked for: by its length and its last bytes, in which names of one length differ
/// most.
#[inline]
fn place(name: &str) -> usize {
    let last = name.as_bytes().last_chunk::<4>().copied().unwrap_or_default();
    let [a, b, c, d] = last.map(usize::from);
    (a + 3 * b + 9 * c + 27 * d + 81 * name.len()) % PLACES
}

/// The number of a name's first letter. Others may have the same one.
#[inline]
fn letter(name: &str) -> usize {
    usize::from(name.as_bytes().first().copied().unwrap_or_default()) % LETTERS
}

/// The bit of a name's length.
#[inline]
const fn bit(length: usize) -> u64 {
    1 << if length < 63 { length } else { 63 }
}
