//! Predictors of KServe's `InferenceService`.
//!
//! A predictor is the specification of a pod, with the pod's labels and annotations in it. KServe sends
//! requests to the port that the engine's container declares, by its number: so that is the sidecar's,
//! and the sidecar alone knows the engine's.

use serde_json::{Map, Value, json};
use taximeter_collections::Gather as _;

use crate::container::NAME;
use crate::inject::{Injected, Note, engine_before, inject as inject_pod};
use crate::options::Sidecar;
use crate::pod::{list, name_of, named, port};
use crate::unfit::Unfit;

/// The port of a container that declares none.
const DEFAULT_PORT: u16 = 8080;
const METADATA: [&str; 2] = ["labels", "annotations"];

/// A predictor as it should be; see [`inject_pod`].
///
/// Errors: what is in the way.
pub(super) fn inject(predictor: &Value, sidecar: &Sidecar) -> Result<Option<Injected>, Unfit> {
    if predictor.get("model").is_some() {
        return Err(Unfit::Runtime);
    }
    let pod = pod_of(predictor);
    let Some(Injected { pod, mut notes }) = inject_pod(&pod, sidecar, false)? else {
        return Ok(None);
    };
    // The number that clients ask is the sidecar's.
    notes.retain(|note| !matches!(note, Note::PastByNumber { .. }));
    Ok(Some(Injected { pod: predictor_of(pod), notes }))
}

/// The pod of a predictor, with the engine's own port.
fn pod_of(predictor: &Value) -> Value {
    let mut spec = predictor.as_object().cloned().unwrap_or_default();
    let metadata: Map<String, Value> =
        METADATA.iter().filter_map(|key| Some(((*key).to_owned(), spec.remove(*key)?))).gather();
    let mut pod = json!({"metadata": metadata, "spec": spec});
    let ours = sidecar_port(&pod);
    if let Some(((container, own), ours)) = engine_before(&pod).zip(ours)
        && let Some(container) = find(&mut pod, &container)
    {
        replace(container, ours, own);
    }
    pod
}

/// The predictor of a pod, with the sidecar's port in place of the engine's.
fn predictor_of(mut pod: Value) -> Value {
    let ours = sidecar_port(&pod);
    if let Some(((container, own), ours)) = engine_before(&pod).zip(ours)
        && let Some(container) = find(&mut pod, &container)
    {
        declare(container, own, ours);
    }
    let metadata = pod.get_mut("metadata").map(Value::take).unwrap_or_default();
    let mut predictor = pod.get_mut("spec").map(Value::take).unwrap_or_default();
    if let (Some(members), Value::Object(metadata)) = (predictor.as_object_mut(), metadata) {
        members.extend(metadata);
    }
    predictor
}

/// Where the sidecar in a pod listens.
fn sidecar_port(pod: &Value) -> Option<u16> {
    let inits = list(pod.get("spec")?, "initContainers");
    list(named(inits, NAME)?, "ports").first()?.get("containerPort").and_then(port)
}

fn find<'a>(pod: &'a mut Value, container: &str) -> Option<&'a mut Map<String, Value>> {
    let containers = pod.pointer_mut("/spec/containers")?.as_array_mut()?;
    containers.iter_mut().find(|other| name_of(other) == container)?.as_object_mut()
}

/// Declares the port `to` of a container in place of `from`.
fn declare(container: &mut Map<String, Value>, from: u16, to: u16) {
    if container.contains_key("ports") {
        replace(container, from, to);
    } else if to != DEFAULT_PORT {
        container.insert("ports".to_owned(), json!([{"containerPort": to, "protocol": "TCP"}]));
    }
}

fn replace(container: &mut Map<String, Value>, from: u16, to: u16) {
    let ports = container.get_mut("ports").and_then(Value::as_array_mut);
    for entry in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        if entry.get("containerPort").and_then(port) == Some(from) {
            entry.insert("containerPort".to_owned(), to.into());
        }
    }
}
