//! The rows of the table and of the configuration, arranged so that a request is read in one pass.

use std::sync::Arc;

use taximeter_request::Members;

use crate::client::{Client, of_header};
use crate::dimension::Dimension;
use crate::form::Form;
use crate::keep::{Hasher, Keep};
use crate::place::Place;
use crate::settings::{Settings, TAGS_MAX};
use crate::table::{At, CACHE_KEY, TABLE};
use crate::value;

/// The member of the body that is read for other purposes too.
const USER: &str = "user";

/// How many lists the headers are in.
const PLACES: usize = 128;

/// One row, whatever it came from. Its place in the list says how much it counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) client: Option<Client>,
    pub(crate) gives: Dimension,
    pub(crate) form: Form,
    /// Whether it names the session by the agent that has started this one.
    pub(crate) by_parent: bool,
}

/// The rules of a place, by their numbers.
pub(crate) type Rules = Vec<u16>;

/// A header that has rules.
#[derive(Debug)]
pub(crate) struct HeaderRules {
    name: Box<str>,
    rules: Rules,
    /// The client that sends it, if only one does.
    client: Option<Client>,
}

/// All names, for requests under one configuration.
#[derive(Debug)]
pub struct Names {
    rules: Vec<Rule>,
    headers: Vec<HeaderRules>,
    /// The headers by [`place`] of their names.
    by_place: [Vec<usize>; PLACES],
    /// Bit n: the name of one of them begins with the nth letter.
    letters: u32,
    /// The rules of `x-…-session-id`.
    session_header: Rules,
    /// The rules of members, by the number of their path.
    members: Vec<Rules>,
    user: Rules,
    /// What to note of a body, and the same without what only some clients mean.
    noted: [Arc<Members>; 2],
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
                At::SessionHeader => {
                    let number = names.add(rule);
                    names.session_header.extend(number);
                }
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
            headers: Vec::new(),
            by_place: [const { Vec::new() }; PLACES],
            // `x-…-session-id`
            letters: letter("x"),
            session_header: Rules::new(),
            members: Vec::new(),
            user: Rules::new(),
            noted: Default::default(),
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

    /// The number of a new rule. `None` if its dimension is left out.
    fn add(&mut self, rule: Rule) -> Option<u16> {
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
        if keep == Keep::Off && rule.form != Form::Nothing {
            return None;
        }
        let number = u16::try_from(self.rules.len()).ok()?;
        self.rules.push(rule);
        Some(number)
    }

    fn add_header(&mut self, name: &str, rule: Rule) {
        let Some(number) = self.add(rule) else { return };
        match self.headers.iter_mut().find(|header| *header.name == *name) {
            Some(header) => header.rules.push(number),
            None => {
                let (rules, client) = (vec![number], of_header(name));
                self.headers.push(HeaderRules { name: name.into(), rules, client });
            }
        }
    }

    fn add_member(&mut self, path: &str, rule: Rule, paths: &mut Vec<String>) {
        let Some(number) = self.add(rule) else { return };
        if path == USER {
            self.user.push(number);
            return;
        }
        match paths.iter().zip(&mut self.members).find(|(other, _)| *other == path) {
            Some((_, rules)) => rules.push(number),
            None => {
                paths.push(path.to_owned());
                self.members.push(vec![number]);
            }
        }
    }

    fn arrange(&mut self, paths: &[String], of_all: &[String]) {
        for (index, HeaderRules { name, .. }) in self.headers.iter().enumerate() {
            self.letters |= letter(name);
            if let Some(here) = self.by_place.get_mut(place(name)) {
                here.push(index);
            }
        }
        let numbered = || (0_u16..).zip(paths);
        let is_of_all = |path: &String| path != CACHE_KEY || of_all.contains(path);
        let all = Members::new(numbered().map(|(number, path)| (number, path.as_str())));
        let some = numbered().filter(|(_, path)| is_of_all(path));
        let some = Members::new(some.map(|(number, path)| (number, path.as_str())));
        self.noted = [Arc::new(all), Arc::new(some)];
    }

    /// The rules of a header, and the client that sends it if only one does.
    #[inline]
    pub(crate) fn header(&self, name: &str) -> Option<(&[u16], Option<Client>)> {
        if self.letters & letter(name) == 0 { None } else { self.named(name) }
    }

    fn named(&self, name: &str) -> Option<(&[u16], Option<Client>)> {
        if let Some(here) = self.by_place.get(place(name)) {
            for index in here {
                if let Some(HeaderRules { name: known, rules, client }) = self.headers.get(*index)
                    && **known == *name
                {
                    return Some((rules, *client));
                }
            }
        }
        let is_session = name.ends_with("-session-id") && name.starts_with("x-");
        is_session.then(|| (&*self.session_header, of_header(name)))
    }

    /// The rules of a member, by the number of its path.
    pub(crate) fn member(&self, path: u16) -> &[u16] {
        self.members.get(usize::from(path)).map(Vec::as_slice).unwrap_or_default()
    }

    /// The rules of `user`.
    pub(crate) fn user(&self) -> &[u16] {
        &self.user
    }

    pub(crate) fn rule(&self, number: u16) -> Option<&Rule> {
        self.rules.get(usize::from(number))
    }

    /// What to note of the body of a request of this client.
    pub(crate) const fn noted(&self, client: Option<Client>) -> &Arc<Members> {
        let [all, some] = &self.noted;
        match client {
            Some(Client::Codex | Client::Copilot) => all,
            _ => some,
        }
    }

    /// The name of the tag with this number.
    pub(crate) fn tag(&self, number: u8) -> Option<&String> {
        self.tags.get(usize::from(number))
    }

    /// What is kept of the name of a session, an agent or a turn; `None` if nothing is, or if it is
    /// no such name.
    #[must_use]
    pub fn session(&self, name: &str) -> Option<String> {
        self.checked(value::name(name).ok()??)
    }

    /// The same of a name that is one.
    pub(crate) fn checked(&self, name: &str) -> Option<String> {
        match (self.sessions, &self.hasher) {
            (Keep::Keep, _) => Some(name.to_owned()),
            (Keep::Hash, Some(hasher)) => Some(hasher.session(name)),
            (Keep::Hash, None) | (Keep::Off, _) => None,
        }
    }

    /// What is kept of an end user; `None` if nothing is.
    #[must_use]
    pub fn end_user(&self, name: &str) -> Option<String> {
        match (self.end_users, &self.hasher) {
            (Keep::Keep, _) => Some(name.to_owned()),
            (Keep::Hash, Some(hasher)) => Some(hasher.end_user(name)),
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

/// The bit of a name's first letter; of all that begin otherwise the same one.
#[inline]
fn letter(name: &str) -> u32 {
    let first = name.as_bytes().first().copied().unwrap_or_default();
    1 << if first.is_ascii_lowercase() { first - b'a' } else { 31 }
}
