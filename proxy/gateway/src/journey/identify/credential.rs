//! The credentials that a request shows, and how a key of this gateway looks among them.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use memchr::memmem;
use taximeter_net::fields::{API_KEY, X_API_KEY, X_GOOG_API_KEY};

/// How many headers hold credentials.
const COUNT: usize = 4;

/// Headers in which clients of OpenAI, Anthropic, Azure and Google send their key.
pub(super) static KEY_HEADERS: [&HeaderName; COUNT] =
    [&AUTHORIZATION, &X_API_KEY, &API_KEY, &X_GOOG_API_KEY];

/// Reads HTTP Basic as the most lenient reader does.
static BASIC: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// How every key begins that `taximeter keys new` makes.
const KEY_START: &[u8] = b"tax-";
/// Hexadecimal digits behind it.
const KEY_DIGITS: usize = 64;

/// The credentials of a request; the same one in two headers is one.
#[derive(Debug, Default)]
pub(super) struct Shown<'a> {
    found: [Option<&'a [u8]>; COUNT],
    /// A header is there twice.
    is_repeated: bool,
}

impl<'a> Shown<'a> {
    /// Those in `headers`. A header without a key shows none.
    pub(super) fn of(headers: &'a HeaderMap) -> Self {
        let mut shown = Self::default();
        for name in KEY_HEADERS {
            let mut values = headers.get_all(name).iter();
            let Some(value) = values.next() else { continue };
            shown.is_repeated |= values.next().is_some();
            let key = key_of(name, value.as_bytes());
            if !key.is_empty() && !shown.all().any(|other| other == key) {
                // There is a place for each header.
                if let Some(free) = shown.found.iter_mut().find(|place| place.is_none()) {
                    *free = Some(key);
                }
            }
        }
        shown
    }

    /// Each of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &'a [u8]> {
        self.found.iter().flatten().copied()
    }

    /// Whether there is none.
    pub(super) fn is_none(&self) -> bool {
        self.all().next().is_none()
    }

    /// Whether two readers could take different ones.
    pub(super) fn differ(&self) -> bool {
        self.is_repeated || self.all().nth(1).is_some()
    }

    /// Whether one header is there twice.
    pub(super) const fn is_repeated(&self) -> bool {
        self.is_repeated
    }
}

/// Takes the client's credential off a request.
pub(crate) fn strip_credential(headers: &mut HeaderMap) {
    for name in KEY_HEADERS {
        headers.remove(name);
    }
}

/// The key in the value of a header.
fn key_of<'a>(name: &HeaderName, value: &'a [u8]) -> &'a [u8] {
    if *name == AUTHORIZATION { bearer(value) } else { value.trim_ascii() }
}

/// The key of `Bearer KEY`; of anything else the whole value, which no key will match.
fn bearer(value: &[u8]) -> &[u8] {
    match value.split_at_checked(6) {
        Some((scheme, key))
            if scheme.eq_ignore_ascii_case(b"bearer")
                && key.first().is_none_or(u8::is_ascii_whitespace) =>
        {
            key.trim_ascii()
        }
        _ => value.trim_ascii(),
    }
}

/// Whether the value of a header with a credential holds one that `is_ours`: alone, behind the name
/// of a scheme, or as the user or the password of HTTP Basic.
pub(super) fn holds(value: &[u8], is_ours: impl Fn(&[u8]) -> bool) -> bool {
    let mut words = value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let scheme = words.clone().next().filter(|scheme| scheme.eq_ignore_ascii_case(b"basic"));
    let pair = scheme.and_then(|_| BASIC.decode(words.clone().nth(1)?).ok());
    let mut in_pair = pair.iter().flat_map(|pair| pair.split(|byte| *byte == b':'));
    words.any(&is_ours) || in_pair.any(is_ours)
}

/// Whether a credential has the form of a key of ours.
pub(super) fn has_form_of_ours(credential: &[u8]) -> bool {
    credential.get(..KEY_START.len()).is_some_and(|start| start.eq_ignore_ascii_case(KEY_START))
}

/// Whether a whole key of ours stands anywhere in a text.
pub(super) fn has_key_in(text: &[u8]) -> bool {
    // Few headers are so long.
    text.len() >= KEY_START.len() + KEY_DIGITS
        && memmem::find_iter(text, KEY_START).any(|at| {
            let digits = text.get(at + KEY_START.len()..).and_then(|rest| rest.get(..KEY_DIGITS));
            digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn the_same_credential_in_two_headers_is_one_and_a_header_without_a_key_is_none() {
        for (pairs, shown, differ) in [
            (&[("authorization", "Bearer a"), ("x-api-key", "a")][..], &["a"][..], false),
            (&[("authorization", "bearer \t a"), ("api-key", "b")], &["a", "b"], true),
            (&[("authorization", "Bearer a"), ("authorization", "Bearer a")], &["a"], true),
            (&[("authorization", "Bearer"), ("x-api-key", "")], &[], false),
            (&[("authorization", "Bearer "), ("x-goog-api-key", "c")], &["c"], false),
            (&[("authorization", "bearerish")], &["bearerish"], false),
            (&[("authorization", "Basic YTpi")], &["Basic YTpi"], false),
            (&[("cookie", "a"), ("x-custom", "b")], &[], false),
        ] {
            let headers = headers(pairs);
            let found = Shown::of(&headers);
            let all: Vec<_> = found.all().map(|key| std::str::from_utf8(key).unwrap()).collect();
            assert_eq!((all.as_slice(), found.differ()), (shown, differ), "{pairs:?}");
            assert_eq!(found.is_none(), shown.is_empty(), "{pairs:?}");
        }
    }

    #[test]
    fn a_key_of_ours_is_seen_in_every_way_to_write_a_credential() {
        let basic = |pair: &str| format!("Basic {}", BASIC.encode(pair));
        for value in [
            "tax-1".to_owned(),
            "Bearer tax-1".to_owned(),
            "bearer   TAX-1".to_owned(),
            "Token\ttax-1".to_owned(),
            basic("me:tax-1"),
            basic("tax-1:"),
            basic("tax-1").replace("Basic", "bASIC"),
            basic("me:tax-1").trim_end_matches('=').to_owned(),
        ] {
            assert!(holds(value.as_bytes(), has_form_of_ours), "{value}");
        }
        for value in ["sk-1", "Bearer sk-tax-1", "Bearer tax", "", "Basic !!!", &basic("a:sk-tax-")]
        {
            assert!(!holds(value.as_bytes(), has_form_of_ours), "{value}");
        }
    }

    #[test]
    fn a_whole_key_is_seen_anywhere_in_a_text() {
        let key = format!("tax-{}", "0af9".repeat(16));
        for text in [key.clone(), format!("token={key}; a"), format!("tax-{key}")] {
            assert!(has_key_in(text.as_bytes()), "{text}");
        }
        let short = key.get(..67).unwrap();
        for text in [short, "tax-free", &format!("{short} and more"), &"tax-".repeat(30)] {
            assert!(!has_key_in(text.as_bytes()), "{text}");
        }
    }
}
