//! Moves the API key that Google's clients write into the query (`?key=`) to the header. A header
//! can be removed cleanly, and a target is written to logs.

use http::header::HeaderValue;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, Uri};
use taximeter_net::fields::X_GOOG_API_KEY;

use super::escape::unescape;
use crate::journey::refuse::Refusal;

/// The parameter, by any spelling that a server would take for it.
const KEY: &[u8] = b"key";

/// Takes each key out of the query of `head`, and adds it to the header unless it is there.
///
/// Errors: `InvalidKey`.
pub(super) fn move_to_header(head: &mut Parts) -> Result<(), Refusal> {
    let Some(query) = head.uri.query() else { return Ok(()) };
    let is_key = |parameter: &&str| unescape(split(parameter).0) == KEY;
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
        let mut request = http::Request::builder().uri(target);
        if let Some(key) = header {
            request = request.header(&X_GOOG_API_KEY, key);
        }
        let mut head = request.body(()).unwrap().into_parts().0;
        move_to_header(&mut head)?;
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
    fn a_key_that_is_in_the_header_too_is_one_and_another_is_another() {
        assert_eq!(moved("/m:g?key=a", Some("a")).unwrap().1, ["a"]);
        assert_eq!(moved("/m:g?key=a", Some("b")).unwrap().1, ["b", "a"]);
    }

    #[test]
    fn what_no_header_can_hold_is_no_key() {
        assert!(matches!(moved("/m:g?key=a%0d%0ab", None), Err(Refusal::InvalidKey)));
    }
}
