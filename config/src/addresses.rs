//! The addresses to listen on: one, or a list.

use std::fmt;
use std::net::SocketAddr;

use taximeter_yaml::{Kind, Node};

use crate::json_schema::{Described, Schema};
use crate::mistake::Invalid;
use crate::reader::{List, Location, Read, Reader, Spanned};
use crate::value::Value;

/// The addresses to listen on, at least one. No two of them clash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    first: SocketAddr,
    others: Vec<SocketAddr>,
}

impl Addresses {
    /// Only this one.
    pub(crate) const fn one(address: SocketAddr) -> Self {
        Self { first: address, others: Vec::new() }
    }

    /// All of these, which sockets listen on; `None` where there are none.
    #[must_use]
    pub fn of(addresses: &[SocketAddr]) -> Option<Self> {
        let (first, others) = addresses.split_first()?;
        Some(Self { first: *first, others: others.to_vec() })
    }

    /// The first one.
    #[must_use]
    pub const fn first(&self) -> SocketAddr {
        self.first
    }

    /// All of them, in the order of the configuration.
    pub fn iter(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }

    /// These with one more.
    ///
    /// Errors: one of them has it already.
    fn and(&mut self, address: SocketAddr) -> Result<(), Invalid> {
        if let Some(other) = self.iter().find(|other| covers(*other, address)) {
            let problem = format!("has a port that {other} takes already");
            return Err(Invalid::new(problem, "each address once, and none beside its wildcard"));
        }
        self.others.push(address);
        Ok(())
    }

    /// Whether all of them can be reached from this machine only.
    pub(crate) fn are_loopback(&self) -> bool {
        self.iter().all(|address| address.ip().to_canonical().is_loopback())
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        self.others.iter().try_for_each(|other| write!(f, ", {other}"))
    }
}

/// In flags and variables, several are separated by commas.
impl Value for Addresses {
    const EXPECTED: &'static str = "addresses with ports, such as 127.0.0.1:8080,[::1]:8080";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let mut parts = text.split(',').map(|part| SocketAddr::parse(part.trim()));
        let first = parts.next().ok_or_else(|| Invalid::new("is empty", Self::EXPECTED))??;
        let mut addresses = Self::one(first);
        parts.try_for_each(|other| addresses.and(other?))?;
        Ok(addresses)
    }
}

/// As the file has them: one, or a list.
#[derive(Debug)]
pub(crate) struct RawAddresses {
    pub(crate) addresses: Addresses,
    /// Each with its place.
    items: Vec<Spanned<SocketAddr>>,
}

impl RawAddresses {
    /// Where the file has this address, or else the first.
    pub(crate) fn location(&self, address: SocketAddr) -> Option<Location> {
        let item = self.items.iter().find(|item| item.value == address);
        item.or(self.items.first()).map(|item| item.location.clone())
    }
}

impl Read for RawAddresses {
    fn read(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        let Kind::List(nodes) = &node.kind else {
            let item = Spanned::<SocketAddr>::read(node, path, reader)?;
            return Some(Self { addresses: Addresses::one(item.value), items: vec![item] });
        };
        let list = List::<Spanned<SocketAddr>>::read(node, path, reader)?;
        let Some((first, others)) = list.items.split_first() else {
            if list.empty {
                reader.report(&list.location, "is empty", "expected at least one address");
            }
            return None;
        };
        let mut addresses = Addresses::one(first.value);
        // One that cannot be read is reported already.
        let mut is_whole = list.items.len() == nodes.len();
        for other in others {
            if let Err(why) = addresses.and(other.value) {
                reader.invalid::<SocketAddr>(&other.location, &other.written, &why);
                is_whole = false;
            }
        }
        is_whole.then_some(Self { addresses, items: list.items })
    }
}

impl Described for RawAddresses {
    fn described() -> Schema {
        Spanned::<SocketAddr>::described().one_or_more()
    }
}

/// Whether a socket that listens on one address takes the connections of the other. One for all
/// addresses of IPv6 can leave those of IPv4 to another.
fn covers(one: SocketAddr, other: SocketAddr) -> bool {
    let (ip, theirs) = (one.ip().to_canonical(), other.ip().to_canonical());
    let same_family = ip.is_ipv4() == theirs.is_ipv4();
    let overlap = ip == theirs || ip.is_unspecified() || theirs.is_unspecified();
    one.port() == other.port() && one.port() != 0 && same_family && overlap
}

/// The admin address that is also one where clients connect, or that needs a token; and why.
pub(crate) fn admin_problem(
    listen: &Addresses,
    admin: &Addresses,
    is_guarded: bool,
) -> Option<(SocketAddr, Invalid)> {
    let problem = |ours: SocketAddr| {
        let clash = listen.iter().find_map(|theirs| clash(theirs, ours));
        Some((ours, clash.or_else(|| exposed(ours, is_guarded))?))
    };
    admin.iter().find_map(problem)
}

