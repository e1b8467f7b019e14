//! Moves API keys out of the query to the header: those that Google's clients write there (`?key=`),
//! and those of this gateway wherever they stand. A header can be removed cleanly, and a target is
//! written to logs.

use http::header::HeaderValue;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, Uri};
use taximeter_net::fields::X_GOOG_API_KEY;

use super::credential::has_key_in;
use super::escape::unescape;
use crate::journey::refuse::Refusal;

/// The parameter, by any spelling that a server would take for it.
const KEY: &[u8] = b"key";

/// How Google's paths begin that are not among our routes.
const GOOGLES_PATHS: [&str; 4] = ["/v1beta/", "/v1alpha/", "/upload/v1", "/download/v1"];

/// Takes each key out of the query of `head`, and adds it to the header unless it is there. `key` is
/// one on Google's own routes, and elsewhere if it `is_ours`.
///
/// Errors: `InvalidKey`.
pub(super) fn move_to_header(
    head: &mut Parts,
    is_googles_route: bool,
    is_ours: impl Fn(&[u8]) -> bool,
) -> Result<(), Refusal> {
    let Some(query) = head.uri.query() else { return Ok(()) };
    let path = head.uri.path();
    let is_googles = is_googles_route || GOOGLES_PATHS.iter().any(|start| path.starts_with(start));
    let is_key = |parameter: &&str| {
        let (name, value) = split(parameter);
        let value = unescape(value);
        unescape(name) == KEY && (is_googles || is_ours(&value)) || has_key_in(&value)
    };
    let (keys, others): (Vec<&str>, Vec<&str>) = query.split('&').partition(is_key);
    if keys.is_empty() {
        return Ok(());
    }
    for key in &keys {
        add(&mut head.headers, &unescape(split(key).1))?;
    }
    let target = match others.join("&") {
        others if others.is_empty() => head.uri.path().to_owned(),
        others => format!("{}?{others}", head.uri.path()),
    };
    let mut parts = std::mem::take(&mut head.uri).into_parts();
    // A target without some of its parameters is one, as it was with them.
    parts.path_and_query = PathAndQuery::try_from(target).ok();
    head.uri = Uri::from_parts(parts).unwrap_or_default();
    Ok(())
}

fn add(headers: &mut HeaderMap, key: &[u8]) -> Result<(), Refusal> {
    let mut key = HeaderValue::from_bytes(key).map_err(|_| Refusal::InvalidKey)?;
    key.set_sensitive(true);
    if !headers.get_all(&X_GOOG_API_KEY).iter().any(|other| *other == key) {
        headers.append(&X_GOOG_API_KEY, key);
    }
    Ok(())
}

/// Name and value.
fn split(parameter: &str) -> (&str, &str) {
    parameter.split_once('=').unwrap_or((parameter, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The target that is left, and the keys in the header.
    fn moved(target: &str, header: Option<&str>) -> Result<(String, Vec<String>), Refusal> {
        moved_from(target, header, true)
    }

    fn moved_from(
        target: &str,
        header: Option<&str>,
        is_googles: bool,
    ) -> Result<(String, Vec<String>), Refusal> {
        let mut request = http::Request::builder().uri(target);
        if let Some(key) = header {
            request = request.header(&X_GOOG_API_KEY, key);
        }
        let mut head = request.body(()).unwrap().into_parts().0;
        move_to_header(&mut head, is_googles, |key| key == b"ours")?;
        let keys = head.headers.get_all(&X_GOOG_API_KEY).iter();
        let keys = keys.map(|key| key.to_str().unwrap().to_owned()).collect();
        Ok((head.uri.to_string(), keys))
    }

    #[test]
    fn every_key_leaves_the_query_and_nothing_else_does() {
        for (target, left, keys) in [
            ("/m:g?key=a", "/m:g", &["a"][..]),
            ("/m:g?alt=sse&key=a&x=%20y", "/m:g?alt=sse&x=%20y", &["a"]),
            ("/m:g?k%65y=a%2db&alt=sse", "/m:g?alt=sse", &["a-b"]),
            ("/m:g?key=a&key=a", "/m:g", &["a"]),
            ("/m:g?key=a&key=b", "/m:g", &["a", "b"]),
            ("/m:g?key", "/m:g", &[""]),
            ("/m:g?keys=a&Key=b&x=key", "/m:g?keys=a&Key=b&x=key", &[]),
            ("/m:g?", "/m:g?", &[]),
            ("/m:g", "/m:g", &[]),
            ("http://host/m:g?key=a&alt=sse", "http://host/m:g?alt=sse", &["a"]),
        ] {
            assert_eq!(
                moved(target, None).unwrap(),
                (left.to_owned(), keys.iter().map(|key| (*key).to_owned()).collect())
            );
        }
    }

    #[test]
    fn elsewhere_only_a_key_of_ours_leaves_the_query() {
        let whole = format!("tax-{}", "0".repeat(64));
        for (target, left, keys) in [
            ("/v1/chat/completions?key=theirs&a=b", "/v1/chat/completions?key=theirs&a=b", &[][..]),
            ("/v1/chat/completions?key=ours&a=b", "/v1/chat/completions?a=b", &["ours"]),
            ("/v1/x?k%65y=o%75rs", "/v1/x", &["ours"]),
            ("/v1/x?name=ours", "/v1/x?name=ours", &[]),
            ("/v1beta/files?key=theirs", "/v1beta/files", &["theirs"]),
            ("/upload/v1beta/files?key=theirs&a", "/upload/v1beta/files?a", &["theirs"]),
            (&format!("/v1/x?api_key={whole}"), "/v1/x", &[&whole]),
        ] {
            let keys = keys.iter().map(|key| (*key).to_owned()).collect();
            assert_eq!(moved_from(target, None, false).unwrap(), (left.to_owned(), keys));
        }
    }

    #[test]
    fn a_key_that_is_in_the_header_too_is_one_and_another_is_another() {
        assert_eq!(moved("/m:g?key=a", Some("a")).unwrap().1, ["a"]);
        assert_eq!(moved("/m:g?key=a", Some("b")).unwrap().1, ["b", "a"]);
    }

    #[test]
    fn what_no_header_can_hold_is_no_key() {
        assert!(matches!(moved("/m:g?key=a%0d%0ab", None), Err(Refusal::InvalidKey)));
    }
}
