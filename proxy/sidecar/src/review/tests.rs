use super::*;
use crate::options::Beside;
use crate::sample::sidecar;

fn reviewer() -> Reviewer {
    let sidecar = sidecar(Beside::Engine);
    Reviewer { sidecar, left_alone: vec!["kube-system".to_owned()] }
}

fn pod() -> Value {
    json!({
        "metadata": {"generateName": "vllm-", "labels": {"taximeter.io/inject": "true"}},
        "spec": {"containers": [{"name": "engine", "image": "vllm/vllm-openai"}]},
    })
}

fn review(changes: &[(&str, Value)]) -> Value {
    let mut review = json!({
        "apiVersion": VERSION,
        "kind": "AdmissionReview",
        "request": {
            "uid": "7f0b2891",
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "operation": "CREATE",
            "namespace": "models",
            "object": pod(),
            "dryRun": false,
        },
    });
    for (place, value) in changes {
        *review.pointer_mut(place).expect("a place in the review") = value.clone();
    }
    review
}

fn response(changes: &[(&str, Value)]) -> Value {
    let answered = reviewer().answer(review(changes).to_string().as_bytes()).expect("an answer");
    let answer = answered.review;
    let has = |key| answer["response"].get(key).is_some();
    assert_eq!((answered.injected, answered.warning.is_some()), (has("patch"), has("warnings")));
    assert_eq!(answer["response"]["allowed"], true, "no pod is held up");
    assert_eq!(answer["response"]["uid"], "7f0b2891");
    answer["response"].clone()
}

fn malformed(body: &str) -> String {
    reviewer().answer(body.as_bytes()).unwrap_err().to_string()
}

#[test]
fn a_pod_that_asks_for_it_gets_a_patch() {
    let response = response(&[]);
    assert_eq!(response["patchType"], "JSONPatch");
    let patch = BASE64_STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
    let patch: Vec<Value> = serde_json::from_slice(&patch).unwrap();
    let paths: Vec<&str> = patch.iter().map(|one| one["path"].as_str().unwrap()).collect();
    let expected = [
        "/metadata/annotations",
        "/metadata/labels/taximeter.io~1sidecar",
        "/spec/initContainers",
        "/spec/volumes",
    ];
    assert_eq!(paths, expected, "what is missing is created whole");
    assert!(patch.iter().all(|one| one["op"] == "add"));
}

#[test]
fn a_dry_run_is_answered_the_same_and_a_pod_that_has_it_is_left() {
    let dry = response(&[("/request/dryRun", json!(true))]);
    assert_eq!(dry, response(&[]));
    let injected = inject(&pod(), &reviewer().sidecar, true).unwrap().unwrap().pod;
    assert!(response(&[("/request/object", injected)]).get("patch").is_none());
}

#[test]
fn whoever_gets_no_sidecar_is_let_through() {
    let quiet = json!({"uid": "7f0b2891", "allowed": true});
    assert_eq!(response(&[("/request/namespace", json!("kube-system"))]), quiet);
    assert_eq!(response(&[("/request/object/metadata/labels", json!({}))]), quiet);
    let warned = |place: &str, value: Value| {
        let response = response(&[(place, value)]);
        assert!(response.get("patch").is_none());
        response["warnings"][0].as_str().expect("a warning").to_owned()
    };
    let told = warned("/request/resource/resource", json!("deployments"));
    assert_eq!(told, "taximeter: reviews pods only, and this is `deployments`");
    let told = warned("/request/operation", json!("UPDATE"));
    assert_eq!(told, "taximeter: reviews CREATE only, and this is `UPDATE`");
    assert_eq!(warned("/request/object", Value::Null), "taximeter: the review has no pod");
    let told = warned("/request/object/spec", json!({"containers": []}));
    assert_eq!(told, "taximeter: no sidecar: it has no containers");
    let long = json!({"taximeter.io/inject": "x".repeat(999)});
    assert_eq!(warned("/request/object/metadata/labels", long).chars().count(), WARNING_CHARS_MAX);
}

#[test]
fn what_is_no_review_has_no_answer() {
    assert!(malformed("").starts_with("the body is no AdmissionReview: EOF"));
    assert!(malformed("[1").starts_with("the body is no AdmissionReview"));
    assert!(malformed(&review(&[("/request", json!(1))]).to_string()).contains("no AdmissionR"));
    let beta = review(&[("/apiVersion", json!("admission.k8s.io/v1beta1"))]).to_string();
    assert!(malformed(&beta).contains("of `admission.k8s.io/v1beta1`; expected"));
    let none = "the review has no `request` with a `uid`";
    assert_eq!(malformed(&review(&[("/request", Value::Null)]).to_string()), none);
    assert_eq!(malformed(&review(&[("/request/uid", json!(""))]).to_string()), none);
}
