//! The dimensions that split a bill into lines.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use crate::client_dimension::{ClientDimension, SplitBy};
use crate::hours::HourKey;
use crate::period::Month;
use crate::zone::{Unit, Zone};

/// One property of requests that can split a bill.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// The tenant that pays.
    Tenant,
    /// The model of the answer, or of the request if there was no answer.
    Model,
    /// `gen_ai.provider.name`.
    Provider,
    /// Name of the upstream.
    Upstream,
    /// `gen_ai.operation.name`.
    Operation,
    /// Route template.
    Route,
    /// API key of the tenant.
    Key,
    /// Month of admission, in the bill's zone.
    Month,
    /// Day of admission, in the bill's zone.
    Day,
    /// Hour of admission, in the bill's zone.
    Hour,
    /// A label of the key, by name.
    Label(String),
    /// What the client says.
    FromClient(ClientDimension),
}

/// What the requests of one line have in common: the first instant if grouped by time, and the
/// values of the dimensions.
pub(crate) type GroupKey = (Option<Timestamp>, Vec<Option<String>>);

/// The dimensions of a bill, in the order of its columns. Each occurs once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grouping(Vec<Dimension>);

/// Why a text is not a grouping.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// A name that is not a dimension.
    #[error(
        "cannot group by {0:?}; choose from tenant, model, provider, upstream, operation, route, \
         key, month, day, hour, label:NAME, session, agent, client, end_user and tag:NAME"
    )]
    Unknown(String),
    /// A dimension that is named twice.
    #[error("{0} is named twice; name each only once")]
    Repeated(Dimension),
}

impl Dimension {
    /// The unit of time of its values, if they are times.
    const fn unit(&self) -> Option<Unit> {
        match self {
            Self::Hour => Some(Unit::Hour),
            Self::Day => Some(Unit::Day),
            Self::Month => Some(Unit::Month),
            _ => None,
        }
    }

    /// The value for the requests of `key`. `None` if they have none.
    fn value(&self, key: &HourKey, zone: &Zone) -> Option<String> {
        match self {
            Self::Tenant => Some(key.tenant.clone()),
            Self::Model => key.model.clone(),
            Self::Provider => Some(key.provider.clone()),
            Self::Upstream => Some(key.upstream.clone()),
            Self::Operation => Some(key.operation.clone()),
            Self::Route => Some(key.route.clone()),
            Self::Key => key.key_id.clone(),
            Self::Month => Some(Month::of(key.hour, zone).to_string()),
            Self::Day => Some(zone.date_of(key.hour).to_string()),
            Self::Hour => Some(zone.minute(zone.begun(Unit::Hour, key.hour))),
            Self::Label(name) => key.labels.get(name).cloned(),
            Self::FromClient(dimension) => key.dimensions.get(dimension).cloned(),
        }
    }
}

impl FromStr for Dimension {
    type Err = GroupError;

    fn from_str(text: &str) -> Result<Self, GroupError> {
        Ok(match text {
            "tenant" => Self::Tenant,
            "model" => Self::Model,
            "provider" => Self::Provider,
            "upstream" => Self::Upstream,
            "operation" => Self::Operation,
            "route" => Self::Route,
            "key" => Self::Key,
            "month" => Self::Month,
            "day" => Self::Day,
            "hour" => Self::Hour,
            other => match (other.strip_prefix("label:"), other.parse()) {
                (Some(name), _) if !name.is_empty() => Self::Label(name.to_owned()),
                (_, Ok(dimension)) => Self::FromClient(dimension),
                _ => return Err(GroupError::Unknown(other.to_owned())),
            },
        })
    }
}

/// The name in arguments and as a column.
impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tenant => "tenant",
            Self::Model => "model",
            Self::Provider => "provider",
            Self::Upstream => "upstream",
            Self::Operation => "operation",
            Self::Route => "route",
            Self::Key => "key",
            Self::Month => "month",
            Self::Day => "day",
            Self::Hour => "hour",
            Self::Label(name) => return write!(f, "label:{name}"),
            Self::FromClient(dimension) => return dimension.fmt(f),
        })
    }
}

impl Grouping {
    /// No dimension: one line for all requests.
    #[must_use]
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// One dimension.
    #[must_use]
    pub fn by(dimension: Dimension) -> Self {
        Self(vec![dimension])
    }