fn clash(listen: SocketAddr, admin: SocketAddr) -> Option<Invalid> {
    let (ours, theirs) = (admin.ip().to_canonical(), listen.ip().to_canonical());
    let overlap = ours == theirs || ours.is_unspecified() || theirs.is_unspecified();
    (admin.port() == listen.port() && admin.port() != 0 && overlap).then(|| {
        Invalid::new("is also the address where clients connect", "another port than `listen` has")
    })
}

fn exposed(admin: SocketAddr, is_guarded: bool) -> Option<Invalid> {
    let is_exposed = !admin.ip().to_canonical().is_loopback() && !is_guarded;
    is_exposed.then(|| {
        Invalid::new(
            "can be reached from other machines",
            "a loopback address, or `admin_token`, `admin_tokens` that may read, or `admin_tls` with `client_ca` in the file",
        )
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::model::Config;

    /// The addresses in a file, or its mistakes.
    fn load(text: &str) -> Result<[String; 2], String> {
        let none = |_: &std::path::Path| Err(io::ErrorKind::NotFound.into());
        let whole = format!("upstreams:\n  - {{name: e, url: \"http://127.0.0.1:9\"}}\n{text}");
        let config = Config::from_yaml(&whole, "t.yaml", &|_| None, &none);
        let config = config.map_err(|mistakes| mistakes.to_string())?;
        Ok([config.listen, config.admin].map(|addresses| addresses.to_string()))
    }

    #[test]
    fn a_file_has_one_address_or_a_list_and_each_mistake_has_its_place() {
        let two = "listen: ['127.0.0.1:1', '[::1]:1']\nadmin: ['127.0.0.1:2', '[::1]:2']";
        let found = ["127.0.0.1:1, [::1]:1", "127.0.0.1:2, [::1]:2"].map(String::from);
        assert_eq!(load(two), Ok(found));
        let one = ["127.0.0.1:1", "127.0.0.1:9464"].map(String::from);
        assert_eq!(load("listen: 127.0.0.1:1"), Ok(one));
        for (text, mistakes) in [
            (
                "listen: ['0.0.0.0:1', '127.0.0.1:1', x]",
                &["listen[1]: \"127.0.0.1:1\" has a port that 0.0.0.0:1", "listen[2]: \"x\""][..],
            ),
            ("admin: []", &["admin: is empty"]),
            ("admin: ['127.0.0.1:2', '10.0.0.1:2']", &["admin[1]: \"10.0.0.1:2\" can be reached"]),
            ("listen: ['127.0.0.1:1', '[::1]:9464']\nadmin: '[::1]:9464'", &["admin: "]),
            ("listen: {a: b}", &["listen: is a map"]),
        ] {
            let said = load(text).unwrap_err();
            for mistake in mistakes {
                assert!(said.contains(mistake), "{text}: {said}");
            }
            let count = format!("{} problem", mistakes.len());
            assert!(said.contains(&count), "{text}: {said}");
        }
    }

    #[test]
    fn addresses_are_separated_by_commas_and_none_takes_the_port_of_another() {
        for (text, good) in [
            ("127.0.0.1:8080", true),
            ("127.0.0.1:8080,[::1]:8080", true),
            ("localhost:8080, [::1]:8080", true),
            ("0.0.0.0:80,[::]:80", true),
            ("127.0.0.1:80,[::]:80", true),
            ("127.0.0.1:0,127.0.0.1:0", true),
            ("127.0.0.1:80,127.0.0.1:81", true),
            ("127.0.0.1:80,127.0.0.1:80", false),
            ("0.0.0.0:80,127.0.0.1:80", false),
            ("[::]:80,[::1]:80", false),
            ("[::ffff:127.0.0.1]:80,127.0.0.1:80", false),
            ("127.0.0.1:80,", false),
            ("", false),
        ] {
            assert_eq!(Addresses::parse(text).is_ok(), good, "{text}");
        }
        let two = Addresses::parse("127.0.0.1:1,[::1]:2").unwrap();
        assert_eq!((two.to_string().as_str(), two.first().port()), ("127.0.0.1:1, [::1]:2", 1));
    }

    #[test]
    fn every_admin_address_is_apart_from_clients_and_guarded_if_others_reach_it() {
        let problem = |listen: &str, admin: &str, is_guarded| {
            let [listen, admin] = [listen, admin].map(|text| Addresses::parse(text).unwrap());
            admin_problem(&listen, &admin, is_guarded).map(|(address, _)| address.to_string())
        };
        assert_eq!(problem("127.0.0.1:1,[::1]:1", "127.0.0.1:2,[::1]:2", false), None);
        let open = problem("127.0.0.1:1", "127.0.0.1:2,10.0.0.1:2", false);
        assert_eq!(open.as_deref(), Some("10.0.0.1:2"));
        assert_eq!(problem("127.0.0.1:1", "127.0.0.1:2,10.0.0.1:2", true), None);
        let clash = problem("127.0.0.1:1,[::]:2", "127.0.0.1:3,[::1]:2", true);
        assert_eq!(clash.as_deref(), Some("[::1]:2"));
    }
}
