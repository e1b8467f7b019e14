//! The URL of a PostgreSQL database.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::mistake::Invalid;
use crate::model::{PostgresTls, PostgresUrl};
use crate::secret::Secret;
use crate::upstream::{host_and_port, port_number};

const SHAPE: &str = "postgres://USER:PASSWORD@HOST[:PORT]/DATABASE[?sslmode=…&sslrootcert=FILE]";
const PORT: u16 = 5432;

impl FromStr for PostgresUrl {
    type Err = Invalid;

    /// Parses the URL as libpq does. The host may be the folder of the server's socket, with `%2F`
    /// for `/`. The user and the password stand before the last `@`. Their characters need `%XX`
    /// only where they are ambiguous.
    ///
    /// Errors: an unsupported scheme or parameter, no user, no database, an invalid host or port.
    /// No error shows the URL.
    fn from_str(url: &str) -> Result<Self, Invalid> {
        let invalid = |problem| Invalid::new(problem, SHAPE).secret();
        let (scheme, rest) = url.split_once("://").ok_or_else(|| invalid("is not a URL"))?;
        if scheme != "postgres" && scheme != "postgresql" {
            return Err(invalid("has an unsupported scheme"));
        }
        let (credentials, target) = rest.rsplit_once('@').ok_or_else(|| invalid("has no user"))?;
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (credentials, None),
        };
        let (address, path) = target.split_once('/').ok_or_else(|| invalid("has no database"))?;
        let (database, parameters) = path.split_once('?').unwrap_or((path, ""));
        let (host, port) = if address.starts_with('%') {
            let (host, port) =
                address.split_once(':').map_or((address, None), |(h, p)| (h, Some(p)));
            (decoded(host)?, port)
        } else {
            host_and_port(address).map_err(Invalid::secret)?
        };
        let mut parsed = Self {
            user: decoded(user)?,
            password: password.map(decoded).transpose()?.map(Secret),
            host,
            port: port.map_or(Ok(PORT), port_number).map_err(Invalid::secret)?,
            database: decoded(database)?,
            tls: PostgresTls::default(),
            root_certificates: None,
        };
        if parsed.user.is_empty() || parsed.database.is_empty() {
            return Err(invalid("has no user or no database"));
        }
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name {
                "sslmode" => parsed.tls = tls(value)?,
                "sslrootcert" => parsed.root_certificates = Some(PathBuf::from(decoded(value)?)),
                _ => {
                    let known = "only sslmode and sslrootcert";
                    return Err(Invalid::new("has an unsupported parameter", known).secret());
                }
            }
        }
        Ok(parsed)
    }
}

/// The URL without the password, for messages.
impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, host, port, database, .. } = self;
        match host.contains(':') {
            true => write!(f, "postgres://{user}@[{host}]:{port}/{database}"),
            false => write!(f, "postgres://{user}@{host}:{port}/{database}"),
        }
    }
}

fn tls(mode: &str) -> Result<PostgresTls, Invalid> {
    Ok(match mode {
        "disable" => PostgresTls::Disable,
        "prefer" => PostgresTls::Prefer,
        "require" => PostgresTls::Require,
        "verify-full" => PostgresTls::VerifyFull,
        _ => {
            let known = "disable, prefer, require or verify-full";
            return Err(Invalid::new("has an unsupported sslmode", known).secret());
        }
    })
}

/// Percent-decodes `text`. A `%` without two digits stays as it is.
fn decoded(text: &str) -> Result<String, Invalid> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let pair = match behind {
            [high, low, ..] if *first == b'%' => digit(high).zip(digit(low)),
            _ => None,
        };
        match pair {
            Some((high, low)) => {
                bytes.push(high << 4 | low);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    let invalid = || Invalid::new("has characters that are not allowed", SHAPE).secret();
    let text = String::from_utf8(bytes).map_err(|_| invalid())?;
    if text.contains(char::is_control) { Err(invalid()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> PostgresUrl {
        url.parse().unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn every_part_of_a_url_is_read() {
        let url = parse(
            "postgresql://me:p%40ss@db.example:6432/bills?sslmode=verify-full&sslrootcert=/ca.pem",
        );
        assert_eq!(
            url,
            PostgresUrl {
                user: "me".to_owned(),
                password: Some(Secret("p@ss".to_owned())),
                host: "db.example".to_owned(),
                port: 6432,
                database: "bills".to_owned(),
                tls: PostgresTls::VerifyFull,
                root_certificates: Some("/ca.pem".into()),
            }
        );
        assert_eq!(url.to_string(), "postgres://me@db.example:6432/bills");
    }

    #[test]
    fn a_password_may_hold_anything_that_cannot_be_mistaken() {
        let password = |url| parse(url).password.unwrap().expose().to_owned();
        assert_eq!(password("postgres://me:a/b?c#d:e@f%@host/db"), "a/b?c#d:e@f%");
        assert_eq!(password("postgres://me:%25%2f@host/db"), "%/");
    }

    #[test]
    fn a_socket_an_address_and_nothing_but_a_name_are_places() {
        let socket = parse("postgres://me@%2Frun%2Fpostgresql/db");
        assert_eq!((&*socket.host, socket.port, socket.password), ("/run/postgresql", 5432, None));
        assert_eq!(parse("postgres://me@[::1]:7/db").to_string(), "postgres://me@[::1]:7/db");
        assert_eq!(parse("postgres://me@host/db").tls, PostgresTls::Prefer);
    }

    #[test]
    fn what_is_wrong_is_told_without_the_password() {
        for (url, problem) in [
            ("hunter2", "is not a URL"),
            ("mysql://me:hunter2@host/db", "has an unsupported scheme"),
            ("postgres://host/hunter2", "has no user"),
            ("postgres://me:hunter2@host", "has no database"),
            ("postgres://me:hunter2@host/", "has no user or no database"),
            ("postgres://:hunter2@host/db", "has no user or no database"),
            ("postgres://me:hunter2@ho st/db", "has no valid host"),
            ("postgres://me:hunter2@host:0/db", "has no valid port"),
            ("postgres://me:hunter2@host/db?sslmode=maybe", "has an unsupported sslmode"),
            ("postgres://me:hunter2@host/db?password=hunter2", "has an unsupported parameter"),
            ("postgres://me:hunter2%00@host/db", "has characters that are not allowed"),
        ] {
            let error = url.parse::<PostgresUrl>().unwrap_err();
            assert_eq!(error.problem, problem, "{url}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
            assert!(error.secret, "{url}");
        }
        assert!(!format!("{:?}", parse("postgres://me:hunter2@host/db")).contains("hunter2"));
    }
}