    /// The line of the requests of `key`, by the calendar of `zone`.
    pub(crate) fn group_key(&self, key: &HourKey, zone: &Zone) -> GroupKey {
        let start = self.unit().map(|unit| zone.begun(unit, key.hour));
        (start, self.0.iter().map(|dimension| dimension.value(key, zone)).collect())
    }

    /// The dimensions with these names, in that order.
    ///
    /// Errors: as [`GroupError`] says.
    pub fn named<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Result<Self, GroupError> {
        let mut dimensions = Vec::new();
        for name in names {
            let dimension = name.as_ref().parse()?;
            if dimensions.contains(&dimension) {
                return Err(GroupError::Repeated(dimension));
            }
            dimensions.push(dimension);
        }
        Ok(Self(dimensions))
    }

    /// The names in a text such as `tenant,model`. Spaces around a name do not count. A backslash
    /// before a comma, a space or a backslash makes that character a part of the name.
    #[must_use]
    pub fn names(text: &str) -> Vec<String> {
        let (mut names, mut name) = (Vec::new(), String::new());
        // The length of `name` without the spaces at its end.
        let mut length = 0;
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            let escaped = if character == '\\' { characters.next() } else { None };
            match escaped.unwrap_or(character) {
                ',' if escaped.is_none() => {
                    name.truncate(length);
                    names.push(std::mem::take(&mut name));
                    length = 0;
                }
                space if escaped.is_none() && space.is_whitespace() => {
                    if length > 0 {
                        name.push(space);
                    }
                }
                other => {
                    name.push(other);
                    length = name.len();
                }
            }
        }
        name.truncate(length);
        names.push(name);
        names
    }

    /// The dimensions, in order.
    #[must_use]
    pub fn dimensions(&self) -> &[Dimension] {
        &self.0
    }

    /// What clients say, among the dimensions.
    #[must_use]
    pub fn split_by(&self) -> SplitBy {
        let from_client = |dimension: &Dimension| match dimension {
            Dimension::FromClient(dimension) => Some(dimension.clone()),
            _ => None,
        };
        self.0.iter().filter_map(from_client).collect()
    }

    /// The shortest unit of time among the dimensions. `None` if there is none.
    #[must_use]
    pub fn unit(&self) -> Option<Unit> {
        self.0.iter().filter_map(Dimension::unit).min()
    }
}

/// By tenant and model.
impl Default for Grouping {
    fn default() -> Self {
        Self(vec![Dimension::Tenant, Dimension::Model])
    }
}

/// Reads names with commas between them, `tenant,model`. See [`Grouping::names`].
impl FromStr for Grouping {
    type Err = GroupError;

    fn from_str(text: &str) -> Result<Self, GroupError> {
        Self::named(Self::names(text))
    }
}

/// A text that reads back as the same grouping.
impl fmt::Display for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, dimension) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            let name = dimension.to_string();
            for (at, character) in name.char_indices() {
                let is_last = at + character.len_utf8() == name.len();
                if matches!(character, ',' | '\\') || (is_last && character.is_whitespace()) {
                    f.write_str("\\")?;
                }
                write!(f, "{character}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_as_itself() {
        let all = "tenant,model,provider,upstream,operation,route,key,month,day,hour,\
                   label:team,label:a:b,session,agent,client,end_user,tag:team,tag:a:b";
        assert_eq!(all.parse::<Grouping>().unwrap().to_string(), all);
        assert_eq!(Grouping::default().to_string(), "tenant,model");
    }

    #[test]
    fn a_label_may_have_any_name() {
        for name in ["a,b", " team ", "\\", "a\\,day", "Größe, in cm", "\u{a0}x"] {
            let by = Grouping::by(Dimension::Label(name.to_owned()));
            assert_eq!(by.to_string().parse(), Ok(by), "{name:?}");
        }
        let spaced = " tenant , label:a\\,b c ,day ".parse::<Grouping>().unwrap();
        assert_eq!(spaced.to_string(), "tenant,label:a\\,b c,day");
    }

    #[test]
    fn a_name_that_is_unknown_empty_or_repeated_is_refused() {
        for text in ["", "tenant,", "tennant", "label:", "Tenant", "tag:", "tag", "turn"] {
            assert!(matches!(text.parse::<Grouping>(), Err(GroupError::Unknown(_))), "{text}");
        }
        let twice = "day,label:a,day".parse::<Grouping>();
        assert_eq!(twice, Err(GroupError::Repeated(Dimension::Day)));
    }
}
