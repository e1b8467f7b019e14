//! Beside an engine: which container it is, where it listens, and how its callers come to us.
//!
//! The engine stays where it is. What its port is called becomes the name of ours, so that a Service
//! which finds its port by name finds us; probes that named it get its number.

use serde_json::Value;

use crate::options::Sidecar;
use crate::pod::{list, name_of, named, port, text};
use crate::unfit::Unfit;

/// What engines are called in images and commands, and where they listen unless told.
const ENGINES: &[(&str, u16)] = &[
    ("vllm", 8000),
    ("sglang", 30000),
    ("llama-server", 8080),
    ("llama.cpp", 8080),
    ("llama-cpp", 8080),
    ("ollama", 11434),
    ("text-generation-inference", 80),
    ("trtllm-serve", 8000),
    ("tensorrt-llm", 8000),
    ("tritonserver", 8000),
    ("lmdeploy", 23333),
    ("aphrodite", 2242),
    ("infinity-emb", 7997),
    ("text-embeddings-inference", 80),
];
/// Names of ports that serve clients, where a container has several.
const SERVING: &[&str] = &["http", "openai", "api", "serving", "http1", "http-api"];

/// Where an engine is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Engine {
    pub(crate) container: String,
    pub(crate) port: u16,
    /// What that port is called.
    pub(crate) port_name: Option<String>,
}

/// Finds the engine among the containers of a pod.
///
/// Errors: which container, or which port, cannot be told.
pub(crate) fn find(containers: &[Value], sidecar: &Sidecar) -> Result<Engine, Unfit> {
    let container = match (&sidecar.container, containers) {
        (Some(wanted), _) => named(containers, wanted).ok_or_else(|| Unfit::NoSuchContainer {
            wanted: wanted.clone(),
            there: names(containers),
        })?,
        (None, [only]) => only,
        (None, _) => {
            let mut engines =
                containers.iter().filter(|container| default_port(container).is_some());
            match (engines.next(), engines.next()) {
                (Some(engine), None) => engine,
                _ => return Err(Unfit::WhichContainer(names(containers))),
            }
        }
    };
    let name = name_of(container).to_owned();
    let port = sidecar
        .engine_port
        .or_else(|| told_port(container))
        .or_else(|| declared_port(container))
        .or_else(|| default_port(container))
        .ok_or_else(|| Unfit::WhichPort(name.clone()))?;
    let port_name = list(container, "ports")
        .iter()
        .find(|entry| entry.get("containerPort").and_then(self::port) == Some(port))
        .and_then(|entry| entry.get("name").and_then(text).map(str::to_owned));
    Ok(Engine { container: name, port, port_name })
}

fn names(containers: &[Value]) -> String {
    containers.iter().map(name_of).collect::<Vec<_>>().join(", ")
}

/// The words of its command line; a shell's script is words too.
fn words(container: &Value) -> impl Iterator<Item = &str> {
    let lists = ["command", "args"].into_iter().flat_map(|key| list(container, key));
    lists.filter_map(text).flat_map(str::split_whitespace)
}

/// Where its command line tells it to listen.
fn told_port(container: &Value) -> Option<u16> {
    let mut words = words(container);
    while let Some(word) = words.next() {
        let value = match word.split_once('=') {
            Some(("--port", value)) => Some(value),
            _ if word == "--port" => words.next(),
            _ => None,
        };
        if let Some(port) = value.and_then(|value| value.trim_matches(['"', '\'']).parse().ok()) {
            return Some(port);
        }
    }
    None
}

/// The port that it says it has; of several, the one whose name is that of clients.
fn declared_port(container: &Value) -> Option<u16> {
    let number = |entry: &Value| entry.get("containerPort").and_then(port);
    let is_tcp = |entry: &&Value| entry.get("protocol").and_then(text).unwrap_or("TCP") == "TCP";
    let ports: Vec<&Value> = list(container, "ports").iter().filter(is_tcp).collect();
    if let [only] = ports.as_slice() {
        return number(only);
    }
    SERVING
        .iter()
        .find_map(|name| ports.iter().find(|entry| name_of(entry) == *name).copied())
        .and_then(number)
}

/// Where an engine that we know listens unless told.
fn default_port(container: &Value) -> Option<u16> {
    let image = container.get("image").and_then(text).unwrap_or_default();
    let told =
        |engine: &str| image.contains(engine) || words(container).any(|w| w.contains(engine));
    ENGINES.iter().find(|(engine, _)| told(engine)).map(|(_, port)| *port)
}

/// Gives the name of the engine's port away.
pub(crate) fn divert(container: &mut Value, engine: &Engine) {
    let Some(name) = &engine.port_name else { return };
    let number = Value::from(engine.port);
    let entries = container.get_mut("ports").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        if entry.get("containerPort") == Some(&number)
            && let Some(members) = entry.as_object_mut()
        {
            members.remove("name");
        }
    }
    let places = [
        "/livenessProbe/httpGet/port",
        "/livenessProbe/tcpSocket/port",
        "/readinessProbe/httpGet/port",
        "/readinessProbe/tcpSocket/port",
        "/startupProbe/httpGet/port",
        "/startupProbe/tcpSocket/port",
        "/lifecycle/postStart/httpGet/port",
        "/lifecycle/postStart/tcpSocket/port",
        "/lifecycle/preStop/httpGet/port",
        "/lifecycle/preStop/tcpSocket/port",
    ];
    for place in places {
        if let Some(asked) = container.pointer_mut(place)
            && asked.as_str() == Some(name)
        {
            *asked = number.clone();
        }
    }
}

/// Gives the engine's port its name back.
pub(crate) fn restore(containers: &mut [Value], engine: &Engine) {
    let Some(name) = &engine.port_name else { return };
    let container = containers.iter_mut().find(|other| name_of(other) == engine.container);
    let entries = container.and_then(|found| found.get_mut("ports")?.as_array_mut());
    for entry in entries.into_iter().flatten() {
        if entry.get("containerPort").and_then(port) == Some(engine.port)
            && let Some(members) = entry.as_object_mut()
        {
            members.entry("name").or_insert_with(|| name.clone().into());
        }
    }
}
