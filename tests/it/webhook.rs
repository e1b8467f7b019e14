//! `taximeter webhook` as an API server meets it: admission reviews over TLS.

mod server;

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use self::server::{Authority, Webhook, post};
use crate::gateway::taximeter;
use crate::patience::patiently;

fn review() -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "operation": "CREATE",
            "namespace": "models",
            "dryRun": false,
            "object": {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "generateName": "vllm-5d7-",
                    "annotations": {"taximeter.io/inject": "true"},
                },
                "spec": {
                    "initContainers": [{"name": "fetch", "image": "fetch"}],
                    "containers": [{"name": "e", "image": "vllm/vllm-openai"}],
                },
            },
        },
    })
}

fn with(place: &str, value: Value) -> Vec<u8> {
    let mut review = review();
    *review.pointer_mut(place).expect("a place in the review") = value;
    review.to_string().into_bytes()
}

#[test]
fn a_pod_that_asks_gets_its_sidecar_first_and_in_a_dry_run_too() {
    let webhook = Webhook::start(&[]);
    let (status, answer) = webhook.review(review().to_string().as_bytes());
    assert_eq!(status, 200);
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer["kind"], "AdmissionReview");
    let response = &answer["response"];
    assert_eq!(response["uid"], "705ab4f5-6393-11e8-b7cc-42010a800002");
    assert_eq!(response["allowed"], true);
    assert_eq!(response["patchType"], "JSONPatch");
    let patch = BASE64_STANDARD.decode(response["patch"].as_str().expect("a patch"));
    let patch: Value = serde_json::from_slice(&patch.expect("base64")).expect("JSON");
    let added = patch.as_array().expect("operations").iter();
    let mut added = added.map(|one| (one["op"].as_str().unwrap(), one["path"].as_str().unwrap()));
    let first = ("add", "/spec/initContainers/0");
    assert!(added.any(|one| one == first), "{patch}");
    let dry = webhook.review(&with("/request/dryRun", json!(true)));
    assert_eq!(serde_json::from_str::<Value>(&dry.1).expect("JSON"), answer);
    webhook.await_event("pod_injected");
}

#[test]
fn no_pod_is_held_up() {
    let webhook = Webhook::start(&["--namespace", "meter"]);
    let response = |body: Vec<u8>| {
        let (status, answer) = webhook.review(&body);
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(answer["response"]["allowed"], true);
        assert!(answer["response"].get("patch").is_none());
        answer["response"]["warnings"][0].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(response(with("/request/namespace", json!("meter"))), "", "its own");
    assert_eq!(response(with("/request/namespace", json!("kube-system"))), "");
    assert_eq!(response(with("/request/object/metadata/annotations", json!({}))), "");
    let spec = json!({"hostNetwork": true, "containers": [{"name": "e"}]});
    let told = response(with("/request/object/spec", spec));
    assert!(told.starts_with("taximeter: no sidecar: it has the node's network"), "{told}");
    webhook.await_event("pod_not_injected");
}

#[test]
fn what_is_no_review_is_answered_and_the_next_one_too() {
    let webhook = Webhook::start(&[]);
    let refused = |body: &[u8], start: &str| {
        let (status, told) = webhook.review(body);
        assert_eq!(status, 400, "{told}");
        assert!(told.starts_with(start), "{told}");
    };
    refused(b"", "the body is no AdmissionReview: EOF");
    refused(b"{\"kind\":", "the body is no AdmissionReview");
    refused(b"\xff\xfe", "the body is no AdmissionReview");
    let deep = [b"{\"request\":{\"uid\":\"1\",\"object\":".as_slice(), &[b'['; 100_000]].concat();
    refused(&deep, "the body is no AdmissionReview: recursion limit");
    refused(&with("/kind", json!("Pod")), "the body is `Pod` of");
    refused(&with("/request/uid", json!("")), "the review has no `request` with a `uid`");
    refused(&with("/request", Value::Null), "the review has no `request` with a `uid`");
    let huge = vec![b' '; (8 << 20) + 1];
    assert_eq!(webhook.review(&huge).0, 413);
    let typed = |kind: &str| post("/inject", kind, b"{}");
    assert_eq!(webhook.ask(&typed("text/yaml")).0, 415);
    assert_eq!(webhook.ask(&typed("application/json; charset=utf-8")).0, 400);
    assert_eq!(webhook.ask(&post("/injected", "application/json", b"{}")).0, 404);
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: w\r\nConnection: close\r\n\r\n");
    assert_eq!(webhook.ask(get("/inject").as_bytes()).0, 405);
    assert_eq!(webhook.ask(get("/healthz").as_bytes()), (200, "ok\n".to_owned()));
    assert_eq!(webhook.review(review().to_string().as_bytes()).0, 200);
    webhook.await_event("review_refused");
}

#[test]
fn whoever_says_nothing_or_no_tls_holds_up_nobody_for_long() {
    let webhook = Webhook::start(&[]);
    // As many as there is room for, and some more.
    let silent: Vec<_> = (0..300).map(|_| webhook.connect_plainly()).collect();
    let mut plain = webhook.connect_plainly();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nHost: w\r\n\r\n").expect("say it without TLS");
    let body = review().to_string();
    assert_eq!(webhook.review(body.as_bytes()).0, 200, "it waits, and is answered");
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said);
    assert!(!said.starts_with(b"HTTP"), "{said:?}");
    for mut socket in silent {
        let _ = socket.read_to_end(&mut said);
    }
    assert_eq!(webhook.review(body.as_bytes()).0, 200);
}

