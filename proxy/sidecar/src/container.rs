//! The sidecar as a container, and its volumes. The same shape as the Helm chart's.

use serde_json::{Value, json};
use taximeter_config::ADMIN_DEFAULT;

use crate::configuration::{ADMIN_FOLDER, ADMIN_PORT, ANNOTATIONS, DATA_FOLDER, POD_FOLDER};
use crate::options::{Beside, Sidecar, Tenant};
use crate::pod::{name_of, text};
use crate::quantity::{JournalSize, bytes};

/// Its name, and what names of its volumes begin with.
pub(crate) const NAME: &str = "taximeter";
/// The annotation that has the configuration.
pub(crate) const CONFIG: &str = "taximeter.io/config";
/// The volume of the journal.
pub(crate) const DATA_VOLUME: &str = "taximeter-data";

const CONFIG_VOLUME: &str = "taximeter-config";
const ADMIN_VOLUME: &str = "taximeter-admin";
const POD_VOLUME: &str = "taximeter-pod";
const CONFIG_FOLDER: &str = "/etc/taximeter";
const CONFIG_FILE: &str = "taximeter.yaml";
/// The program in its image.
const PROGRAM: &str = "/taximeter";
/// What it takes with some requests open, vocabularies included.
const MEMORY_REQUESTED: &str = "64Mi";
/// Any number but 0: the program is nobody in particular.
const USER: u32 = 65532;

/// A container that is not asked when the pod is judged ready, but serves as long as any other runs.
pub(crate) struct Container<'a> {
    pub(crate) sidecar: &'a Sidecar,
    /// Where it listens, and what that is called; beside an application nobody outside asks.
    pub(crate) port: u16,
    pub(crate) port_name: &'a str,
    pub(crate) tenant: Option<&'a Tenant>,
    /// Variables that the configuration refers to.
    pub(crate) variables: &'a [Value],
}

impl Container<'_> {
    /// The element of `initContainers`.
    pub(crate) fn value(&self) -> Value {
        let mut mounts = vec![
            json!({"name": CONFIG_VOLUME, "mountPath": CONFIG_FOLDER, "readOnly": true}),
            json!({"name": DATA_VOLUME, "mountPath": DATA_FOLDER}),
        ];
        if self.sidecar.admin_secret.is_some() {
            mounts.push(json!({"name": ADMIN_VOLUME, "mountPath": ADMIN_FOLDER, "readOnly": true}));
        }
        if self.sidecar.fleet {
            mounts.push(json!({"name": POD_VOLUME, "mountPath": POD_FOLDER, "readOnly": true}));
        }
        let mut container = json!({
            "name": NAME,
            "image": self.sidecar.image,
            "imagePullPolicy": self.sidecar.image_pull_policy,
            "restartPolicy": "Always",
            "args": ["serve", format!("--config={CONFIG_FOLDER}/{CONFIG_FILE}")],
            "env": self.env(),
            "resources": {
                "requests": {"cpu": self.sidecar.cpu.to_string(), "memory": MEMORY_REQUESTED},
                "limits": {"memory": self.sidecar.memory.to_string()},
            },
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": USER,
                "runAsGroup": USER,
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumeMounts": mounts,
        });
        if let Some(members) = container.as_object_mut() {
            let ports = self.ports();
            if !ports.is_empty() {
                members.insert("ports".to_owned(), ports.into());
            }
            members.extend(self.probes().map(|(name, probe)| (name.to_owned(), probe)));
        }
        container
    }

    fn env(&self) -> Vec<Value> {
        let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
        let mut env = vec![
            field("K8S_POD_NAME", "metadata.name"),
            field("K8S_POD_UID", "metadata.uid"),
            field("K8S_NAMESPACE_NAME", "metadata.namespace"),
            field("K8S_NODE_NAME", "spec.nodeName"),
        ];
        env.extend(self.tenant.map(|tenant| match tenant {
            Tenant::Namespace => field("TAXIMETER_TENANT", "metadata.namespace"),
            Tenant::Label(key) => field("TAXIMETER_TENANT", &format!("metadata.labels['{key}']")),
            Tenant::Named(name) => json!({"name": "TAXIMETER_TENANT", "value": name}),
        }));
        env.extend(self.variables.iter().cloned());
        // What the probes ask, whatever the file says of it.
        if self.is_asked_from_within() {
            let admin = ADMIN_DEFAULT.to_string();
            env.push(json!({"name": "TAXIMETER_ADMIN", "value": admin}));
        }
        let attributes = "k8s.pod.name=$(K8S_POD_NAME),k8s.pod.uid=$(K8S_POD_UID),\
                          k8s.namespace.name=$(K8S_NAMESPACE_NAME),k8s.node.name=$(K8S_NODE_NAME)";
        env.push(json!({"name": "OTEL_RESOURCE_ATTRIBUTES", "value": attributes}));
        env
    }

    fn ports(&self) -> Vec<Value> {
        let mut ports = Vec::new();
        if self.sidecar.beside == Beside::Engine {
            ports.push(json!({"name": self.port_name, "containerPort": self.port}));
        }
        if self.sidecar.admin_secret.is_some() {
            ports.push(json!({"name": "admin", "containerPort": ADMIN_PORT}));
        }
        ports
    }

    /// Whether its admin address is on loopback, where no probe comes but one of its own container.
    const fn is_asked_from_within(&self) -> bool {
        self.sidecar.admin_secret.is_none()
    }

    /// None of them waits for the engine, which starts only when this container has.
    fn probes(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let handlers = if self.is_asked_from_within() {
            let ask = |words: &[&str]| json!({"exec": {"command": words}, "timeoutSeconds": 5});
            let alive = ask(&[PROGRAM, "healthy"]);
            [alive.clone(), ask(&[PROGRAM, "healthy", "--ready"]), alive]
        } else {
            let ask = |path: &str| json!({"httpGet": {"path": path, "port": "admin"}});
            [ask("/healthz"), ask("/readyz"), ask("/healthz")]
        };
        let names = [
            ("startupProbe", 1, Some(600)),
            ("readinessProbe", 5, None),
            ("livenessProbe", 10, Some(6)),
        ];
        names.into_iter().zip(handlers).map(|(probe, mut handler)| {
            let (name, period, failures) = probe;
            if let Some(members) = handler.as_object_mut() {
                members.insert("periodSeconds".to_owned(), period.into());
                if let Some(failures) = failures {
                    members.insert("failureThreshold".to_owned(), Value::from(failures));
                }
            }
            (name, handler)
        })
    }
}

