//! What goes on to an upstream beside the body of a request: the client's credential and its
//! headers.

use crate::mistake::Invalid;

/// Whether the client's own credential goes on to an upstream. A key of this gateway never does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ForwardCredential {
    /// If the upstream has no `credential`.
    #[default]
    Auto,
    /// Yes. The upstream has no `credential` beside it.
    On,
    /// No.
    Off,
}

/// Which headers of a request stay behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forward {
    /// Names beside the default ones. An empty list replaces those, so that every header goes on.
    pub drop: Option<Vec<HeaderPattern>>,
}

/// The name of a header, or the beginning of names. `_` stands for `-`, as many servers read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderPattern {
    /// In lower case, with `-` in place of `_`.
    name: String,
    /// Whether it ended with `*`.
    is_prefix: bool,
}

/// What an engine needs to read a request at all.
const NEEDED: [&str; 5] =
    ["content-encoding", "content-length", "content-type", "host", "transfer-encoding"];

/// Say where a client is, and what its organisation attaches to a request.
const OF_THE_CLIENT: [&str; 10] = [
    "baggage",
    "cf-connecting-ip",
    "forwarded",
    "true-client-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-forwarded",
    "x-original-forwarded-for",
    "x-real-ip",
];
/// How the names of the others begin.
const FORWARDED: &str = "x-forwarded-";
/// The state of a trace at each vendor that has seen it.
const TRACESTATE: &str = "tracestate";

/// What decides which headers stay behind by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Boundary {
    /// The upstream knows the operator, by its own credential, and not the client.
    pub(crate) has_credential: bool,
    /// The upstream may be anybody's.
    pub(crate) is_public: bool,
}

impl Forward {
    /// Whether the header `name` stays behind, given what the upstream is.
    pub(crate) fn drops(&self, name: &str, boundary: Boundary) -> bool {
        match &self.drop {
            Some(names) if names.is_empty() => false,
            named => {
                let named = named.iter().flatten();
                is_dropped_by_default(name, boundary) || named.into_iter().any(|p| p.matches(name))
            }
        }
    }
}

fn is_dropped_by_default(name: &str, boundary: Boundary) -> bool {
    // All names that are meant begin so; most others do not.
    if !boundary.has_credential || !name.starts_with(['b', 'c', 'f', 't', 'x']) {
        return false;
    }
    OF_THE_CLIENT.iter().any(|other| same(name, other))
        || name.get(..FORWARDED.len()).is_some_and(|start| same(start, FORWARDED))
        || boundary.is_public && name == TRACESTATE
}

impl HeaderPattern {
    /// What a message expects.
    pub(crate) const FORM: &str = "a header name such as x-internal-user, or x-internal-*";

    /// A name, or the beginning of names and `*`.
    ///
    /// Errors: not a header name; or it matches a header that every upstream needs.
    pub(crate) fn new(text: &str) -> Result<Self, Invalid> {
        let (name, is_prefix) = match text.strip_suffix('*') {
            Some(start) => (start, true),
            None => (text, false),
        };
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || !name.bytes().all(is_of_name) {
            return Err(Invalid::new("is not a header name", Self::FORM));
        }
        let pattern = Self { name: name.to_ascii_lowercase().replace('_', "-"), is_prefix };
        match NEEDED.iter().find(|needed| pattern.matches(needed)) {
            Some(needed) => {
                let problem = format!("matches `{needed}`, which every upstream needs");
                Err(Invalid::new(problem, Self::FORM))
            }
            None => Ok(pattern),
        }
    }

    /// Whether it means the header `name`, which is in lower case.
    fn matches(&self, name: &str) -> bool {
        let meant = if self.is_prefix { name.get(..self.name.len()) } else { Some(name) };
        meant.is_some_and(|meant| same(meant, &self.name))
    }
}

/// Equal, where some servers take `_` for `-`.
fn same(name: &str, other: &str) -> bool {
    let plain = |byte: u8| if byte == b'_' { b'-' } else { byte };
    name.len() == other.len() && name.bytes().map(plain).eq(other.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Boundary = Boundary { has_credential: true, is_public: false };
    const OWN_PUBLIC: Boundary = Boundary { has_credential: true, is_public: true };
    const CLIENTS: Boundary = Boundary { has_credential: false, is_public: true };

    fn forward(names: &[&str]) -> Forward {
        let names = names.iter().map(|name| HeaderPattern::new(name).unwrap());
        Forward { drop: Some(names.collect()) }
    }

    #[test]
    fn what_says_where_a_client_is_stays_before_an_upstream_that_knows_only_the_operator() {
        let default = Forward::default();
        for name in [
            "baggage",
            "forwarded",
            "x-forwarded-for",
            "x-forwarded-anything",
            "x_forwarded_for",
            "x-real-ip",
            "x_real_ip",
            "cf-connecting-ip",
        ] {
            assert!(default.drops(name, OWN) && default.drops(name, OWN_PUBLIC), "{name}");
            assert!(!default.drops(name, CLIENTS), "{name}");
        }
        for name in ["traceparent", "x-request-id", "content-type", "x-forward", "x-custom", "é"] {
            assert!(!default.drops(name, OWN_PUBLIC), "{name}");
        }
    }

    #[test]
    fn the_state_of_a_trace_stays_before_a_public_host_only() {
        let default = Forward::default();
        assert!(default.drops("tracestate", OWN_PUBLIC));
        assert!(!default.drops("tracestate", OWN) && !default.drops("tracestate", CLIENTS));
    }

    #[test]
    fn names_are_added_to_the_default_and_an_empty_list_lets_everything_go_on() {
        let named = forward(&["X-Internal-*", "user_id"]);
        for name in ["x-internal-", "x-internal-user", "x_internal_user", "user-id", "user_id"] {
            assert!(named.drops(name, CLIENTS) && named.drops(name, OWN), "{name}");
        }
        assert!(named.drops("baggage", OWN) && !named.drops("baggage", CLIENTS));
        assert!(!named.drops("x-internal", OWN) && !named.drops("user-ids", OWN));
        let all = forward(&[]);
        assert!(!all.drops("baggage", OWN_PUBLIC) && !all.drops("tracestate", OWN_PUBLIC));
    }

    #[test]
    fn what_is_no_header_name_or_needed_by_every_upstream_is_refused() {
        for text in ["", "*", "x y", "x:", "x-*-y", "ü", "Host", "content-*", "c*", "Content_Type"]
        {
            assert!(HeaderPattern::new(text).is_err(), "{text:?}");
        }
    }
}
