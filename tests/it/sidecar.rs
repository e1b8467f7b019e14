//! A sidecar's life in its pod, with the configuration and the probes that `taximeter inject` gives it.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;

use crate::engine::{Connection, Engine};
use crate::fixtures::{CHAT, DONE, HELLO, STOP, STREAM_CHAT_WITH_USAGE, USAGE};
use crate::gateway::{Gateway, bounded};
use crate::http::{LAST_CHUNK, STREAM_HEAD, chunk, chunks, json_answer};
use crate::inject;

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n\
                   spec: {containers: [{name: main, image: main}]}\n";

/// The pod with its sidecar, which asks an engine or a provider at this address.
fn injected(beside: &str, address: SocketAddr) -> Value {
    let (port, url) = (address.port().to_string(), format!("http://{address}/v1"));
    let mut words = vec!["--beside", beside];
    match beside {
        "engine" => words.extend(["--engine-port", &port]),
        _ => words.extend(["--upstream", &url]),
    }
    let output = inject::piped(&words, POD);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    serde_saphyr::from_str(&text).expect("a pod")
}

/// Whether a probe of the sidecar passes.
fn passes(pod: &Value, probe: &str, gateway: &Gateway) -> bool {
    let command = &pod["spec"]["initContainers"][0][probe]["exec"]["command"];
    let words = command.as_array().expect("a command").iter().filter_map(Value::as_str).skip(1);
    let mut asked = bounded();
    asked.args(words).env("TAXIMETER_ADMIN", gateway.admin_address().to_string());
    asked.output().expect("run taximeter").status.success()
}

/// The next connection with a chat on it; whoever asks what the engine is, is told nothing of it.
fn chat(engine: &Engine) -> Connection {
    loop {
        let (mut connection, request) = engine.request();
        if request.first_line.starts_with("POST ") {
            return connection;
        }
        connection.send(&json_answer(r#"{"object":"list","data":[]}"#));
    }
}

#[test]
fn it_is_there_before_its_engine_and_after_it_and_loses_nothing() {
    for beside in ["engine", "application"] {
        let address = Engine::start().address();
        let pod = injected(beside, address);
        let config = pod["metadata"]["annotations"]["taximeter.io/config"].as_str();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("taximeter.yaml");
        std::fs::write(&file, config.expect("a configuration")).expect("write it");
        let names = ["TAXIMETER_TENANT", "K8S_POD_NAME", "K8S_NAMESPACE_NAME", "K8S_NODE_NAME"];
        let environment = names.map(|name| (name, Path::new("shop")));
        let flags = ["--config", file.to_str().expect("UTF-8")];
        let mut gateway = Gateway::by_flags_with(&flags, &environment);

        // Whatever is in the pod starts only then.
        for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
            assert!(passes(&pod, probe, &gateway), "{beside}: {probe}");
        }
        let early = gateway.chat("", CHAT).answer();
        assert_eq!(early.status(), 502, "{beside}");

        let engine = Engine::at(address);
        let mut client = gateway.chat("", STREAM_CHAT_WITH_USAGE);
        let mut connection = chat(&engine);
        connection.send(STREAM_HEAD);
        client.head();
        connection.send(&chunk(HELLO));
        client.expect(HELLO);
        connection.send(&chunks(&[STOP, USAGE, DONE]));
        connection.send(LAST_CHUNK);
        let mut rest = Vec::new();
        while let Some(more) = client.next_chunk().filter(|more| !more.is_empty()) {
            rest.extend(more);
        }
        assert_eq!(String::from_utf8_lossy(&rest), [STOP, USAGE, DONE].concat());

        // Kubernetes ends the main container first, and then us.
        drop((connection, engine));
        let late = gateway.chat("", CHAT).answer();
        assert_eq!(late.status(), 502, "{beside}");
        assert!(
            passes(&pod, "readinessProbe", &gateway),
            "{beside}: no engine is no fault of ours"
        );
        gateway.terminate();
        let (status, log) = gateway.exit();
        assert_eq!(status.code(), Some(0), "{log:#?}");
        let records = gateway.records();
        let ends: Vec<_> = records.iter().map(|record| record["end"].as_str()).collect();
        assert!(ends.contains(&Some("complete")), "{beside}: {records:#?}");
        let tenant = if beside == "engine" { "default" } else { "shop" };
        assert!(records.iter().all(|record| record["tenant"] == tenant), "{records:#?}");
    }
}