/// Configuration, journal, token and the pod's annotations; these two only where they are wanted.
pub(crate) fn volumes(sidecar: &Sidecar) -> Vec<Value> {
    let config = match &sidecar.config_map {
        Some(name) => json!({"name": CONFIG_VOLUME, "configMap": {"name": name}}),
        None => {
            let annotation = format!("metadata.annotations['{CONFIG}']");
            let item = json!({"path": CONFIG_FILE, "fieldRef": {"fieldPath": annotation}});
            json!({"name": CONFIG_VOLUME, "downwardAPI": {"items": [item]}})
        }
    };
    let mut volumes = vec![config, data_volume(&sidecar.journal_size)];
    volumes.extend(sidecar.admin_secret.as_ref().map(|secret| {
        let items = json!([{"key": "token", "path": "token"}]);
        json!({"name": ADMIN_VOLUME, "secret": {"secretName": secret, "items": items}})
    }));
    if sidecar.fleet {
        // Kubernetes writes this file again when the annotations change.
        let item = json!({"path": ANNOTATIONS, "fieldRef": {"fieldPath": "metadata.annotations"}});
        volumes.push(json!({"name": POD_VOLUME, "downwardAPI": {"items": [item]}}));
    }
    volumes
}

/// Outlives restarts of the container, not the pod.
fn data_volume(size: &JournalSize) -> Value {
    json!({"name": DATA_VOLUME, "emptyDir": {"sizeLimit": size.to_string()}})
}

/// Whether a volume is the journal's as we make it, of this size. The API server may have written the
/// size in another way.
pub(crate) fn is_data_volume(volume: &Value, size: &JournalSize) -> bool {
    let written = volume.pointer("/emptyDir/sizeLimit").and_then(text);
    let Some(written) = written.filter(|text| bytes(text) == Some(size.count())) else {
        return false;
    };
    *volume == json!({"name": DATA_VOLUME, "emptyDir": {"sizeLimit": written}})
}

/// What the journal and all beside it may take, in bytes: nine tenths of our own volume, for a pod that
/// goes beyond it is evicted. `None` where it is the pod's own, of whatever size.
pub(crate) fn room(volumes: &[Value], size: &JournalSize) -> Option<u64> {
    let is_ours = volumes.iter().any(|volume| is_data_volume(volume, size));
    is_ours.then(|| size.count() - size.count().div_ceil(10))
}

/// Whether a volume is one that only we make, and may take away.
pub(crate) fn is_our_volume(volume: &Value) -> bool {
    let name = name_of(volume);
    [CONFIG_VOLUME, ADMIN_VOLUME, POD_VOLUME].contains(&name)
}
