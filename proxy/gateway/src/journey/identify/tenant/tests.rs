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
    with_key_and(|_| ())
}

fn with_key_and(change: impl FnOnce(&mut Config)) -> Directory {
    directory(|config| {
        change(config);
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

fn trusting_home(config: &mut Config) {
    config.tenants.header = Some(TrustedHeader {
        name: "x-tenant-id".into(),
        trusted_peers: vec!["127.0.0.0/8".parse().unwrap()],
    });
}

fn serving_anyone(config: &mut Config) {
    config.tenants.unknown = UnknownCaller::Tenant("default".into());
}

/// The tenant and how it was found, or the code of the refusal.
fn identified(
    directory: &Directory,
    peer: IpAddr,
    sent: &[(&'static str, &str)],
) -> Result<(String, Identity), &'static str> {
    let caller = directory.identify(peer, &headers(sent)).map_err(|refusal| refusal.code())?;
    Ok((caller.tenant.as_str().to_owned(), caller.identity))
}

/// The names of the headers that go on.
fn goes_on(directory: &Directory, peer: IpAddr, sent: &[(&'static str, &str)]) -> Vec<String> {
    let mut headers = headers(sent);
    let caller = directory.identify(peer, &headers).unwrap();
    directory.strip(Some(&caller), &mut headers);
    let mut names: Vec<_> = headers.keys().map(ToString::to_string).collect();
    names.sort_unstable();
    names
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
    let directory = directory(trusting_home);
    let named = headers(&[("x-tenant-id", "globex")]);
    let caller = directory.identify(HOME, &named).unwrap();
    assert_eq!((&*caller.tenant.0, caller.identity), ("globex", Identity::Header));
    assert_eq!(directory.identify(AWAY, &named).unwrap_err().code(), "missing_api_key");
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
    assert!(directory.strip(Some(&caller), &mut sent));
    assert_eq!(sent.len(), 1);
    assert!(sent.contains_key("x-request-id"));
    let mut honest = headers(&[(KEY.as_str(), "secret"), ("cookie", "a"), (RECEIPT.as_str(), "1")]);
    assert!(!directory.strip(Some(&caller), &mut honest));
    assert!(honest.is_empty());
}

#[test]
fn a_key_is_told_by_eight_characters_of_its_hash() {
    let shown = Directory::fingerprint(&headers(&[("x-api-key", "secret")])).unwrap();
    assert_eq!(shown, "2bb80d53");
    let both = headers(&[("x-api-key", "other"), (KEY.as_str(), "secret")]);
    assert_eq!(Directory::fingerprint(&both).unwrap(), shown, "of the one that decides");
    assert_eq!(Directory::fingerprint(&HeaderMap::new()), None);
}

#[test]
fn the_key_in_our_own_header_decides_alone() {
    let acme = Ok(("acme".to_owned(), Identity::ApiKey));
    let open = with_key_and(|config| {
        serving_anyone(config);
        trusting_home(config);
    });
    for directory in [with_key(), open] {
        for sent in [
            &[("x-taximeter-key", "secret")][..],
            &[("x-taximeter-key", " secret "), ("authorization", "Bearer sk-theirs")],
            &[("x-taximeter-key", "secret"), ("authorization", "Bearer a"), ("x-api-key", "b")],
            &[("x-taximeter-key", "secret"), ("x-api-key", "a"), ("x-api-key", "b")],
            &[("x-taximeter-key", "secret"), ("x-tenant-id", "globex")],
        ] {
            assert_eq!(identified(&directory, HOME, sent), acme, "{sent:?}");
        }
        for sent in [
            &[("x-taximeter-key", "wrong")][..],
            &[("x-taximeter-key", "")],
            &[("x-taximeter-key", "Bearer secret")],
            &[("x-taximeter-key", "wrong"), ("authorization", "Bearer secret")],
            &[("x-taximeter-key", "wrong"), ("x-tenant-id", "globex")],
        ] {
            assert_eq!(identified(&directory, HOME, sent), Err("invalid_api_key"), "{sent:?}");
        }
        let twice = &[("x-taximeter-key", "secret"), ("x-taximeter-key", "secret")];
        assert_eq!(identified(&directory, HOME, twice), Err("invalid_value"));
    }
    let keyless = directory(serving_anyone);
    let sent = &[("x-taximeter-key", "secret")];
    assert_eq!(identified(&keyless, HOME, sent), Err("invalid_api_key"), "none is valid here");
}

#[test]
fn a_credential_of_the_client_identifies_nobody_and_a_trusted_header_does() {
    let directory = with_key_and(trusting_home);
    let theirs = ("authorization", "Bearer sk-theirs");
    let named = ("x-tenant-id", "globex");
    let globex = Ok(("globex".to_owned(), Identity::Header));
    assert_eq!(identified(&directory, HOME, &[theirs, named]), globex);
    assert_eq!(identified(&directory, HOME, &[theirs, ("x-api-key", "b"), named]), globex);
    assert_eq!(identified(&directory, AWAY, &[theirs, named]), Err("invalid_api_key"));
    let acme = Ok(("acme".to_owned(), Identity::ApiKey));
    assert_eq!(identified(&directory, HOME, &[("x-api-key", "secret"), named]), acme);
    let both = [theirs, ("x-api-key", "secret"), named];
    assert_eq!(identified(&directory, HOME, &both), Err("invalid_value"), "ours and another");
}

#[test]
fn where_there_are_keys_an_unknown_credential_is_refused_even_if_callers_need_none() {
    let directory = with_key_and(serving_anyone);
    let nobody = Ok(("default".to_owned(), Identity::Unknown));
    assert_eq!(identified(&directory, AWAY, &[]), nobody);
    assert_eq!(identified(&directory, AWAY, &[("authorization", "Bearer")]), nobody);
    for sent in [("authorization", "Bearer sk-theirs"), ("api-key", "tax-revoked")] {
        assert_eq!(identified(&directory, AWAY, &[sent]), Err("invalid_api_key"), "{sent:?}");
    }
}

#[test]
fn two_credentials_of_the_clients_own_go_on_together_where_there_are_no_keys() {
    let directory = directory(serving_anyone);
    let sent = [("authorization", "Bearer oauth"), ("x-api-key", "sk-ant-1")];
    assert_eq!(goes_on(&directory, AWAY, &sent), ["authorization", "x-api-key"]);
    let twice = [("authorization", "Bearer a"), ("authorization", "Bearer b")];
    assert_eq!(identified(&directory, AWAY, &twice), Err("invalid_value"));
}

#[test]
fn a_key_of_ours_goes_on_from_no_header() {
    let directory = with_key();
    let ours = ("x-taximeter-key", "secret");
    let whole = format!("tax-{}", "0af9".repeat(16));
    let basic = |pair: &str| {
        use base64::Engine as _;
        format!("Basic {}", base64::prelude::BASE64_STANDARD.encode(pair))
    };
    for value in ["tax-1", "Bearer tax-1", "Token TAX-1", "secret", "Bearer secret"]
        .map(ToOwned::to_owned)
        .into_iter()
        .chain([basic("me:tax-1"), basic("me:secret")])
    {
        for name in ["authorization", "x-api-key", "api-key", "x-goog-api-key"] {
            assert_eq!(
                goes_on(&directory, AWAY, &[ours, (name, &value)]),
                [""; 0],
                "{name} {value}"
            );
        }
    }
    let elsewhere = [ours, ("helicone-auth", &format!("Bearer {whole}")), ("x-title", "tax-free")];
    assert_eq!(goes_on(&directory, AWAY, &elsewhere), ["x-title"]);
    let theirs = [ours, ("authorization", "Bearer sk-theirs"), ("x-api-key", "tax-1")];
    assert_eq!(goes_on(&directory, AWAY, &theirs), ["authorization"]);
    assert_eq!(goes_on(&directory, AWAY, &[("authorization", "Bearer secret")]), [""; 0]);
}

#[test]
fn a_request_is_signed_by_a_credential_or_the_name_of_a_tenant() {
    let directory = directory(trusting_home);
    for name in [
        "authorization",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "x-taximeter-key",
        "x-tenant-id",
    ] {
        assert!(directory.is_signed(&headers(&[(name, "a")])), "{name}");
    }
    assert!(!directory.is_signed(&headers(&[("cookie", "a"), ("x-team", "a")])));
}

#[test]
fn without_an_upstream_that_takes_it_no_credential_goes_on() {
    let directory = directory(|config| {
        serving_anyone(config);
        config.upstreams[0].forward_credential = taximeter_config::ForwardCredential::Off;
    });
    assert_eq!(goes_on(&directory, AWAY, &[("authorization", "Bearer sk-theirs")]), [""; 0]);
}

#[test]
fn a_tenant_header_that_is_refused_says_so_and_which_names_are_allowed() {
    let refused = |directory: &Directory, peer, values: &[&str]| {
        let sent: Vec<_> = values.iter().map(|value| ("x-tenant-id", *value)).collect();
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.append(name, http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        directory.identify(peer, &headers).map_err(|refusal| refusal.to_string())
    };
    for directory in [
        directory(trusting_home),
        directory(|config| {
            trusting_home(config);
            serving_anyone(config);
        }),
    ] {
        for values in [&["../etc"][..], &["=cmd()"], &["a/b"], &["globex", "acme"], &["a\u{200b}b"]]
        {
            let message = refused(&directory, HOME, values).unwrap_err();
            assert!(message.starts_with("the header `x-tenant-id` names no tenant"), "{message}");
            assert!(message.contains("1 to 128 bytes"), "{message}");
        }
        assert_eq!(refused(&directory, HOME, &["Ünï"]).unwrap().tenant.as_str(), "Ünï");
    }
    let closed = directory(trusting_home);
    assert!(refused(&closed, HOME, &[""]).unwrap_err().contains("names no tenant"));
    let message = refused(&closed, AWAY, &["globex"]).unwrap_err();
    assert!(message.contains("`tenants.header.trusted_peers`"), "{message}");
    let open = directory(|config| {
        trusting_home(config);
        serving_anyone(config);
    });
    assert_eq!(refused(&open, HOME, &[""]).unwrap().identity, Identity::Unknown);
}
