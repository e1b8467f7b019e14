//! What may change from one day to another: one value, or a list of them in the order of their days.

use jiff::civil::Date;
use serde_json::{Value as Json, json};

use crate::mistake::Invalid;
use crate::money::Percent;
use crate::reader::{At, List, Optional, Read, Reader, Required, Spot, keys};
use crate::shape::Described;
use crate::yaml::{Kind, Node};

/// What says from which day on it holds.
pub(crate) trait Since {
    /// The first day; absent is since ever.
    fn since(&self) -> Optional<&At<Date>>;
}

/// One value, or a list of them in the order of their days.
#[derive(Debug)]
pub(crate) struct Versions<T> {
    items: Vec<(T, Spot)>,
    /// Whether the file gives none, readable or not.
    empty: bool,
    spot: Spot,
}

impl<T: Read> Read for Versions<T> {
    fn read(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        let spot = Spot { at: node.at.clone(), path: path.to_owned() };
        let Kind::List(nodes) = &node.kind else {
            let items = vec![(T::read(node, path, reader)?, spot.clone())];
            return Some(Self { items, empty: false, spot });
        };
        let read = |(index, node): (usize, &Node)| {
            let path = format!("{path}[{index}]");
            let at = match &node.kind {
                Kind::Map(keys) => keys.first().map_or(&node.at, |(key, _)| &key.at),
                _ => &node.at,
            };
            Some((T::read(node, &path, reader)?, Spot { at: at.clone(), path }))
        };
        let items = nodes.iter().enumerate().filter_map(read).collect();
        Some(Self { items, empty: nodes.is_empty(), spot })
    }
}

impl<T: Since> Versions<T> {
    /// The versions with their first days; what is wrong with these is reported.
    pub(crate) fn dated(self, reader: &mut Reader<'_>) -> Vec<(Option<Date>, T)> {
        if self.empty {
            reader.report(&self.spot, "is empty", "expected at least one version");
        }
        let mut newest: Option<Option<Date>> = None;
        let dated = self.items.into_iter().map(|(item, spot)| {
            let since = match (item.since(), newest) {
                (Optional::Absent, Some(_)) => {
                    let problem = "has no first day, and is behind another version";
                    reader.report(&spot, problem, "expected a key `since` in this map");
                    None
                }
                (Optional::Given(at), Some(Some(before))) if at.value <= before => {
                    let why = Invalid::new(
                        if at.value == before {
                            "is the first day of the version before it"
                        } else {
                            "is before the first day of the version before it"
                        },
                        "a later day, for versions are in the order of their days",
                    );
                    reader.invalid::<Date>(&at.spot, &at.written, &why);
                    None
                }
                (since, _) => since.given().map(|at| at.value),
            };
            newest = Some(since.or(newest.flatten()));
            (since, item)
        });
        dated.collect()
    }
}

keys! {
    /// A percentage from a day on.
    RawShare {
        /// Such as `10 %`.
        rate: Required<At<Percent>>,
        /// First day, UTC, for what is admitted from it on. Default: since ever.
        since: Optional<At<Date>>,
    }
}

/// A percentage, alone or with its first day.
#[derive(Debug)]
pub(crate) struct Share(pub(crate) RawShare);

impl Since for Share {
    fn since(&self) -> Optional<&At<Date>> {
        self.0.since.as_ref()
    }
}

impl Read for Share {
    fn read(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self(match node.kind {
            Kind::Map(_) => RawShare::read(node, path, reader)?,
            _ => {
                let rate = At::read(node, path, reader)?;
                RawShare { rate: Required(Some(rate)), since: Optional::Absent }
            }
        }))
    }
}

impl Described for Share {
    fn described() -> Json {
        json!({ "anyOf": [At::<Percent>::described(), RawShare::described()] })
    }
}

impl<T: Described> Described for Versions<T> {
    fn described() -> Json {
        json!({ "anyOf": [T::described(), List::<T>::described()] })
    }
}