#[test]
fn a_review_that_does_not_come_whole_is_a_408_and_the_next_is_answered() {
    let webhook = Webhook::start(&[]);
    let body = review().to_string();
    let request = post("/inject", "application/json", body.as_bytes());
    let half = request.split_at(request.len() - 10).0;
    let (status, told) = webhook.ask(half);
    assert_eq!(status, 408, "{told}");
    assert!(told.starts_with("the body did not come within"), "{told}");
    assert_eq!(webhook.review(body.as_bytes()).0, 200);
    webhook.await_event("review_refused");
}

#[test]
fn reviews_come_by_http_2_as_an_api_server_sends_them() {
    let webhook = Webhook::start(&[]);
    let answers = webhook.review_by_http2(review().to_string().as_bytes(), 20);
    assert_eq!(answers, [200; 20]);
}

#[test]
fn a_certificate_is_rotated_while_reviews_come_and_none_is_lost() {
    let webhook = Webhook::start(&[]);
    let body = review().to_string().into_bytes();
    for _ in 0..3 {
        let old = webhook.shown();
        webhook.rotate();
        let rotated = patiently(|| {
            assert_eq!(webhook.review(&body).0, 200, "none is lost");
            (webhook.shown() != old).then_some(())
        });
        assert!(rotated.is_some(), "the new certificate is never shown");
        webhook.await_event("tls_renewed");
    }
    let kept = webhook.shown();
    webhook.spoil();
    let told = webhook.await_event("tls_refused");
    let reason = told["reason"].as_str().expect("a reason");
    assert!(reason.contains("is not that of the first certificate"), "{reason}");
    assert_eq!((webhook.review(&body).0, webhook.shown()), (200, kept));
}

#[test]
fn only_callers_of_the_client_authority_are_heard() {
    let webhook = Webhook::with_client_authority();
    let body = review().to_string();
    assert_eq!(webhook.review(body.as_bytes()).0, 200);
    let stranger = Authority::new("somebody else");
    assert!(webhook.try_as(&stranger, body.as_bytes()).is_none());
}

#[test]
fn a_review_that_has_begun_when_it_is_told_to_stop_is_answered() {
    let mut webhook = Webhook::start(&[]);
    let body = review().to_string();
    let request = post("/inject", "application/json", body.as_bytes());
    let (first, rest) = request.split_at(request.len() - 10);
    let mut stream = webhook.connect();
    stream.write_all(first).and_then(|()| stream.flush()).expect("send the first part");
    // The webhook has it once it answers another.
    assert_eq!(webhook.review(body.as_bytes()).0, 200);
    webhook.terminate();
    webhook.await_event("draining");
    stream.write_all(rest).and_then(|()| stream.flush()).expect("send the rest");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(webhook.exit().success());
}

#[test]
fn files_that_do_not_do_start_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("tls.pem");
    std::fs::write(&file, "nothing").expect("write it");
    let file = file.to_str().expect("UTF-8");
    let refused = taximeter(["webhook", "--listen", "127.0.0.1:0", "--cert", file, "--key", file]);
    assert_eq!(refused.status.code(), Some(64));
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("tls.pem has no certificate in PEM: there is none in it"), "{told}");
}
