//! The types of single values: words, addresses, names, URLs and secrets.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;
use serde::Deserialize;
use serde::de::value::{Error as WordError, StrDeserializer};
use taximeter_dimensions::Keep;
use taximeter_meter::{Dialect, UsageAsk};

use crate::access_log::AccessLog;
use crate::admin_tokens::AdminRight;
use crate::content::{Capture, Pattern};
use crate::cors::Origin;
use crate::forward::{ForwardCredential, HeaderPattern};
use crate::json_schema::Allowed;
use crate::ledger::{Durability, OnDamage, OnUnavailable};
use crate::literal;
use crate::mistake::Invalid;
use crate::model::{
    GenAi, ModelPattern, OnClientLeft, Store, UnknownCaller, UnknownPrice, UpstreamUrl,
};
use crate::otlp::{HistogramBuckets, OtlpProtocol, Temporality};
use crate::secret::Secret;
use crate::value::Value;

/// The longest name of a tenant, key, upstream or provider, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// The longest text of a label, in bytes.
const LABEL_BYTES_MAX: usize = 256;
/// The shortest admin token, in characters.
const TOKEN_CHARS_MIN: usize = 16;

/// Values that are one of a few words. The first word of each is its name; the others are YAML's.
macro_rules! words {
    ($name:ty, $expected:literal, { $($($word:literal)|+ => $value:expr,)+ }) => {
        impl Value for $name {
            const EXPECTED: &'static str = $expected;

            fn parse(text: &str) -> Result<Self, Invalid> {
                match text {
                    $($($word)|+ => Ok($value),)+
                    // It may be a URL with a password.
                    _ if text.contains('@') => {
                        Err(Invalid::new("is not allowed here", $expected).secret())
                    }
                    _ => Err(Invalid::new("is not allowed here", $expected)),
                }
            }

            fn allowed() -> Allowed {
                Allowed::Words(vec![$($($word),+),+])
            }
        }
    };
}

/// The price book to begin with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Book {
    Builtin,
}

/// Whether pushes are compressed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gzip(pub(crate) bool);

words!(Capture, "off, spans, events or both", {
    "off" | "false" => Self::Off,
    "spans" => Self::Spans,
    "events" => Self::Events,
    "both" => Self::Both,
});
words!(AdminRight, "read, ingest or change", {
    "read" => Self::Read,
    "ingest" => Self::Ingest,
    "change" => Self::Change,
});
words!(bool, "on or off", { "on" | "true" => true, "off" | "false" => false, });
words!(Durability, "os, group or sync", {
    "os" => Self::Os,
    "group" => Self::Group,
    "sync" => Self::Sync,
});
words!(AccessLog, "off, errors or all", {
    "off" | "false" => Self::Off,
    "errors" => Self::Errors,
    "all" => Self::All,
});
words!(OnDamage, "strict or salvage", { "strict" => Self::Strict, "salvage" => Self::Salvage, });
words!(OnUnavailable, "refuse or serve", { "refuse" => Self::Refuse, "serve" => Self::Serve, });
words!(UsageAsk, "final, continuous or token_ids", {
    "final" => Self::Final,
    "continuous" => Self::Continuous,
    "token_ids" => Self::TokenIds,
});
words!(ForwardCredential, "auto, on or off", {
    "auto" => Self::Auto,
    "on" | "true" => Self::On,
    "off" | "false" => Self::Off,
});
words!(Keep, "keep, hash or off", {
    "keep" => Self::Keep,
    "hash" => Self::Hash,
    "off" | "false" => Self::Off,
});
words!(OnClientLeft, "cancel or drain", { "cancel" => Self::Cancel, "drain" => Self::Drain, });
words!(UnknownPrice, "meter or refuse", { "meter" => Self::Meter, "refuse" => Self::Refuse, });
words!(Book, "builtin", { "builtin" => Self::Builtin, });
words!(GenAi, "v1_41, latest or both", {
    "v1_41" => Self::V1_41,
    "latest" => Self::Latest,
    "both" => Self::Both,
});
words!(OtlpProtocol, "grpc or http/protobuf", {
    "grpc" => Self::Grpc,
    "http/protobuf" => Self::HttpProtobuf,
});
words!(Gzip, "gzip or none", { "gzip" => Self(true), "none" => Self(false), });
words!(HistogramBuckets, "explicit or exponential", {
    "explicit" => Self::Explicit,
    "exponential" => Self::Exponential,
});
words!(Temporality, "cumulative or delta", {
    "cumulative" => Self::Cumulative,
    "delta" => Self::Delta,
});

impl Value for Pattern {
    const EXPECTED: &'static str = Self::FORM;

    fn parse(text: &str) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

impl Value for HeaderPattern {
    const EXPECTED: &'static str = Self::FORM;

    fn parse(text: &str) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

impl Value for Origin {
    const EXPECTED: &'static str = Self::FORM;

    fn parse(text: &str) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

impl Value for Store {
    const EXPECTED: &'static str = "sqlite, or postgres://USER:PASSWORD@HOST/DATABASE";

