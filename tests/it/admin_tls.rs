//! The admin address by TLS, and who may ask it by a certificate.

use std::fs;
use std::path::Path;

use crate::client::Client;
use crate::engine::Engine;
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::bare;
use crate::patience::patiently;
use crate::tls_clients::{Papers, Secured};

const TOKEN: &str = "correct-horse-battery-staple";

fn gateway(engine: &Engine, papers: &Papers, client_ca: bool, more: &str) -> Gateway {
    let path = |name: &str| papers.path(name).display().to_string();
    let ca = if client_ca { format!(", client_ca: {:?}", path("ca.pem")) } else { String::new() };
    let tls = format!("admin_tls: {{cert: {:?}, key: {:?}{ca}}}", path("tls.crt"), path("tls.key"));
    Setup::before(engine).with(&tls).with(more).start()
}

fn caller(gateway: &Gateway, papers: &Papers, shows: bool) -> Secured {
    Secured::connect(gateway.admin_address(), papers.client(shows))
}

/// How `taximeter top --once` ends, with these further words.
fn top(gateway: &Gateway, scheme: &str, words: &[(&str, &Path)]) -> Option<i32> {
    let url = format!("{scheme}://localhost:{}", gateway.admin_address().port());
    let mut all = vec!["top".into(), "--once".into(), "--admin".into(), url];
    for (flag, path) in words {
        all.extend([(*flag).to_owned(), path.display().to_string()]);
    }
    taximeter(all).status.code()
}

fn healthy(gateway: &Gateway, scheme: &str) -> Option<i32> {
    let admin = format!("{scheme}{}", gateway.admin_address());
    taximeter(["healthy", "--ready", "--admin", &admin]).status.code()
}

#[test]
fn an_admin_address_with_a_certificate_is_asked_by_tls_alone() {
    let (engine, papers) = (Engine::start(), Papers::new());
    let gateway = gateway(&engine, &papers, false, "");
    let mut plain = Client::saying(gateway.admin_address(), &bare("GET", "/healthz", ""));
    // What TLS says of it is no HTTP.
    assert!(plain.try_answer().is_err());
    let mut caller = caller(&gateway, &papers, false);
    for (target, status) in [("/healthz", 200), ("/readyz", 200), ("/metrics", 200), ("/x", 404)] {
        assert_eq!(caller.get(target, "").status(), status, "{target}");
    }
    let ca = papers.path("ca.pem");
    assert_eq!(top(&gateway, "https", &[("--ca", &ca)]), Some(0));
    assert_eq!(top(&gateway, "https", &[]), Some(69), "nobody has signed it whom the system knows");
    assert_eq!(top(&gateway, "http", &[]), Some(69));
    // A probe asks whether it lives, and not who it is.
    assert_eq!((healthy(&gateway, ""), healthy(&gateway, "https://")), (Some(0), Some(0)));
    let file = gateway.config_file();
    let text = fs::read_to_string(&file).expect("its configuration");
    let here = text.replace("admin: 127.0.0.1:0", &format!("admin: {}", gateway.admin_address()));
    let other = file.with_file_name("here.yaml");
    fs::write(&other, here).expect("write it");
    let other = other.display().to_string();
    assert_eq!(taximeter(["healthy", "--config", &other]).status.code(), Some(0));
}

#[test]
fn who_shows_a_certificate_needs_no_token_and_a_stranger_has_neither() {
    let (engine, papers) = (Engine::start(), Papers::new());
    let gateway = gateway(&engine, &papers, true, &format!("admin_token: {TOKEN}"));
    assert_eq!(caller(&gateway, &papers, true).get("/api/v1/status", "").status(), 200);
    let mut bare = caller(&gateway, &papers, false);
    assert_eq!(bare.get("/readyz", "").status(), 200, "probes show nothing");
    let refused = bare.get("/api/v1/status", "");
    assert_eq!(refused.status(), 401);
    assert!(refused.text().contains("admin_tls.client_ca"), "{refused:?}");
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    assert_eq!(bare.get("/api/v1/status", &token).status(), 200);
    let mut stranger = Secured::connect(gateway.admin_address(), Papers::new().client(true));
    assert!(stranger.try_get("/readyz", "").is_err(), "a certificate that does not do is no none");
}

