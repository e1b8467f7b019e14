//! Query strings. A parameter that is unknown, repeated or not valid is an error that names it.

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

use super::problem::ApiError;

/// The form of a time.
pub(super) const TIME: &str = "a date like 2026-11-20, or a time like 2026-11-20T16:00:00Z";
/// The form of a time zone.
const ZONE: &str = "a name of the IANA time zone database, such as Europe/Berlin or UTC";
/// The form of a month.
const MONTH: &str = "a month like 2026-11";

/// The parameters of a request. `P` has an optional text for each of them.
pub(super) struct Params<P>(pub(super) P);

impl<S: Sync, P: DeserializeOwned + IntoParams> FromRequestParts<S> for Params<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let known = P::into_params(|| Some(ParameterIn::Query));
        let known: Vec<_> = known.into_iter().map(|parameter| parameter.name).collect();
        // A query string that cannot be read counts as a parameter without a name.
        let Query(given) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|_| unknown("", &known))?;
        let mut seen = Vec::new();
        for (name, _) in &given {
            if !known.contains(name) {
                return Err(unknown(name, &known));
            }
            if seen.contains(&name) {
                return Err(ApiError::Repeated { name: name.clone() });
            }
            seen.push(name);
        }
        let Query(read) = Query::try_from_uri(&parts.uri).map_err(|_| unknown("", &known))?;
        Ok(Self(read))
    }
}

/// The parameters of a route that has none.
#[derive(Debug, Deserialize)]
pub(super) struct NoParams {}

impl IntoParams for NoParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        Vec::new()
    }
}

fn unknown(name: &str, known: &[String]) -> ApiError {
    let allowed = if known.is_empty() { "none at all".to_owned() } else { known.join(", ") };
    ApiError::Unknown { name: name.to_owned(), allowed }
}

/// Reads a parameter if the request has it.
///
/// Errors: `read` refuses the text. The error names the values that are `allowed`.
pub(super) fn read<T, E>(
    name: &'static str,
    given: Option<&str>,
    allowed: impl fmt::Display,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, ApiError> {
    let refused =
        |got: &str| ApiError::Parameter { name, got: got.to_owned(), allowed: allowed.to_string() };
    given.map(|text| read(text).map_err(|_| refused(text))).transpose()
}

/// Reads a whole number from 1 to `max` if the request has it.
///
/// Errors: it is no such number.
pub(super) fn number(
    name: &'static str,
    given: Option<&str>,
    max: u32,
) -> Result<Option<u32>, ApiError> {
    let allowed = format_args!("a whole number from 1 to {max}").to_string();
    read(name, given, allowed, |text| {
        text.parse().ok().filter(|number| (1..=max).contains(number)).ok_or(())
    })
}

/// Reads a time if the request has it. A date means the start of that day in `zone`.
///
/// Errors: the text is no time, or the zone does not have it.
pub(super) fn time(
    name: &'static str,
    given: Option<&str>,
    zone: &Zone,
) -> Result<Option<Timestamp>, ApiError> {
    let moment = read(name, given, TIME, str::parse::<Moment>)?;
    Ok(moment.map(|moment| moment.at(zone)).transpose()?)
}

/// The time zone in the request, or else the `billing.zone` of the configuration.
///
/// Errors: the name is no time zone.
pub(super) fn zone(given: Option<&str>, config: &Config) -> Result<Zone, ApiError> {
    let named = read("zone", given, ZONE, str::parse)?;
    Ok(named.or_else(|| Zone::new(config.billing.zone.clone())).unwrap_or_default())
}

/// The parameters that choose a period.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeriodParams<'a> {
    /// The time zone of months and days.
    pub(super) zone: &'a Zone,
    pub(super) month: Option<&'a str>,
    pub(super) from: Option<&'a str>,
    pub(super) to: Option<&'a str>,
}

impl PeriodParams<'_> {
    /// The period, if the request has one of the parameters.
    ///
    /// Errors: a parameter is not valid, or they do not fit together.
    pub(super) fn period(self, now: Timestamp) -> Result<Option<Period>, ApiError> {
        let zone = self.zone;
        let month = read("month", self.month, MONTH, |month| month.parse::<Month>()?.period(zone))?;
        let month = month.map(|month| month.begun(now)).transpose()?;
        let (from, to) = (time("from", self.from, zone)?, time("to", self.to, zone)?);
        Ok(match (month, from, to) {
            (None, None, None) => None,
            (Some(month), None, None) => Some(month),
            (None, Some(from), to) => Some(Period::new(from, to.unwrap_or(now))?),
            _ => return Err(ApiError::PeriodParams),
        })
    }

    /// The period, or the current month if the request has none of the parameters.
    ///
    /// Errors: as [`period`](Self::period).
    pub(super) fn or_this_month(self, now: Timestamp) -> Result<Period, ApiError> {
        match self.period(now)? {
            Some(period) => Ok(period),
            None => Ok(Period::month_of(now, self.zone)?),
        }
    }
}