    fn parse(text: &str) -> Result<Self, Invalid> {
        match text {
            "sqlite" => Ok(Self::Sqlite),
            url if url.contains("://") || url.contains('@') => {
                Ok(Self::Postgres(Box::new(url.parse()?)))
            }
            _ => Err(Invalid::new("is not allowed here", Self::EXPECTED)),
        }
    }

    fn literal<'t>(text: &'t str, before: &str, behind: &str) -> Cow<'t, str> {
        literal::in_database_url(text, before, behind)
    }
}

impl Value for Dialect {
    const EXPECTED: &'static str = "the name of a dialect";

    fn parse(text: &str) -> Result<Self, Invalid> {
        Self::deserialize(StrDeserializer::<WordError>::new(text)).map_err(|error| {
            let error = error.to_string();
            let expected = error.split_once("expected one of ").map_or("", |(_, words)| words);
            Invalid::new("is not a dialect", format!("one of {}", expected.replace('`', "")))
        })
    }

    fn allowed() -> Allowed {
        Allowed::Words(Self::ALL.iter().map(|dialect| dialect.as_str()).collect())
    }
}

impl Value for UnknownCaller {
    const EXPECTED: &'static str = "refuse, or the name of a tenant";

    fn parse(text: &str) -> Result<Self, Invalid> {
        match text {
            "refuse" => Ok(Self::Refuse),
            name => Ok(Self::Tenant(Name::parse(name)?.into())),
        }
    }
}

impl Value for SocketAddr {
    const EXPECTED: &'static str = "an address and a port, such as 127.0.0.1:8080 or [::1]:8080";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let invalid = |_| Invalid::new("is not an address with a port", Self::EXPECTED);
        text.replacen("localhost:", "127.0.0.1:", 1).parse().map_err(invalid)
    }
}

impl Value for IpNet {
    const EXPECTED: &'static str = "an address or a network, such as 10.1.2.3 or 10.0.0.0/8";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let address = || text.parse::<IpAddr>().map(Self::from);
        text.parse::<Self>()
            .or_else(|_| address())
            .map(|net| net.trunc())
            .map_err(|_| Invalid::new("is not an address or a network", Self::EXPECTED))
    }
}

impl Value for PathBuf {
    const EXPECTED: &'static str = "a path";

    fn parse(text: &str) -> Result<Self, Invalid> {
        if text.is_empty() || text.contains('\0') {
            return Err(Invalid::new("is not a path", Self::EXPECTED));
        }
        Ok(Self::from(text))
    }
}

impl Value for UpstreamUrl {
    const EXPECTED: &'static str = "a URL such as http://127.0.0.1:8000/v1";

    fn parse(text: &str) -> Result<Self, Invalid> {
        Self::parse(text)
    }

    fn literal<'t>(text: &'t str, before: &str, _behind: &str) -> Cow<'t, str> {
        literal::in_url(text, before)
    }
}

/// A URL with the whole path, of a receiver or a collector.
#[derive(Debug, Clone)]
pub(crate) struct EndpointUrl(UpstreamUrl);

impl From<EndpointUrl> for UpstreamUrl {
    fn from(receiver: EndpointUrl) -> Self {
        receiver.0
    }
}

impl Value for EndpointUrl {
    const EXPECTED: &'static str = "a URL such as https://openmeter.example/api/v1/events";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let scheme = text.find("://").map_or(0, |at| at + "://".len());
        let path =
            text.get(scheme..).and_then(|rest| rest.find('/')).map_or(text.len(), |at| scheme + at);
        let (host, path) = text.split_at(path);
        let url = UpstreamUrl::parse(host)?;
        if !path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            return Err(Invalid::new(
                "has a path with characters that a URL cannot have",
                Self::EXPECTED,
            ));
        }
        let prefix = if path.is_empty() { "/".to_owned() } else { path.to_owned() };
        Ok(Self(UpstreamUrl { prefix, ..url }))
    }

    fn literal<'t>(text: &'t str, before: &str, _behind: &str) -> Cow<'t, str> {
        literal::in_url(text, before)
    }
}

impl Value for ModelPattern {
    const EXPECTED: &'static str = "a model name; `*` stands for any run of characters";

    fn parse(text: &str) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

impl Value for Secret {
    const EXPECTED: &'static str = "a secret, best as ${env:NAME} or ${file:PATH}";
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, Invalid> {
        // Taximeter sends it in a header.
        match text {
            "" => Err(Invalid::new("is empty", Self::EXPECTED)),
            _ if text.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Self(text.to_owned())),
            _ => Err(Invalid::new(
                "cannot be sent in a header",
                "visible ASCII characters without spaces",
            )),
        }
    }
}

/// The value of a header that Taximeter sends. It may be a secret.
#[derive(Debug, Clone)]
pub(crate) struct HeaderText(pub(crate) Secret);