#[test]
fn where_there_is_no_token_only_certificates_open_the_admin_address() {
    let (engine, papers) = (Engine::start(), Papers::new());
    let gateway = gateway(&engine, &papers, true, "");
    let mut bare = caller(&gateway, &papers, false);
    for target in ["/metrics", "/", "/api/v1/usage", "/openapi.json"] {
        let refused = bare.get(target, "");
        assert_eq!(refused.status(), 403, "{target}");
        assert!(!refused.text().contains("taximeter_requests"), "{target}");
    }
    assert_eq!(bare.get("/metrics", "").json()["type"], "urn:taximeter:problem:certificate_needed");
    assert_eq!(bare.get("/healthz", "").status(), 200);
    let scraped = caller(&gateway, &papers, true).get("/metrics", "");
    assert!(scraped.status() == 200 && scraped.text().contains("taximeter_"), "{scraped:?}");
    let (certificate, key) = papers.issue();
    let (cert_file, key_file) = (papers.path("client.crt"), papers.path("client.key"));
    fs::write(&cert_file, certificate).expect("write the certificate");
    fs::write(&key_file, key.serialize_pem()).expect("write its key");
    let ca = papers.path("ca.pem");
    let certified = [("--ca", &*ca), ("--cert", &*cert_file), ("--key", &*key_file)];
    assert_eq!(top(&gateway, "https", &certified), Some(0));
    assert_eq!(top(&gateway, "https", &certified[..1]), Some(69));
    assert_eq!(healthy(&gateway, ""), Some(0));
}

#[test]
fn certificates_of_the_admin_address_change_while_it_is_asked() {
    let (engine, papers) = (Engine::start(), Papers::new());
    let gateway = gateway(&engine, &papers, true, "");
    let mut before = caller(&gateway, &papers, true);
    for _ in 0..3 {
        let old = caller(&gateway, &papers, true).shown();
        papers.renew();
        let renewed = patiently(|| {
            let mut caller = caller(&gateway, &papers, true);
            assert_eq!(caller.get("/metrics", "").status(), 200, "none is lost");
            (caller.shown() != old).then_some(())
        });
        assert!(renewed.is_some(), "the new certificate is never shown");
        assert_eq!(before.get("/metrics", "").status(), 200, "who is connected stays");
    }
    let kept = caller(&gateway, &papers, true).shown();
    let (other, _) = papers.issue();
    fs::write(papers.path("tls.crt"), other).expect("write a file");
    let told = gateway.await_event("tls_refused");
    let reason = told["reason"].as_str().expect("a reason");
    assert!(reason.contains("is not that of the first certificate"), "{reason}");
    assert_eq!(caller(&gateway, &papers, true).shown(), kept);
}

#[test]
fn an_address_that_others_reach_wants_a_token_or_an_authority_and_files_that_do() {
    let papers = Papers::new();
    let check = |tls: &str| {
        let file = papers.path("taximeter.yaml");
        let upstreams = "upstreams: [{name: e, url: \"http://127.0.0.1:1\"}]";
        fs::write(&file, format!("admin: 0.0.0.0:9464\n{upstreams}\n{tls}\n")).expect("write it");
        let said = taximeter(["check", &file.display().to_string()]);
        (said.status.code(), String::from_utf8_lossy(&said.stderr).into_owned())
    };
    let pair = "cert: tls.crt, key: tls.key";
    for (tls, told) in [
        (String::new(), "can be reached from other machines"),
        (format!("admin_tls: {{{pair}}}"), "`admin_tls` with `client_ca`"),
        (format!("admin_tls: {{{pair}, client_ca: none.pem}}"), "admin_tls: cannot read"),
        ("admin_tls: {cert: tls.crt, client_ca: ca.pem}".to_owned(), "admin_tls.key"),
    ] {
        let (code, said) = check(&tls);
        assert_eq!(code, Some(64), "{tls}: {said}");
        assert!(said.contains(told), "{tls}: {said}");
    }
    assert_eq!(
        check(&format!("admin_tls: {{{pair}, client_ca: ca.pem}}")),
        (Some(0), String::new())
    );
}
