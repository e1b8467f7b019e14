//! Which objects have pods, and where.

use serde_json::Value;

/// Lists within lists.
const LISTS_MAX: usize = 4;

/// A kind of object that has pods.
pub(super) struct Kind {
    pub(super) kind: &'static str,
    /// The group of its API; empty for the core.
    pub(super) group: &'static str,
    /// The ways to its pods or their templates, as JSON pointers. `*` is each element of a list.
    pub(super) pods: &'static [&'static str],
    /// Whether only the first of them that is there serves requests.
    pub(super) first_serves: bool,
    pub(super) shape: Shape,
    /// What whoever applies it should know.
    pub(super) note: Option<&'static str>,
}

/// The form of a pod in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A pod, or the template of one.
    Pod,
    /// A predictor of KServe: the specification of a pod, with its labels and annotations.
    Predictor,
}

const RAY_NOTE: &str = "KubeRay's Service finds the engine by its number, past the meter; let clients \
                        ask a Service of your own";

const fn template(kind: &'static str, group: &'static str, pods: &'static [&'static str]) -> Kind {
    Kind { kind, group, pods, first_serves: false, shape: Shape::Pod, note: None }
}

pub(super) const KINDS: &[Kind] = &[
    template("Pod", "", &[""]),
    template("PodTemplate", "", &["/template"]),
    template("ReplicationController", "", &["/spec/template"]),
    template("Deployment", "apps", &["/spec/template"]),
    template("StatefulSet", "apps", &["/spec/template"]),
    template("DaemonSet", "apps", &["/spec/template"]),
    template("ReplicaSet", "apps", &["/spec/template"]),
    template("Job", "batch", &["/spec/template"]),
    template("CronJob", "batch", &["/spec/jobTemplate/spec/template"]),
    template("Rollout", "argoproj.io", &["/spec/template"]),
    Kind {
        // The leader serves. Without a template of its own it is made as a worker.
        first_serves: true,
        ..template(
            "LeaderWorkerSet",
            "leaderworkerset.x-k8s.io",
            &[
                "/spec/leaderWorkerTemplate/leaderTemplate",
                "/spec/leaderWorkerTemplate/workerTemplate",
            ],
        )
    },
    Kind {
        note: Some(RAY_NOTE),
        ..template(
            "RayService",
            "ray.io",
            &[
                "/spec/rayClusterConfig/headGroupSpec/template",
                "/spec/rayClusterConfig/workerGroupSpecs/*/template",
            ],
        )
    },
    Kind {
        shape: Shape::Predictor,
        ..template("InferenceService", "serving.kserve.io", &["/spec/predictor"])
    },
];

/// What a document has.
#[derive(Default)]
pub(super) struct Found {
    /// Objects of known kinds.
    pub(super) places: Vec<Place>,
    /// Objects of other kinds that have containers: JSON pointers to the object, and to what has the
    /// containers.
    pub(super) unknown: Vec<(String, String)>,
}

/// An object with pods.
pub(super) struct Place {
    /// A JSON pointer.
    pub(super) object: String,
    /// JSON pointers to its pods that are there.
    pub(super) pods: Vec<String>,
    pub(super) shape: Shape,
    pub(super) note: Option<&'static str>,
}

/// The objects of a document.
pub(super) fn find(document: &Value) -> Found {
    let mut found = Found::default();
    found.look(document, document, String::new(), LISTS_MAX);
    found
}

impl Found {
    fn look(&mut self, document: &Value, object: &Value, at: String, lists_max: usize) {
        let (kind, version) = (text(object, "kind"), text(object, "apiVersion"));
        let items = object.get("items").and_then(Value::as_array);
        if let Some(items) = items.filter(|_| kind.ends_with("List") && lists_max > 0) {
            let (inner, default) = (kind.trim_end_matches("List"), version);
            for (index, item) in items.iter().enumerate() {
                let at = format!("{at}/items/{index}");
                // Elements of a `PodList` may leave out what they are.
                if item.get("kind").is_none() {
                    self.push(document, inner, default, at);
                } else {
                    self.look(document, item, at, lists_max - 1);
                }
            }
            return;
        }
        self.push(document, kind, version, at);
    }

    fn push(&mut self, document: &Value, kind: &str, version: &str, at: String) {
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let Some(known) = KINDS.iter().find(|known| known.kind == kind && known.group == group)
        else {
            let object = document.pointer(&at).unwrap_or(&Value::Null);
            if let Some(containers) = containers_in(object, &at) {
                self.unknown.push((at, containers));
            }
            return;
        };
        let mut pods = Vec::new();
        for way in known.pods {
            expand(document, &at, way, &mut pods);
        }
        if known.first_serves {
            pods.truncate(1);
        }
        self.places.push(Place { object: at, pods, shape: known.shape, note: known.note });
    }
}

/// Adds every place that is there on the way from `at`.
fn expand(document: &Value, at: &str, way: &str, places: &mut Vec<String>) {
    let Some((list, rest)) = way.split_once("/*") else {
        let place = format!("{at}{way}");
        if document.pointer(&place).is_some_and(Value::is_object) {
            places.push(place);
        }
        return;
    };
    let list = format!("{at}{list}");
    let length = document.pointer(&list).and_then(Value::as_array).map_or(0, Vec::len);
    for index in 0..length {
        expand(document, &format!("{list}/{index}"), rest, places);
    }
}

/// What has a list of containers, each with a name, in `value` or deeper: a JSON pointer.
fn containers_in(value: &Value, at: &str) -> Option<String> {
    match value {
        Value::Object(members) => {
            let is_container = |one: &Value| one.get("name").is_some_and(Value::is_string);
            let containers = members.get("containers").and_then(Value::as_array);
            if containers.is_some_and(|all| !all.is_empty() && all.iter().all(is_container)) {
                return Some(at.to_owned());
            }
            let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
            members
                .iter()
                .find_map(|(key, value)| containers_in(value, &format!("{at}/{}", escaped(key))))
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| containers_in(item, &format!("{at}/{index}"))),
        _ => None,
    }
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}