impl Value for HeaderText {
    const EXPECTED: &'static str = "visible ASCII characters";
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, Invalid> {
        let sendable = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
        if text.trim() != text || text.is_empty() || !sendable {
            return Err(Invalid::new("cannot be sent in a header", Self::EXPECTED));
        }
        Ok(Self(Secret(text.to_owned())))
    }
}

/// The admin token, which callers send.
#[derive(Debug, Clone)]
pub(crate) struct BearerToken(pub(crate) Secret);

impl Value for BearerToken {
    const EXPECTED: &'static str = Secret::EXPECTED;
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, Invalid> {
        let secret = <Secret as Value>::parse(text)?;
        if text.len() < TOKEN_CHARS_MIN {
            let expected = format!("at least {TOKEN_CHARS_MIN} characters");
            return Err(Invalid::new("is too short", expected));
        }
        Ok(Self(secret))
    }
}

/// The SHA-256 of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sha256(pub(crate) [u8; 32]);

impl Value for Sha256 {
    const EXPECTED: &'static str = "64 hexadecimal digits, as `taximeter keys new` prints them";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let digits = text.chars().map(|digit| digit.to_digit(16)).collect::<Option<Vec<_>>>();
        let Some(digits) = digits.filter(|digits| digits.len() == 64) else {
            // Somebody may have written the key itself.
            return Err(Invalid::new("is not a SHA-256 hash", Self::EXPECTED).secret());
        };
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            *byte =
                pair.iter().fold(0, |byte, digit| (byte << 4) | u8::try_from(*digit).unwrap_or(0));
        }
        Ok(Self(hash))
    }
}

/// A name of a tenant, key, upstream or provider.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name(String);

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl Value for Name {
    const EXPECTED: &'static str = "a name";

    fn parse(text: &str) -> Result<Self, Invalid> {
        match name_problem(text) {
            Some(problem) => Err(Invalid::new(problem, "a name such as acme or team-7.search")),
            None => Ok(Self(text.to_owned())),
        }
    }
}

/// Whether `text` can name a tenant: 1 to 128 bytes that are one safe name in a path, a table, a
/// metric and a log.
#[must_use]
pub fn is_tenant_name(text: &str) -> bool {
    name_problem(text).is_none()
}

fn name_problem(text: &str) -> Option<&'static str> {
    // Characters that make two names look alike: combining marks, invisible characters, and those
    // that change the direction of text.
    let deceiving = |c: char| {
        matches!(c, '\u{300}'..='\u{36f}' | '\u{ad}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    match text {
        "" => Some("is empty"),
        _ if text.len() > NAME_BYTES_MAX => Some("is longer than 128 bytes"),
        _ if text.trim() != text => Some("begins or ends with a space"),
        _ if text.contains(char::is_control) => Some("has a control character"),
        _ if text.contains(deceiving) => Some("has an invisible or combining character"),
        _ if text.contains(['/', '\\']) || text.contains("..") => {
            Some("contains `/`, `\\` or `..`")
        }
        _ if text.starts_with(['=', '+', '-', '@']) => Some("begins with `=`, `+`, `-` or `@`"),
        _ => None,
    }
}

/// The text of a label.
#[derive(Debug, Clone)]
pub(crate) struct Label(String);

impl From<Label> for String {
    fn from(label: Label) -> Self {
        label.0
    }
}

impl Value for Label {
    const EXPECTED: &'static str = "1 to 256 bytes of text in one line";

    fn parse(text: &str) -> Result<Self, Invalid> {
        if text.is_empty() || text.len() > LABEL_BYTES_MAX || text.contains(char::is_control) {
            return Err(Invalid::new("is not allowed as a label", Self::EXPECTED));
        }
        Ok(Self(text.to_owned()))
    }
}

/// The name of the header that names a tenant, in lower case.
#[derive(Debug, Clone)]
pub(crate) struct IdentityHeader(String);

impl From<IdentityHeader> for String {
    fn from(header: IdentityHeader) -> Self {
        header.0
    }
}

impl Value for IdentityHeader {
    const EXPECTED: &'static str = "a header of your own, such as x-tenant-id";

    fn parse(text: &str) -> Result<Self, Invalid> {
        const TAKEN: [&str; 22] = [
            "accept",
            "accept-encoding",
            "api-key",
            "authorization",
            "connection",
            "content-encoding",
            "content-length",
            "content-type",
            "cookie",
            "expect",
            "host",
            "keep-alive",
            "proxy-authorization",
            "te",
            "traceparent",
            "tracestate",
            "trailer",
            "transfer-encoding",
            "upgrade",
            "x-api-key",
            "x-goog-api-key",
            "x-request-id",
        ];
        let name = text.to_ascii_lowercase();
        // Many servers treat `_` as `-`, so a client could set the other form.
        let well_formed = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !well_formed {
            return Err(Invalid::new("is not a valid header name", "letters, digits and `-`"));
        }
        if TAKEN.contains(&name.as_str()) || name.starts_with("x-taximeter-") {
            return Err(Invalid::new("is a header with another use", Self::EXPECTED));
        }
        Ok(Self(name))
    }
}
