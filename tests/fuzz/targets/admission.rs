//! A review in any bytes: nothing panics, whoever asks is let through, and a patch makes a pod that is
//! left as it is when it is asked about again.

#![no_main]

use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use taximeter_sidecar::{Beside, Reviewer, Sidecar};

static REVIEWER: LazyLock<Reviewer> = LazyLock::new(|| Reviewer {
    sidecar: Sidecar {
        image: "taximeter:1".to_owned(),
        image_pull_policy: "IfNotPresent".to_owned(),
        beside: Beside::Engine,
        container: None,
        engine_port: None,
        listen_port: None,
        tenant: None,
        upstream: None,
        config_map: None,
        admin_secret: None,
        memory: Sidecar::MEMORY.parse().expect("bytes"),
        cpu: Sidecar::CPU.parse().expect("processors"),
        drain_seconds: Sidecar::DRAIN_SECONDS.parse().expect("seconds"),
        journal_size: Sidecar::JOURNAL_SIZE.parse().expect("bytes"),
        fleet: true,
    },
    left_alone: vec!["kube-system".to_owned()],
});

fuzz_target!(|data: &[u8]| {
    let Ok(answered) = REVIEWER.answer(data) else { return };
    let response = &answered.review["response"];
    assert_eq!(response["allowed"], Value::Bool(true));
    assert!(response["uid"].as_str().is_some_and(|uid| !uid.is_empty()));
    let Some(patch) = response["patch"].as_str() else { return };
    assert!(answered.injected);
    let patch = BASE64_STANDARD.decode(patch).expect("base64");
    let patch: json_patch::Patch = serde_json::from_slice(&patch).expect("a JSON Patch");
    // Members that nobody asks for may be what is no text.
    let Ok(mut review) = serde_json::from_slice::<Value>(data) else { return };
    json_patch::patch(&mut review["request"]["object"], &patch).expect("it fits its pod");
    let again = REVIEWER.answer(review.to_string().as_bytes()).expect("it is a review still");
    assert!(!again.injected, "{review}");
});
