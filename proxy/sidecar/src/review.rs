//! Admission reviews (`admission.k8s.io/v1`) → answers.
//!
//! No pod is ever held up: who cannot be given a sidecar is let through without one, and a warning
//! says why. Only what is no review is refused, for it has no id to answer with.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::inject::inject;
use crate::options::Sidecar;
use crate::patch;

/// The one version that is understood.
const VERSION: &str = "admission.k8s.io/v1";
/// Longer warnings are cut off by the API server.
const WARNING_CHARS_MAX: usize = 240;

/// Answers reviews.
#[derive(Debug)]
pub struct Reviewer {
    /// What sidecars should be.
    pub sidecar: Sidecar,
    /// Namespaces whose pods are left as they are: the system's, and our own.
    pub left_alone: Vec<String>,
}

/// What a review came to.
#[derive(Debug)]
pub struct Answered {
    /// The answer, an AdmissionReview.
    pub review: Value,
    /// Where the pod is to be.
    pub namespace: String,
    /// Its name, or what its name begins with.
    pub pod: String,
    /// Whether a patch is in the answer.
    pub injected: bool,
    /// The first warning in the answer.
    pub warning: Option<String>,
}

/// Why a body has no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Not JSON, or not of the shape.
    #[error("the body is no AdmissionReview: {0}")]
    Shape(String),
    /// Another kind or version.
    #[error("the body is `{kind}` of `{version}`; expected `AdmissionReview` of `{VERSION}`")]
    Version {
        /// As it says.
        kind: String,
        /// As it says.
        version: String,
    },
    /// Nothing to answer.
    #[error("the review has no `request` with a `uid`")]
    NoRequest,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<Request>,
}

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    resource: Resource,
    #[serde(default, rename = "subResource")]
    sub_resource: String,
    #[serde(default)]
    operation: String,
    #[serde(default)]
    namespace: String,
    object: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resource {
    group: String,
    resource: String,
}

impl Reviewer {
    /// The answer to a review: always `allowed`, with a patch for a pod that asks for a sidecar.
    /// The same for a dry run, since nothing else happens.
    ///
    /// Errors: the body is none.
    pub fn answer(&self, body: &[u8]) -> Result<Answered, Malformed> {
        let review: Review =
            serde_json::from_slice(body).map_err(|fault| Malformed::Shape(fault.to_string()))?;
        if review.api_version != VERSION || review.kind != "AdmissionReview" {
            let (kind, version) = (review.kind, review.api_version);
            return Err(Malformed::Version { kind, version });
        }
        let request = review.request.filter(|request| !request.uid.is_empty());
        let request = request.ok_or(Malformed::NoRequest)?;
        let (patch, warnings) = self.decide(&request);
        let (injected, warning) = (patch.is_some(), warnings.first().cloned());
        let mut response = json!({"uid": request.uid, "allowed": true});
        if let Some(members) = response.as_object_mut() {
            if let Some(patch) = patch {
                members.insert("patchType".to_owned(), "JSONPatch".into());
                members.insert("patch".to_owned(), BASE64_STANDARD.encode(patch).into());
            }
            if !warnings.is_empty() {
                members.insert("warnings".to_owned(), warnings.into());
            }
        }
        let review =
            json!({"apiVersion": VERSION, "kind": "AdmissionReview", "response": response});
        let metadata = request.object.as_ref().and_then(|pod| pod.get("metadata"));
        let text = |key| metadata.and_then(|all| all.get(key)?.as_str());
        let pod = text("name").or_else(|| text("generateName")).unwrap_or_default().to_owned();
        Ok(Answered { review, namespace: request.namespace, pod, injected, warning })
    }

    fn decide(&self, request: &Request) -> (Option<String>, Vec<String>) {
        let Resource { group, resource } = &request.resource;
        if !group.is_empty() || resource != "pods" || !request.sub_resource.is_empty() {
            let slash = if request.sub_resource.is_empty() { "" } else { "/" };
            let what = format!("{resource}{slash}{}", request.sub_resource);
            return (None, warning(&format!("reviews pods only, and this is `{what}`")));
        }
        if request.operation != "CREATE" {
            let said = &request.operation;
            return (None, warning(&format!("reviews CREATE only, and this is `{said}`")));
        }
        if self.left_alone.contains(&request.namespace) {
            return (None, Vec::new());
        }
        let Some(pod) = request.object.as_ref().filter(|pod| pod.is_object()) else {
            return (None, warning("the review has no pod"));
        };
        match inject(pod, &self.sidecar, true) {
            Ok(None) => (None, Vec::new()),
            Ok(Some(injected)) => {
                let operations = patch::between(pod, &injected.pod);
                let patch = serde_json::to_string(&operations).unwrap_or_default();
                let warnings =
                    injected.notes.iter().flat_map(|note| warning(&note.to_string())).collect();
                ((!operations.is_empty()).then_some(patch), warnings)
            }
            Err(why) => (None, warning(&format!("no sidecar: {why}"))),
        }
    }
}

fn warning(text: &str) -> Vec<String> {
    let whole = format!("taximeter: {text}");
    vec![whole.chars().take(WARNING_CHARS_MAX).collect()]
}

#[cfg(test)]
mod tests;
