//! Reads the head of an answer.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use taximeter_meter::Meter;

/// Tells a meter what the head of an answer says.
pub(super) fn read_head(meter: &mut Meter, status: u16, headers: &HeaderMap) {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    meter.on_head(status, content_type, codings(headers).as_deref());
    meter.on_headers(headers.iter().filter_map(readable));
}

/// A header whose value is text.
fn readable<'h>((name, value): (&'h HeaderName, &'h HeaderValue)) -> Option<(&'h str, &'h str)> {
    Some((name.as_str(), value.to_str().ok()?))
}

/// All codings of an answer, in the order in which they were applied.
pub(super) fn codings(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(CONTENT_ENCODING).iter();
    // A coding that is no text is none that we know.
    lines
        .map(|line| line.to_str().unwrap_or("unknown").to_owned())
        .reduce(|all, line| all + "," + &line)
}
