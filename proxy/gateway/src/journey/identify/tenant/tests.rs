use super::*;
use taximeter_config::ApiKey;

const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
const AWAY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

fn directory(change: impl FnOnce(&mut Config)) -> Directory {
    let mut config = Config::zero("http://127.0.0.1:1").unwrap();
    config.tenants.unknown = UnknownCaller::Refuse;
    change(&mut config);
    Directory::new(&config)
}

fn with_key() -> Directory {
    directory(|config| {
        config.tenants.keys.push(ApiKey {
            id: "acme-prod".into(),
            tenant: "acme".into(),
            sha256: Sha256::digest(b"secret").into(),
            labels: BTreeMap::new(),
        });
    })
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, value.parse().unwrap());
    }
    headers
}

#[test]
fn a_key_is_found_under_each_client_s_header() {
    let directory = with_key();
    for pair in [
        ("authorization", "Bearer secret"),
        ("authorization", "bearer  secret"),
        ("x-api-key", "secret"),
        ("api-key", "secret"),
        ("x-goog-api-key", "secret"),
    ] {
        let caller = directory.identify(AWAY, &headers(&[pair])).unwrap();
        assert_eq!((&*caller.tenant.0, caller.identity), ("acme", Identity::ApiKey), "{pair:?}");
    }
}

#[test]
fn wrong_and_missing_keys_are_refused() {
    let directory = with_key();
    let wrong = directory.identify(HOME, &headers(&[("x-api-key", "secreT")])).unwrap_err();
    assert_eq!(wrong.code(), "invalid_api_key");
    assert_eq!(directory.identify(HOME, &HeaderMap::new()).unwrap_err().code(), "missing_api_key");
    let basic = directory.identify(HOME, &headers(&[("authorization", "Basic secret")]));
    assert_eq!(basic.unwrap_err().code(), "invalid_api_key");
}

#[test]
fn two_different_credentials_are_refused_and_the_same_twice_is_one() {
    let directory = with_key();
    let differ = headers(&[("authorization", "Bearer secret"), ("x-api-key", "other")]);
    assert_eq!(directory.identify(HOME, &differ).unwrap_err().code(), "invalid_value");
    let twice = headers(&[("authorization", "Bearer secret"), ("authorization", "Bearer secret")]);
    assert_eq!(directory.identify(HOME, &twice).unwrap_err().code(), "invalid_value");
    let same = headers(&[("authorization", "Bearer secret"), ("x-api-key", "secret")]);
    assert!(directory.identify(HOME, &same).is_ok());
}

#[test]
fn without_keys_any_credential_is_the_unknown_tenant_s() {
    let directory =
        directory(|config| config.tenants.unknown = UnknownCaller::Tenant("default".into()));
    let caller = directory.identify(AWAY, &headers(&[("authorization", "Bearer sk-x")])).unwrap();
    assert_eq!((&*caller.tenant.0, caller.identity), ("default", Identity::Unknown));
}

#[test]
fn a_tenant_header_is_believed_from_trusted_peers_only() {
    let directory = directory(|config| {
        config.tenants.header = Some(TrustedHeader {
            name: "x-tenant-id".into(),
            trusted_peers: vec!["127.0.0.0/8".parse().unwrap()],
        });
    });
    let named = headers(&[("x-tenant-id", "globex")]);
    let caller = directory.identify(HOME, &named).unwrap();
    assert_eq!((&*caller.tenant.0, caller.identity), ("globex", Identity::Header));
    assert_eq!(directory.identify(AWAY, &named).unwrap_err().code(), "missing_api_key");
    let twice = headers(&[("x-tenant-id", "globex"), ("x-tenant-id", "acme")]);
    assert!(directory.identify(HOME, &twice).is_err());
    assert!(directory.identify(HOME, &headers(&[("x-tenant-id", "../etc")])).is_err());
}

#[test]
fn who_asks_is_told_by_trusted_peers_counted_from_the_right() {
    let directory = directory(|config| {
        config.tenants.header = Some(TrustedHeader {
            name: "x-tenant-id".into(),
            trusted_peers: vec!["127.0.0.0/8".parse().unwrap(), "10.0.0.0/8".parse().unwrap()],
        });
    });
    let client = |peer, lines: &[&str]| {
        let mut sent = HeaderMap::new();
        for line in lines {
            sent.append("x-forwarded-for", line.parse().unwrap());
        }
        directory.client(peer, &sent).to_string()
    };
    let home = HOME.to_string();
    assert_eq!(client(AWAY, &["192.0.2.1"]), AWAY.to_string(), "who is not trusted says nothing");
    assert_eq!(client(HOME, &[]), home);
    assert_eq!(client(HOME, &["198.51.100.7, 192.0.2.1"]), "192.0.2.1");
    assert_eq!(client(HOME, &["198.51.100.7", "192.0.2.1, 10.1.2.3"]), "192.0.2.1");
    assert_eq!(client(HOME, &["192.0.2.1:4711,10.0.0.1"]), "192.0.2.1");
    assert_eq!(client(HOME, &["[2001:db8::1]:80"]), "2001:db8::1");
    assert_eq!(client(HOME, &["::ffff:192.0.2.1"]), "192.0.2.1");
    assert_eq!(client(HOME, &["192.0.2.1, unknown, 10.0.0.1"]), "10.0.0.1");
    assert_eq!(client(HOME, &["10.0.0.2, 10.0.0.1"]), "10.0.0.2");
    assert_eq!(client(HOME, &[""]), home);
}

#[test]
fn identity_headers_of_any_spelling_and_credentials_are_taken_away() {
    let mut sent = headers(&[
        ("x-tenant-id", "evil"),
        ("x_tenant_id", "evil"),
        ("x-taximeter-cost", "0"),
        ("x_taximeter_tenant", "evil"),
        ("authorization", "Bearer secret"),
        ("cookie", "session=1"),
        ("x-request-id", "kept"),
    ]);
    let directory = with_key();
    let caller = directory.identify(AWAY, &sent).unwrap();
    assert!(directory.strip(&caller, &mut sent));
    assert_eq!(sent.len(), 1);
    assert!(sent.contains_key("x-request-id"));
    let mut honest = headers(&[("authorization", "Bearer secret"), (RECEIPT.as_str(), "1")]);
    assert!(!directory.strip(&caller, &mut honest));
    assert!(honest.is_empty());
}

#[test]
fn a_key_is_told_by_eight_characters_of_its_hash() {
    let shown = Directory::fingerprint(&headers(&[("x-api-key", "secret")])).unwrap();
    assert_eq!(shown, "2bb80d53");
    assert_eq!(Directory::fingerprint(&HeaderMap::new()), None);
}
