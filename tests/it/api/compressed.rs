//! The admin address compresses what it answers for clients that ask for it.

use std::io::Read as _;

use flate2::read::GzDecoder;

use super::metered;
use crate::client::{Client, ask};
use crate::gateway::Gateway;
use crate::http::{Message, bare};

const GZIP: &str = "br, gzip;q=0.8, identity;q=0.1";

fn asked(gateway: &Gateway, target: &str, codings: &str) -> Message {
    let headers = format!("Accept-Encoding: {codings}\r\nConnection: close\r\n");
    ask(gateway.admin_address(), &bare("GET", target, &headers))
}

fn plain(answer: &Message) -> String {
    let mut text = String::new();
    GzDecoder::new(&*answer.body).read_to_string(&mut text).expect("gzip");
    text
}

#[test]
fn metrics_api_export_and_pages_come_compressed_where_that_is_asked_for() {
    let (_engine, gateway) = metered();
    for target in
        ["/openapi.json", "/api/v1/records", "/api/v1/export?format=ndjson", "/console/style.css"]
    {
        let as_it_is = asked(&gateway, target, "gzip;q=0");
        assert_eq!(as_it_is.header("content-encoding"), None, "{target}");
        let compressed = asked(&gateway, target, GZIP);
        assert_eq!(compressed.status(), 200, "{target}: {compressed:?}");
        assert_eq!(compressed.header("content-encoding"), Some("gzip"), "{target}");
        assert_eq!(compressed.header("content-type"), as_it_is.header("content-type"), "{target}");
        for answer in [&as_it_is, &compressed] {
            assert_eq!(answer.header("vary"), Some("accept-encoding"), "{target}");
        }
        assert!(compressed.body.len() < as_it_is.body.len() / 2, "{target}");
        assert_eq!(plain(&compressed), as_it_is.text(), "{target}");
    }
    let metrics = asked(&gateway, "/metrics", GZIP);
    assert_eq!(metrics.header("content-encoding"), Some("gzip"));
    let text = plain(&metrics);
    assert!(text.contains("taximeter_ledger_healthy 1"), "{text}");
    assert!(metrics.body.len() < text.len() / 8, "{} of {}", metrics.body.len(), text.len());
    let page = asked(&gateway, "/", GZIP);
    assert!(plain(&page).ends_with("</html>"), "{page:?}");
}

#[test]
fn what_is_short_refused_or_a_stream_comes_as_it_is_and_head_has_no_body() {
    let (_engine, gateway) = metered();
    for target in ["/healthz", "/readyz", "/api/v1/nowhere"] {
        let answer = asked(&gateway, target, GZIP);
        assert_eq!(answer.header("content-encoding"), None, "{target}");
    }
    let request = bare("GET", "/api/v1/live/events", &format!("Accept-Encoding: {GZIP}\r\n"));
    let mut events = Client::saying(gateway.admin_address(), &request);
    assert_eq!(events.head().header("content-encoding"), None);
    let first = events.next_chunk().expect("an event");
    assert!(first.starts_with(b"event: live\n"), "{first:?}");
    let request = bare("HEAD", "/metrics", &format!("Accept-Encoding: {GZIP}\r\n"));
    let mut head = Client::saying(gateway.admin_address(), &request);
    assert_eq!(head.head().header("content-encoding"), None);
    head.send(&bare("GET", "/healthz", "Connection: close\r\n"));
    assert_eq!(head.answer().status(), 200);
}
