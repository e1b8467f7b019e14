//! Finds the route of a request. A path that a server may take for a route is that route, however it
//! is written, so that no spelling leaves the ledger.

mod route;
mod table;

use http::Method;
use taximeter_request::RequestFault;

use super::escape::unescape;
use super::sockets;
use super::spellings::{Reading, readings};
use crate::journey::refuse::{Refusal, shown};
use route::{ANY_METHODS, Allowed};
use table::PASSED_THROUGH;

pub(crate) use route::Shows;
pub use route::{Billing, Route};

/// Longest name of a model in a path, in bytes.
const MODEL_BYTES_MAX: usize = 256;
/// Serves in plain requests what others serve over WebSockets.
const INSTEAD_OF_SOCKET: &str = "/v1/responses";

/// A route, and the model if its path names one.
pub(super) type Found = (&'static Route, Option<String>);

/// The route of a request, and the model if its path names one.
///
/// Of the ways in which the path may be read, one that is on the ledger wins.
///
/// Errors: `UnknownRoute`, also where two readings are on the ledger and differ, or one leads above the
/// root; `SocketRoute`, `MethodNotAllowed`; `InvalidValue` where the model's name is none.
pub(super) fn find(method: &Method, path: &str, passthrough: bool) -> Result<Found, Refusal> {
    let mut is_known = false;
    let mut metered: Option<Found> = None;
    let mut other: Option<Found> = None;
    let Some(readings) = readings(path) else {
        return Err(Refusal::UnknownRoute { path: shown(path) });
    };
    for reading in readings {
        let Some(found) = look(method, &reading, &mut is_known)? else { continue };
        if found.0.billing != Billing::Ledger {
            other.get_or_insert(found);
        } else if metered.as_ref().is_some_and(|first| *first != found) {
            return Err(Refusal::UnknownRoute { path: shown(path) });
        } else {
            metered = Some(found);
        }
    }
    if let Some(found) = metered.or(other) {
        return Ok(found);
    }
    let may_pass = passthrough && path.starts_with('/');
    if may_pass && Allowed::Any.takes(method) {
        return Ok((&PASSED_THROUGH, None));
    }
    if is_known || may_pass {
        let allow = allowed(path, passthrough).unwrap_or(ANY_METHODS);
        return Err(Refusal::MethodNotAllowed { allow });
    }
    if sockets::need(path) {
        return Err(Refusal::SocketRoute { path: shown(path), instead: INSTEAD_OF_SOCKET });
    }
    Err(Refusal::UnknownRoute { path: shown(path) })
}

/// The row that one reading of a path fits. Says in `is_known` where only the method does not fit.
fn look(
    method: &Method,
    reading: &Reading<'_>,
    is_known: &mut bool,
) -> Result<Option<Found>, Refusal> {
    for route in table::rows(&reading.path) {
        let Some(parameter) = route.parameter(&reading.path) else { continue };
        if route.method.takes(method) {
            let named = route.names_model_in_path().then(|| model_of(parameter, reading));
            return Ok(Some((route, named.transpose()?)));
        }
        *is_known = true;
    }
    Ok(None)
}

/// What serves what a WebSocket at `path` would: the route there that takes a POST, or else OpenAI's.
pub(super) fn instead_of_socket(path: &str) -> &'static str {
    let is_posted = |route: &&Route| {
        route.method == Allowed::Post
            && route.billing == Billing::Ledger
            && route.parameter(path).is_some()
    };
    table::rows(path).find(is_posted).map_or(INSTEAD_OF_SOCKET, |route| route.template)
}

/// The model that a segment of a path names. What stands for a `:` or a `/` in it is undone.
fn model_of(segment: &str, reading: &Reading<'_>) -> Result<String, Refusal> {
    let fits =
        |model: &String| model.len() <= MODEL_BYTES_MAX && !model.chars().any(char::is_control);
    let what = "a text of at most 256 bytes without control characters";
    let fault = RequestFault::InvalidValue { param: "model", what };
    let name = if reading.is_decoded { segment.as_bytes().to_vec() } else { unescape(segment) };
    String::from_utf8(name).ok().filter(fits).ok_or(fault.into())
}

/// The methods of a route that we know, or of all routes together (`*`); `None` for other paths.
pub(super) fn allowed(path: &str, passthrough: bool) -> Option<&'static str> {
    if path == "*" {
        return Some(header(|method| table::all().any(|route| route.method == method)));
    }
    readings(path)?.find_map(|reading| {
        let fits = |route: &&Route| route.parameter(&reading.path).is_some();
        let rows = || table::rows(&reading.path).filter(fits);
        rows().next()?;
        // What the route does not take goes to the engine.
        let all = passthrough.then_some(ANY_METHODS);
        Some(all.unwrap_or_else(|| header(|method| rows().any(|route| route.method == method))))
    })
}

/// The `allow` header of a path that takes what `allows` says.
fn header(allows: impl Fn(Allowed) -> bool) -> &'static str {
    if allows(Allowed::Head) && !allows(Allowed::Get) {
        return "HEAD, POST, OPTIONS";
    }
    match (allows(Allowed::Get), allows(Allowed::Post), allows(Allowed::Delete)) {
        (true, true, true) => "GET, HEAD, POST, DELETE, OPTIONS",
        (true, true, false) => "GET, HEAD, POST, OPTIONS",
        (true, false, true) => "GET, HEAD, DELETE, OPTIONS",
        (true, false, false) => "GET, HEAD, OPTIONS",
        (false, ..) => "POST, OPTIONS",
    }
}

#[cfg(test)]
mod tests;
