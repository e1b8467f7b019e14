//! What clients say of requests. Single requests have it; sums by the hour have not.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use taximeter_collections::Gather as _;
use taximeter_ledger::Dimensions;

/// One property that the client of a request says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientDimension {
    /// The session.
    Session,
    /// The agent.
    Agent,
    /// The client program.
    Client,
    /// The end user.
    EndUser,
    /// A tag, by name.
    Tag(String),
}

/// The properties that sums are split by. Without one, sums by the hour are enough.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SplitBy(Vec<ClientDimension>);

impl ClientDimension {
    /// All that the client of a request says.
    pub(crate) fn all(dimensions: &Dimensions) -> BTreeMap<Self, &str> {
        let fixed = [Self::Session, Self::Agent, Self::Client, Self::EndUser];
        let tags = dimensions.tags.keys().map(|name| Self::Tag(name.clone()));
        let value = |of: Self| of.value(dimensions).map(|value| (of, value));
        fixed.into_iter().chain(tags).filter_map(value).gather()
    }

    /// The value of a request. `None` if its client says none.
    #[must_use]
    pub fn value<'a>(&self, dimensions: &'a Dimensions) -> Option<&'a str> {
        match self {
            Self::Session => dimensions.session.as_deref(),
            Self::Agent => dimensions.agent.as_deref(),
            Self::Client => dimensions.client.as_deref(),
            Self::EndUser => dimensions.end_user.as_deref(),
            Self::Tag(name) => dimensions.tags.get(name).map(String::as_str),
        }
    }
}

/// Reads the name in arguments. Nothing is told of an error: whoever asks knows further names.
impl FromStr for ClientDimension {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Ok(match text {
            "session" => Self::Session,
            "agent" => Self::Agent,
            "client" => Self::Client,
            "end_user" => Self::EndUser,
            other => match other.strip_prefix("tag:") {
                Some(name) if !name.is_empty() => Self::Tag(name.to_owned()),
                _ => return Err(()),
            },
        })
    }
}

/// The name in arguments and as a column.
impl fmt::Display for ClientDimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "session",
            Self::Agent => "agent",
            Self::Client => "client",
            Self::EndUser => "end_user",
            Self::Tag(name) => return write!(f, "tag:{name}"),
        })
    }
}

impl Serialize for ClientDimension {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl SplitBy {
    /// No property.
    pub const NONE: &'static Self = &Self(Vec::new());

    /// Whether there is no property.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The properties, in order.
    #[must_use]
    pub fn dimensions(&self) -> &[ClientDimension] {
        &self.0
    }

    /// The values of a request, as far as its client says them.
    #[must_use]
    pub fn values(&self, dimensions: Option<&Dimensions>) -> BTreeMap<ClientDimension, String> {
        let Some(dimensions) = dimensions else { return BTreeMap::new() };
        let value = |dimension: &ClientDimension| {
            dimension.value(dimensions).map(|value| (dimension.clone(), value.to_owned()))
        };
        self.0.iter().filter_map(value).gather()
    }
}

impl FromIterator<ClientDimension> for SplitBy {
    fn from_iter<I: IntoIterator<Item = ClientDimension>>(dimensions: I) -> Self {
        Self(dimensions.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_property_has_the_value_that_the_client_says() {
        let dimensions = Dimensions {
            session: Some("s".to_owned()),
            agent: Some("a".to_owned()),
            client: Some("codex/0.169".to_owned()),
            end_user: Some("u".to_owned()),
            tags: BTreeMap::from([("team".to_owned(), "search".to_owned())]),
            ..Dimensions::default()
        };
        let all = ClientDimension::all(&dimensions);
        assert_eq!(
            serde_json::to_string(&all).unwrap(),
            r#"{"session":"s","agent":"a","client":"codex/0.169","end_user":"u","tag:team":"search"}"#
        );
        let names = ["session", "agent", "client", "end_user", "tag:team", "tag:none"];
        let by: SplitBy = names.iter().map(|name| name.parse().unwrap()).collect();
        let shown: Vec<_> = by.dimensions().iter().map(ToString::to_string).collect();
        assert_eq!(shown, names);
        let values: Vec<_> = by.values(Some(&dimensions)).into_values().collect();
        assert_eq!(values, ["s", "a", "codex/0.169", "u", "search"]);
        assert!(by.values(None).is_empty() && SplitBy::NONE.values(Some(&dimensions)).is_empty());
        for text in ["", "tag", "tag:", "turn", "Session"] {
            assert_eq!(text.parse::<ClientDimension>(), Err(()), "{text}");
        }
    }
}
