//! The ways in which a server may read a path: one may decode it, merge its slashes or follow its
//! dots before it looks for a route, and another takes it byte for byte.

use std::borrow::Cow;

use super::escape::{unescape, unescape_if};

/// One way to read a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading<'a> {
    pub(super) path: Cow<'a, str>,
    /// Whether nothing in it is escaped any more.
    pub(super) is_decoded: bool,
}

/// The path as it is sent, and then what else it may be taken for. Of most paths there is nothing
/// else. `None` where it may lead above the root, and so out of the prefix of an upstream.
pub(super) fn readings(path: &str) -> Option<impl Iterator<Item = Reading<'_>>> {
    let sent = Reading { path: Cow::Borrowed(path), is_decoded: false };
    let others = if is_plain(path) { Vec::new() } else { other_readings(path)? };
    Some(std::iter::once(sent).chain(others))
}

/// Whether every server reads a path in the same way.
fn is_plain(path: &str) -> bool {
    let mut previous = 0;
    for byte in path.bytes() {
        if matches!(byte, b'%' | b'\\') || previous == b'/' && matches!(byte, b'/' | b'.') {
            return false;
        }
        previous = byte;
    }
    previous != b'/' || path.len() == 1
}

#[cold]
fn other_readings(path: &str) -> Option<Vec<Reading<'static>>> {
    let mut readings: Vec<Reading<'static>> = Vec::new();
    // What stands for a letter is always that letter; what stands for a slash may be part of a name.
    let equal = unescape_if(path, |byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    for (text, is_decoded) in [(equal, false), (unescape(path), true)] {
        let Ok(text) = String::from_utf8(text) else { continue };
        for merges_first in [true, false] {
            let reading =
                Reading { path: Cow::Owned(normalised(&text, merges_first)?), is_decoded };
            let is_new = readings.iter().all(|other| other.path != reading.path);
            if is_new && reading.path != path {
                readings.push(reading);
            }
        }
    }
    Some(readings)
}

/// A path without dots and empty segments. Some take out the empty ones first (nginx, Go), and others
/// let `..` take one back (RFC 3986 §5.2.4). `None` where there is none to take back.
fn normalised(path: &str, merges_first: bool) -> Option<String> {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split(['/', '\\']).skip(1) {
        match segment {
            "." => {}
            ".." => {
                segments.pop()?;
            }
            "" if merges_first => {}
            _ => segments.push(segment),
        }
    }
    let mut normalised = String::with_capacity(path.len());
    for segment in segments.iter().filter(|segment| !segment.is_empty()) {
        normalised.push('/');
        normalised.push_str(segment);
    }
    Some(if normalised.is_empty() { "/".to_owned() } else { normalised })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(path: &str) -> Vec<String> {
        readings(path).unwrap().skip(1).map(|reading| reading.path.into_owned()).collect()
    }

    #[test]
    fn a_path_without_dots_escapes_and_empty_segments_is_read_in_one_way() {
        for path in ["/", "/v1/chat/completions", "/v1/models/org/m.1", "/a;b=c/d:e", "*", ""] {
            assert_eq!(paths(path), [""; 0], "{path}");
        }
    }

    #[test]
    fn each_way_of_writing_a_path_is_read_as_the_path() {
        for path in [
            "//v1//chat/completions",
            "/v1/chat/completions/",
            "/v1/chat/completions//",
            "/v1/./chat/completions",
            "/v1/chat/completions/.",
            "/./v1/chat/./completions/./",
            "/v1/x/../chat/completions",
            "/v1/chat/x/..%2fcompletions",
            "/v1/x/%2e%2E/chat/completions",
            "/v1/chat%2Fcompletions",
            "/v1%2fchat%2fcompletions%2f",
            "/v1/%63hat/completions",
            "/%76%31/%63%68%61%74/completion%73",
            "\\v1\\chat\\completions",
            "/v1/chat%5ccompletions",
        ] {
            let last = paths(path).pop();
            assert_eq!(last.as_deref(), Some("/v1/chat/completions"), "{path}");
        }
    }

    #[test]
    fn what_stands_for_a_slash_may_be_part_of_a_name_or_end_it() {
        let found: Vec<_> = readings("//model/a%2Fb%25/converse").unwrap().skip(1).collect();
        let reading =
            |path: &str, is_decoded| Reading { path: Cow::Owned(path.to_owned()), is_decoded };
        assert_eq!(
            found,
            [reading("/model/a%2Fb%25/converse", false), reading("/model/a/b%/converse", true)]
        );
    }

    #[test]
    fn servers_that_merge_slashes_first_come_to_another_path_than_those_that_follow_dots_first() {
        assert_eq!(paths("/v1/a//../b"), ["/v1/b", "/v1/a/b"].map(String::from));
    }

    #[test]
    fn no_path_leads_above_the_root() {
        for path in ["/..", "/../v1", "/v1/../../v1", "/%2e%2e/v1", "/v1/..%2f..%2fv1", "/\\..\\.."]
        {
            assert!(readings(path).is_none(), "{path}");
        }
        for path in ["/v1/..", "/v1/../v1", "/..v1", "/v1..", "/.../v1"] {
            assert!(readings(path).is_some(), "{path}");
        }
    }

    #[test]
    fn what_is_no_text_once_it_is_decoded_stays_escaped() {
        assert_eq!(paths("/v1/%ff/x"), [""; 0]);
        assert_eq!(paths("/v1//%ff"), ["/v1/%ff"]);
    }
}
