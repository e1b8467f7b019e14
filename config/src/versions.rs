//! Values that change on a day: one value, or a list of versions in the order of their days.

use jiff::civil::Date;
use taximeter_yaml::{Kind, Node};

use crate::json_schema::{Described, Schema, required, without};
use crate::mistake::Invalid;
use crate::money::Percent;
use crate::reader::{Location, Optional, Read, Reader, Required, Spanned, keys};

/// A value with a first day.
pub(crate) trait Since {
    /// The first day; absent means from the beginning.
    fn since(&self) -> Optional<&Spanned<Date>>;
}

/// One value, or a list of versions in the order of their days.
#[derive(Debug)]
pub(crate) struct Versions<T> {
    items: Vec<(T, Location)>,
    /// Whether the list in the file is empty.
    empty: bool,
    location: Location,
}

impl<T: Read> Read for Versions<T> {
    fn read(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        let location = Location { at: node.at.clone(), path: path.to_owned() };
        let Kind::List(nodes) = &node.kind else {
            let items = vec![(T::read(node, path, reader)?, location.clone())];
            return Some(Self { items, empty: false, location });
        };
        let read = |(index, node): (usize, &Node)| {
            let path = format!("{path}[{index}]");
            let at = match &node.kind {
                Kind::Map(keys) => keys.first().map_or(&node.at, |(key, _)| &key.at),
                _ => &node.at,
            };
            Some((T::read(node, &path, reader)?, Location { at: at.clone(), path }))
        };
        let items = nodes.iter().enumerate().filter_map(read).collect();
        Some(Self { items, empty: nodes.is_empty(), location })
    }
}

impl<T: Since> Versions<T> {
    /// The versions with their first days. Reports days that are missing or out of order.
    pub(crate) fn dated(self, reader: &mut Reader<'_>) -> Vec<(Option<Date>, T)> {
        if self.empty {
            reader.report(&self.location, "is empty", "expected at least one version");
        }
        let mut newest: Option<Option<Date>> = None;
        let dated = self.items.into_iter().map(|(item, location)| {
            let since = match (item.since(), newest) {
                (Optional::Absent, Some(_)) => {
                    let problem = "has no `since`, but is not the first version";
                    reader.report(&location, problem, "add the key `since` to this map");
                    None
                }
                (Optional::Given(at), Some(Some(before))) if at.value <= before => {
                    let why = Invalid::new(
                        if at.value == before {
                            "is also the day of the version before it"
                        } else {
                            "is earlier than the day of the version before it"
                        },
                        "a later day: versions stand in the order of their days",
                    );
                    reader.invalid::<Date>(&at.location, &at.written, &why);
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
    RawDatedPercent {
        /// The percentage.
        rate: Required<Spanned<Percent>> = required().example("15 %"),
        /// The first day, UTC. A request has the percentage of the day of its admission.
        since: Optional<Spanned<Date>> = without("from the beginning").example("2026-12-01"),
    }
}

/// A percentage, with or without its first day.
#[derive(Debug)]
pub(crate) struct DatedPercent(pub(crate) RawDatedPercent);

impl Since for DatedPercent {
    fn since(&self) -> Optional<&Spanned<Date>> {
        self.0.since.as_ref()
    }
}

impl Read for DatedPercent {
    fn read(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self(match node.kind {
            Kind::Map(_) => RawDatedPercent::read(node, path, reader)?,
            _ => {
                let rate = Spanned::read(node, path, reader)?;
                RawDatedPercent { rate: Required(Some(rate)), since: Optional::Absent }
            }
        }))
    }
}

impl Described for DatedPercent {
    fn described() -> Schema {
        Schema::AnyOf(vec![Spanned::<Percent>::described(), RawDatedPercent::described()])
    }
}

impl<T: Described> Described for Versions<T> {
    fn described() -> Schema {
        T::described().one_or_more()
    }
}
