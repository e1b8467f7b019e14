//! Which requests are wanted, by what their clients say.

use taximeter_ledger::Dimensions;

use crate::keep::Hasher;

/// What a request must have. `None` asks for nothing.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The session.
    pub session: Option<String>,
    /// The agent.
    pub agent: Option<String>,
    /// The client: its product and version, or the product alone.
    pub client: Option<String>,
    /// The end user.
    pub end_user: Option<String>,
    /// A tag: its name, `=` and its value.
    pub tag: Option<String>,
}

/// The same, with the hashes of names that are hashed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    session: Option<Names>,
    agent: Option<Names>,
    client: Option<String>,
    end_user: Option<Names>,
    tag: Option<String>,
}

/// A name as it was given, and its hash: records of an earlier configuration may have the other one.
type Names = Vec<String>;

impl Filter {
    /// The form of a tag.
    pub const TAG: &'static str = "a tag's name, = and its value, such as team=search";

    /// Whether a text is a tag.
    #[must_use]
    pub fn is_tag(text: &str) -> bool {
        text.split_once('=').is_some_and(|(name, _)| !name.is_empty())
    }

    /// The filter that asks for this. With a `hasher`, a name stands for its hash as well.
    #[must_use]
    pub fn new(asked: Asked, hasher: Option<&Hasher>) -> Self {
        let both = |name: String, hash: fn(&Hasher, &str) -> String| {
            let hash = hasher.map(|hasher| hash(hasher, &name));
            [name].into_iter().chain(hash).collect::<Names>()
        };
        Self {
            session: asked.session.map(|name| both(name, Hasher::session)),
            agent: asked.agent.map(|name| both(name, Hasher::session)),
            client: asked.client,
            end_user: asked.end_user.map(|name| both(name, Hasher::end_user)),
            tag: asked.tag,
        }
    }

    /// Whether it asks for nothing, so that every request is wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The names that the session may have. `None` if it asks for none.
    #[must_use]
    pub fn sessions(&self) -> Option<&[String]> {
        self.session.as_deref()
    }

    /// Whether a request is wanted of which its client says this.
    #[must_use]
    pub fn matches(&self, dimensions: Option<&Dimensions>) -> bool {
        let Some(dimensions) = dimensions else { return self.is_empty() };
        let is_one_of = |names: &Option<Names>, value: &Option<String>| {
            names.as_ref().is_none_or(|names| value.as_ref().is_some_and(|it| names.contains(it)))
        };
        is_one_of(&self.session, &dimensions.session)
            && is_one_of(&self.agent, &dimensions.agent)
            && is_one_of(&self.end_user, &dimensions.end_user)
            && self
                .client
                .as_ref()
                .is_none_or(|client| is_client(client, dimensions.client.as_deref()))
            && self.tag.as_ref().is_none_or(|tag| has_tag(dimensions, tag))
    }
}

/// Whether a client is the one that is asked for, in whatever version unless that is asked for.
fn is_client(asked: &str, client: Option<&str>) -> bool {
    let rest = client.and_then(|client| client.strip_prefix(asked));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a request has a tag. The name of a tag may have an `=` as well, so the whole text is
/// compared.
fn has_tag(dimensions: &Dimensions, tag: &str) -> bool {
    dimensions.tags.iter().any(|(name, value)| {
        tag.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('=')) == Some(value)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn sample() -> Dimensions {
        Dimensions {
            session: Some("s-1".to_owned()),
            agent: Some("a-1".to_owned()),
            client: Some("codex/0.169".to_owned()),
            end_user: Some("anna".to_owned()),
            tags: BTreeMap::from([("team=a".to_owned(), "b".to_owned())]),
            ..Dimensions::default()
        }
    }

    fn filter(name: &str, value: &str) -> Filter {
        let (mut asked, value) = (Asked::default(), Some(value.to_owned()));
        *match name {
            "session" => &mut asked.session,
            "agent" => &mut asked.agent,
            "client" => &mut asked.client,
            "end_user" => &mut asked.end_user,
            _ => &mut asked.tag,
        } = value;
        Filter::new(asked, Hasher::new(b"secret").ok().as_ref())
    }

    #[test]
    fn each_filter_takes_its_value_and_no_other() {
        let (dimensions, nothing) = (sample(), Dimensions::default());
        for (name, good, bad) in [
            ("session", &["s-1"][..], &["s-2", "s", ""][..]),
            ("agent", &["a-1"], &["s-1"]),
            ("client", &["codex", "codex/0.169"], &["cod", "codex/0.16", "codex/0.169/1", ""]),
            ("end_user", &["anna"], &["ann"]),
            ("tag", &["team=a=b"], &["team=a", "team=a=", "b", "team=b"]),
        ] {
            for value in good {
                assert!(filter(name, value).matches(Some(&dimensions)), "{name} {value}");
            }
            for value in bad {
                assert!(!filter(name, value).matches(Some(&dimensions)), "{name} {value}");
            }
            assert!(!filter(name, good[0]).matches(Some(&nothing)));
            assert!(!filter(name, good[0]).matches(None) && !filter(name, good[0]).is_empty());
        }
        assert!(Filter::default().matches(Some(&dimensions)) && Filter::default().matches(None));
    }

    #[test]
    fn a_plain_name_stands_for_its_hash_and_a_hash_for_itself() {
        let hasher = Hasher::new(b"secret").unwrap();
        let hashed = Dimensions {
            session: Some(hasher.session("s-1")),
            agent: Some(hasher.session("a-1")),
            end_user: Some(hasher.end_user("anna")),
            ..Dimensions::default()
        };
        for (name, plain, hash) in [
            ("session", "s-1", &hashed.session),
            ("agent", "a-1", &hashed.agent),
            ("end_user", "anna", &hashed.end_user),
        ] {
            let hash = hash.as_deref().unwrap();
            assert!(filter(name, plain).matches(Some(&hashed)), "{name}");
            assert!(filter(name, hash).matches(Some(&hashed)), "{name}");
            assert!(!filter(name, "other").matches(Some(&hashed)), "{name}");
        }
        let asked = Asked { end_user: Some("anna".to_owned()), ..Asked::default() };
        assert!(!Filter::new(asked, None).matches(Some(&hashed)));
    }

    #[test]
    fn all_that_is_asked_for_must_be_there() {
        let both = |agent: &str| Asked {
            session: Some("s-1".to_owned()),
            agent: Some(agent.to_owned()),
            ..Asked::default()
        };
        assert!(Filter::new(both("a-1"), None).matches(Some(&sample())));
        assert!(!Filter::new(both("a-2"), None).matches(Some(&sample())));
    }

    #[test]
    fn a_tag_has_a_name_and_a_value() {
        for (text, is_tag) in
            [("a=b", true), ("a=", true), ("a=b=c", true), ("=b", false), ("a", false)]
        {
            assert_eq!(Filter::is_tag(text), is_tag, "{text}");
        }
    }
}
