//! Writes the text of a reference so that a URL around it takes every character as it is.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text of `${env:NAME}` or `${file:PATH}` in the path or the query of a URL. What stands there
/// names no other host, and begins no query or fragment. `before` is what is written before the
/// reference. A text that begins a URL is one, or a part of one: it stays.
pub(crate) fn in_url<'t>(text: &'t str, before: &str) -> Cow<'t, str> {
    let is_behind_host =
        before.split_once("://").is_some_and(|(_, behind_scheme)| behind_scheme.contains('/'));
    if is_behind_host { escaped(text, b"/") } else { text.into() }
}

/// The same in the URL of a database, which also has a user and a password. `behind` is what is
/// written behind the reference.
pub(crate) fn in_database_url<'t>(text: &'t str, before: &str, behind: &str) -> Cow<'t, str> {
    if !before.contains("://") {
        return text.into();
    }
    let is_in_credentials = behind.contains('@');
    let host = before.rsplit_once('@').map(|(_, host)| host);
    let is_in_host = !is_in_credentials && host.is_some_and(|host| !host.contains('/'));
    // A host may have its port, and brackets.
    escaped(text, if is_in_host { b":[]" } else { b"" })
}

/// `text` with each byte as `%XX` that is not unreserved (RFC 3986) and not `kept`.
fn escaped<'t>(text: &'t str, kept: &[u8]) -> Cow<'t, str> {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.contains(&byte);
    if text.bytes().all(is_plain) {
        return text.into();
    }
    text.bytes()
        .fold(String::with_capacity(text.len() * 3), |mut escaped, byte| {
            if is_plain(byte) {
                escaped.push(char::from(byte));
            } else {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "%{byte:02X}");
            }
            escaped
        })
        .into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::model::{Config, Store};

    /// The configuration with this text in the environment as `X`.
    fn config(yaml: &str, x: &str) -> Config {
        let upstream = "upstreams: [{name: e, url: \"http://127.0.0.1:1\"}]\n";
        let upstream = if yaml.starts_with("upstreams") { "" } else { upstream };
        let yaml = format!("{upstream}{yaml}");
        let env = |name: &str| (name == "X").then(|| x.to_owned());
        let no_file = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
        Config::from_yaml(&yaml, "c", &env, &no_file).unwrap_or_else(|error| panic!("{x}: {error}"))
    }

    fn store(url: &str, x: &str) -> crate::model::PostgresUrl {
        match config(&format!("ledger: {{store: \"{url}\"}}"), x).ledger.store {
            Store::Postgres(url) => *url,
            Store::Sqlite => panic!("{url}"),
        }
    }

    proptest! {
        #[test]
        fn a_secret_is_taken_as_it_is_wherever_it_stands(x in "[^\\p{Cc}]{1,40}") {
            let password = |url: &str| store(url, &x).password.map(|it| it.expose().to_owned());
            for url in ["postgres://u:${env:X}@h/db", "postgres://u:${env:X}@h:1/db?sslmode=require"] {
                prop_assert_eq!(password(url), Some(x.clone()));
            }
            prop_assert_eq!(password("postgres://u:a%41${env:X}b@h/db"), Some(format!("aA{x}b")));
            prop_assert_eq!(store("postgres://${env:X}:p@h/db", &x).user, x.clone());
            prop_assert_eq!(store("postgres://u:p@h/${env:X}", &x).database, x.clone());
            let ca = store("postgres://u:p@h/db?sslrootcert=${env:X}", &x).root_certificates;
            prop_assert_eq!(ca, Some(x.clone().into()));
            let label = config("resource: {a.b: \"${env:X}\"}", &x).resource;
            prop_assert_eq!(label.get("a.b"), Some(&x));
        }

        #[test]
        fn a_secret_in_a_path_begins_nothing_else(x in "[!-~]{1,40}") {
            let push = |url: &str| config(&format!("export: {{push: {{url: \"{url}\"}}}}"), &x);
            let url = push("https://r.example/in/${env:X}/end?key=${env:X}").export.push.unwrap().url;
            let escaped = super::escaped(&x, b"/");
            prop_assert_eq!(&url.host, "r.example");
            prop_assert_eq!(&url.prefix, &format!("/in/{escaped}/end?key={escaped}"));
            prop_assert!(!escaped.contains(['?', '#', '&', '=', '\\']));
        }

        #[test]
        fn a_credential_is_sent_as_it_is(x in "[!-~]{1,40}") {
            let list = "upstreams: [{name: f, url: \"http://127.0.0.1:1\", credential: \"${env:X}\"}]";
            let config = config(list, &x);
            let credential = config.upstreams[0].credential.as_ref().unwrap();
            prop_assert_eq!(credential.expose(), &x);
        }
    }

    #[test]
    fn a_whole_url_and_a_host_with_its_port_are_read_as_such() {
        let whole = store("${env:X}", "postgres://me:a%41b@db.example:6432/bills");
        assert_eq!((whole.port, &*whole.database), (6432, "bills"));
        assert_eq!(whole.password.unwrap().expose(), "aAb");
        let host = |x| {
            let url = store("postgres://u:p@${env:X}/db", x);
            (url.host, url.port)
        };
        assert_eq!(host("db.example:7"), ("db.example".to_owned(), 7));
        assert_eq!(host("[::1]:7"), ("::1".to_owned(), 7));
        assert_eq!(host("/run/postgresql"), ("/run/postgresql".to_owned(), 5432));
        let list = "upstreams: [{name: f, url: \"${env:X}/v1\"}]";
        let config = config(list, "https://engine.example:8443/base");
        let url = &config.upstreams[0].url;
        assert_eq!((&*url.host, url.port, &*url.prefix), ("engine.example", 8443, "/base"));
    }
}
