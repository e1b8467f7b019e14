//! Query strings: every parameter known, once, and readable, or a problem that names it.

use std::fmt;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use taximeter_billing::{Moment, Month, Period, Zone};
use taximeter_config::Config;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};

use super::problem::Refused;

/// How a time is written.
pub(super) const TIME: &str = "a date like 2026-11-20, or a time like 2026-11-20T16:00:00Z";
/// How a zone is written.
const ZONE: &str = "a name of the IANA time zone database, such as Europe/Berlin or UTC";
/// How a month is written.
const MONTH: &str = "a month like 2026-11";

/// The parameters of a request. `P` describes them, and has a text or nothing for each.
pub(super) struct Asked<P>(pub(super) P);

impl<S: Sync, P: DeserializeOwned + IntoParams> FromRequestParts<S> for Asked<P> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let known = P::into_params(|| Some(ParameterIn::Query));
        let known: Vec<_> = known.into_iter().map(|parameter| parameter.name).collect();
        // What is no parameter at all is one without a name.
        let Query(given) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|_| unknown("", &known))?;
        let mut seen = Vec::new();
        for (name, _) in &given {
            if !known.contains(name) {
                return Err(unknown(name, &known));
            }
            if seen.contains(&name) {
                return Err(Refused::Repeated { name: name.clone() });
            }
            seen.push(name);
        }
        let Query(read) = Query::try_from_uri(&parts.uri).map_err(|_| unknown("", &known))?;
        Ok(Self(read))
    }
}

/// Of a route that takes none.
#[derive(Debug, Deserialize)]
pub(super) struct Nothing {}

impl IntoParams for Nothing {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        Vec::new()
    }
}

fn unknown(name: &str, known: &[String]) -> Refused {
    let allowed = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Refused::Unknown { name: name.to_owned(), allowed }
}

/// Reads a parameter, where it is given.
///
/// Errors: what `read` refuses, with what is `allowed` in its place.
pub(super) fn read<T, E>(
    name: &'static str,
    given: Option<&str>,
    allowed: impl fmt::Display,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, Refused> {
    let refused =
        |got: &str| Refused::Parameter { name, got: got.to_owned(), allowed: allowed.to_string() };
    given.map(|text| read(text).map_err(|_| refused(text))).transpose()
}

/// A whole number from 1 to `max`, where it is given.
///
/// Errors: it is another.
pub(super) fn number(
    name: &'static str,
    given: Option<&str>,
    max: u32,
) -> Result<Option<u32>, Refused> {
    let allowed = format_args!("a whole number from 1 to {max}").to_string();
    read(name, given, allowed, |text| {
        text.parse().ok().filter(|number| (1..=max).contains(number)).ok_or(())
    })
}

/// A time, where it is given; of a day, its first instant in `zone`.
///
/// Errors: it is none, or the zone does not have it.
pub(super) fn time(
    name: &'static str,
    given: Option<&str>,
    zone: &Zone,
) -> Result<Option<Timestamp>, Refused> {
    let moment = read(name, given, TIME, str::parse::<Moment>)?;
    Ok(moment.map(|moment| moment.at(zone)).transpose()?)
}

/// Whose calendar: the one that is named, or that of the configuration's bills.
///
/// Errors: it is none.
pub(super) fn zone(given: Option<&str>, config: &Config) -> Result<Zone, Refused> {
    let named = read("zone", given, ZONE, str::parse)?;
    Ok(named.or_else(|| Zone::new(config.billing.zone.clone())).unwrap_or_default())
}

/// What is asked about when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends<'a> {
    /// Whose months and days.
    pub(super) zone: &'a Zone,
    pub(super) month: Option<&'a str>,
    pub(super) from: Option<&'a str>,
    pub(super) to: Option<&'a str>,
}

impl Ends<'_> {
    /// The period, if any end is given.
    ///
    /// Errors: one cannot be read, or they do not fit together.
    pub(super) fn period(self, now: Timestamp) -> Result<Option<Period>, Refused> {
        let zone = self.zone;
        let month = read("month", self.month, MONTH, |month| month.parse::<Month>()?.period(zone))?;
        let (from, to) = (time("from", self.from, zone)?, time("to", self.to, zone)?);
        Ok(match (month, from, to) {
            (None, None, None) => None,
            (Some(month), None, None) => Some(month),
            (None, Some(from), to) => Some(Period::new(from, to.unwrap_or(now))?),
            _ => return Err(Refused::Ends),
        })
    }

    /// The same; this month where no end is given.
    ///
    /// Errors: as `period`.
    pub(super) fn or_this_month(self, now: Timestamp) -> Result<Period, Refused> {
        match self.period(now)? {
            Some(period) => Ok(period),
            None => Ok(Period::month_of(now, self.zone)?),
        }
    }
}
