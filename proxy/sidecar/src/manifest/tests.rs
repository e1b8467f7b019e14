use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::options::Beside;
use crate::sample::sidecar;

/// The text with sidecars; written again, it is the same.
fn injected(text: &str) -> String {
    let sidecar = sidecar(Beside::Engine);
    let first =
        written(text, &sidecar, false).unwrap_or_else(|faults| panic!("{faults:?} of\n{text}"));
    let again = written(&first.text, &sidecar, false).unwrap();
    assert_eq!(again.text, first.text, "a second run changes nothing");
    first.text
}

fn told(text: &str) -> Vec<String> {
    let faults = written(text, &sidecar(Beside::Engine), false).expect_err("a fault");
    faults.iter().map(ToString::to_string).collect()
}

/// Lines of `after` that are not those of `before`, and whether `before`'s are all there in order.
fn added<'a>(before: &str, after: &'a str) -> (Vec<&'a str>, bool) {
    let mut wanted = before.lines().peekable();
    let added = after.lines().filter(|line| wanted.next_if(|next| next == line).is_none());
    (added.collect(), wanted.peek().is_none())
}

const DEPLOYMENT: &str = "\
# Ours.
apiVersion: apps/v1
kind: Deployment   # of one
metadata:
  name: 'vllm'
spec:
    template:
        metadata:
            labels: {app: vllm}    # found by this
        spec:
            initContainers:
            # Fetches the model.
            - image: fetch
              name: fetch
            containers:
            -   name: engine
                image: \"vllm/vllm-openai:v0.12.0\"
                args: [--model, tiny,
                       --port, '8000']
                env:
                -   name: MODE
                    value: |
                        on
            # Behind.
---
apiVersion: v1
kind: Service
metadata: {name: vllm}   # passes
";

#[test]
fn comments_order_and_quotes_stay_and_other_documents_pass() {
    let after = injected(DEPLOYMENT);
    let labels = "            labels: {app: vllm}    # found by this";
    let labelled =
        "            labels: {app: vllm, \"taximeter.io/sidecar\": \"engine\"}    # found by this";
    assert!(after.contains(labelled), "{after}");
    let (added, all_there) = added(&DEPLOYMENT.replace(labels, labelled), &after);
    assert!(all_there, "{after}");
    assert_eq!(added.first(), Some(&"            annotations:"));
    assert!(after.contains("            initContainers:\n            - name: taximeter\n"));
    assert!(after.contains("              restartPolicy: Always\n"));
    assert!(after.contains("            # Fetches the model.\n            - image: fetch\n"));
    assert!(
        after.contains(
            "              taximeter.io/config: |\n                listen: 0.0.0.0:8080\n"
        )
    );
    assert!(after.ends_with("metadata: {name: vllm}   # passes\n"));
}

#[test]
fn every_kind_with_pods_is_found_within_lists_too() {
    let spec = "{containers: [{name: e, image: vllm}]}";
    for kinds::Kind { kind, group, pods, shape, .. } in kinds::KINDS {
        let version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
        let pod = match shape {
            Shape::Pod => format!("metadata: {{name: n}}, spec: {spec}"),
            Shape::Predictor => spec.trim_start_matches('{').trim_end_matches('}').to_owned(),
        };
        for way in *pods {
            let keys: Vec<_> = way.split('/').skip(1).collect();
            let body = keys.into_iter().rev().fold(pod.clone(), |inner, key| match key {
                "*" => format!("*[{{{inner}}}]"),
                key => match inner.strip_prefix('*') {
                    Some(list) => format!("{key}: {list}"),
                    None => format!("{key}: {{{inner}}}"),
                },
            });
            let object = format!("{{apiVersion: {version}, kind: {kind}, {body}}}\n");
            assert!(injected(&object).contains("\"restartPolicy\":\"Always\""), "{kind}");
            let list = format!("{{apiVersion: v1, kind: List, items: [{}]}}", object.trim_end());
            assert!(injected(&list).contains("\"restartPolicy\":\"Always\""), "{kind}");
            let stranger =
                object.replace(&format!("apiVersion: {version}"), "apiVersion: other/v1");
            let told = told(&stranger);
            assert!(told[0].contains(&format!("{kind} ")) && told[0].contains("--allow-unknown"));
            let passed = written(&stranger, &sidecar(Beside::Engine), true).unwrap();
            assert_eq!((passed.text, passed.injected), (stranger, 0), "a {kind} of somebody else");
        }
    }
    let pods = format!("{{apiVersion: v1, kind: PodList, items: [{{spec: {spec}}}]}}");
    assert!(injected(&pods).contains("taximeter"));
}

#[test]
fn an_unknown_object_with_containers_is_named_with_its_line_and_way() {
    let text = "apiVersion: v1
kind: Service
metadata: {name: s}
---
# Ours.
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: c}
spec:
  headGroupSpec:
    template:
      spec:
        containers: [{name: head, image: ray}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec: {schema: {properties: {containers: {type: array, items: {type: object}}}}}
";
    let faults = written(text, &sidecar(Beside::Engine), false).unwrap_err();
    let [fault @ ManifestFault::Unknown { line: 12, .. }] = &*faults else { panic!("{faults:?}") };
    assert_eq!(
        fault.to_string(),
        "document 2, RayCluster c: has containers at spec.headGroupSpec.template.spec, and inject \
         does not know objects of this kind; with --allow-unknown it stays as it is"
    );
    let passed = written(text, &sidecar(Beside::Engine), true).unwrap();
    assert_eq!((&*passed.text, passed.injected), (text, 0));
    assert_eq!(passed.notes.len(), 1, "{:?}", passed.notes);
    assert!(passed.notes[0].ends_with("spec.headGroupSpec.template.spec, line 12"));
}

#[test]
fn a_fault_is_told_with_the_line_of_its_object() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- kind: Service\n  apiVersion: v1\n\
                - apiVersion: v1\n  kind: Pod\n  spec: {containers: []}\n";
    let faults = written(text, &sidecar(Beside::Engine), false).unwrap_err();
    assert_eq!(faults.iter().map(ManifestFault::line).collect::<Vec<_>>(), [Some(6)]);
}

#[test]
fn only_the_leader_of_a_set_serves() {
    let template = "{metadata: {name: n}, spec: {containers: [{name: e, image: vllm}]}}";
    let set = |templates: &str| {
        injected(&format!(
            "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\n\
             spec: {{leaderWorkerTemplate: {{{templates}}}}}\n"
        ))
    };
    let both = set(&format!("workerTemplate: {template}, leaderTemplate: {template}"));
    let (workers, leader) = both.split_once("leaderTemplate").unwrap();
    assert!(leader.contains("initContainers") && !workers.contains("initContainers"), "{both}");
    assert!(set(&format!("workerTemplate: {template}")).contains("initContainers"));
}

#[test]
fn the_port_that_a_predictor_declares_is_the_sidecars() {
    let service = |container: &str| {
        format!(
            "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata: {{name: m}}\n\
             spec:\n  predictor:\n    minReplicas: 1\n    containers:\n    - name: kserve-container\n\
             \x20     image: vllm/vllm-openai\n{container}"
        )
    };
    let declared = |text: &str| {
        let value = tree::parse(text).unwrap().unwrap().value();
        let predictor = value.pointer("/spec/predictor").unwrap().clone();
        let ours = predictor.pointer("/initContainers/0/ports/0/containerPort").cloned();
        (predictor.pointer("/containers/0/ports/0/containerPort").cloned(), ours.unwrap())
    };
    for (container, wanted) in [
        ("      ports: [{containerPort: 8000, protocol: TCP}]\n", Some(8080)),
        ("      args: [--port=8000]\n", None),
        ("      args: [--port=8080]\n", Some(18080)),
    ] {
        let after = injected(&service(container));
        let (engine, ours) = declared(&after);
        assert_eq!(engine.clone(), wanted.map(Value::from), "{after}");
        assert_eq!(engine.unwrap_or_else(|| 8080.into()), ours, "{after}");
        assert!(after.contains("    minReplicas: 1\n"), "{after}");
    }
    let model = service("      args: []\n").replace("minReplicas: 1", "model: {runtime: vllm}");
    assert!(told(&model)[0].contains("ServingRuntime"));
}

#[test]
fn pods_of_a_list_are_changed_side_by_side() {
    let pod = "\
- apiVersion: v1
  kind: Pod
  metadata: {}
  spec:
    initContainers:
    # The first.
    - name: fetch
    containers:
    - name: e
      image: vllm
      ports:
      - name: http
        containerPort: 8000
    volumes: []";
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{pod}\n{pod}\n# between\n{pod}");
    let after = injected(&list);
    let one = injected(&format!("apiVersion: v1\nkind: List\nitems:\n{pod}\n"));
    let items = one.split_once("items:\n").expect("its items").1;
    let expected = format!("{items}{items}# between\n{items}");
    assert_eq!(after.split_once("items:\n").expect("its items").1.trim_end(), expected.trim_end());
    let json = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"containers": [
        {"name": "e", "image": "vllm"}], "volumes": [], "initContainers": []}}"#;
    let value: Value = serde_json::from_str(&injected(json)).expect("JSON");
    assert_eq!(value["spec"]["volumes"].as_array().map(Vec::len), Some(2));
}

#[test]
fn json_stays_json_and_is_indented_as_it_was() {
    let pod = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "e", "image": "vllm", "ports": []}]},
    });
    for text in [pod.to_string(), serde_json::to_string_pretty(&pod).unwrap()] {
        let after = injected(&text);
        let value: Value = serde_json::from_str(&after).expect("JSON");
        assert_eq!(value["spec"]["initContainers"][0]["name"], "taximeter");
        assert_eq!(after.lines().count() > 1, text.lines().count() > 1);
        if text.lines().count() > 1 {
            let lines = |text: &str| -> BTreeSet<String> {
                text.lines().map(|line| line.trim_end_matches(',').to_owned()).collect()
            };
            assert_eq!(lines(&after), lines(&serde_json::to_string_pretty(&value).unwrap()));
        }
    }
}

#[test]
fn what_stands_empty_or_last_is_written_into() {
    let pod = |metadata: &str, spec: &str| {
        format!("apiVersion: v1\nkind: Pod\nmetadata:{metadata}\nspec:\n{spec}")
    };
    let containers = "  containers:\n  - name: e\n    image: vllm";
    for metadata in [
        "\n  name: p\n  annotations:",
        "\n  name: p\n  annotations: {}",
        "\n  name: p\n  annotations: # none\n",
        " {name: p}",
        "\n  name: p\n  annotations:\n    note: |\n      some\n\n      text\n",
        "\n  name: p\n  annotations: ~",
        "",
    ] {
        for spec in [
            containers.to_owned(),
            format!("{containers}\n\n\n"),
            format!("  volumes: []\n  initContainers: []\n{containers}\n"),
            format!("  volumes:\n  initContainers: # none yet\n{containers} # last"),
            format!(
                "  volumes:\n    - name: v\n{containers}\n    env:\n      - name: A\n        value: >-\n          text\n"
            ),
            "  containers:\n  -\n    image: vllm\n    name: e\n    ports:\n    - name: http\n\
             \x20     containerPort: 8000\n"
                .to_owned(),
            "  containers:\n  - image: vllm\n    ports: [{name: http, containerPort: 8000}]\n\
             \x20   name: e\n"
                .to_owned(),
        ] {
            let after = injected(&pod(metadata, &spec));
            assert!(after.contains("restartPolicy: Always"), "{after}");
            assert!(!after.contains("name: http, containerPort: 8000"), "{after}");
        }
    }
}

#[test]
fn beside_an_application_values_are_replaced_where_they_stand() {
    let text = "\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
    - name: app
      env:
        - name: OPENAI_BASE_URL # the old one
          value: https://models.example/v1   # here
        - {name: LAST, value: '1'}
";
    let sidecar = sidecar(Beside::Application);
    let after = written(text, &sidecar, false).unwrap().text;
    assert!(after.contains("          value: http://127.0.0.1:8080/v1   # here\n"), "{after}");
    assert!(
        after.contains("        - {name: LAST, value: '1'}\n        - name: ANTHROPIC_BASE_URL\n")
    );
    assert_eq!(written(&after, &sidecar, false).unwrap().text, after);
    let newer = Sidecar { image: "taximeter:2".to_owned(), ..sidecar };
    let newest = written(&after, &newer, false).unwrap().text;
    assert_eq!(newest, after.replace("taximeter:1", "taximeter:2"));
}

#[test]
fn what_is_in_the_way_is_told_with_document_kind_and_name_and_all_of_it() {
    let text = "\
apiVersion: v1
kind: ConfigMap
---
apiVersion: v1
kind: Pod
metadata: {generateName: p-}
spec: {containers: []}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: s}
spec: {template: {spec: {hostNetwork: true, containers: [{name: e}]}}}
";
    let faults = told(text);
    assert_eq!(faults[0], "document 2, Pod p-: it has no containers");
    assert!(faults[1].starts_with("document 3, StatefulSet s: it has the node's network"));
    assert_eq!(faults.len(), 2);
    let broken = told("apiVersion: v1\nkind: [\n");
    assert!(broken[0].starts_with("column 7: "), "{broken:?}");
    assert!(told("a: 1\na: 2\n")[0].contains("`a` is there twice"));
    assert!(told(&"x".repeat(MANIFEST_BYTES_MAX + 1))[0].contains("longer than"));
}

#[test]
fn a_pod_made_of_aliases_is_told_and_aliases_elsewhere_are_left() {
    let spec = "{containers: [{name: e, image: vllm}]}";
    let shared = format!(
        "apiVersion: v1\nkind: List\nshared: &pod {spec}\nitems:\n\
         - {{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: *pod}}\n"
    );
    let faults = told(&shared);
    assert!(faults[0].starts_with("document 1, List without a name: its YAML has"), "{faults:?}");
    let aside = format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations: {{a: &a x, b: *a}}\n\
         spec: {spec}\n"
    );
    assert!(injected(&aside).contains("{a: &a x, b: *a, "));
}

#[test]
fn aliases_that_multiply_are_not_followed_for_ever() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let times = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{times}]\n"));
    }
    assert!(told(&bomb)[0].contains("more than 1048576 values"));
}

proptest! {
    #[test]
    fn a_damaged_manifest_is_told_or_says_what_it_said_and_more(
        from in 0..DEPLOYMENT.len(),
        cut in 0..40_usize,
        put in "[a-z:{}\\[\\]&*!|>'\"#%@,\\n\\t \u{e4}\u{1f980}-]{0,6}",
    ) {
        let until = (from + cut).min(DEPLOYMENT.len());
        let damaged = [&DEPLOYMENT[..from], &put, &DEPLOYMENT[until..]].concat();
        for beside in [Beside::Engine, Beside::Application] {
            let sidecar = sidecar(beside);
            if let Ok(first) = written(&damaged, &sidecar, false) {
                let again = written(&first.text, &sidecar, false).map(|again| again.text);
                prop_assert_eq!(again, Ok(first.text));
            }
        }
    }
}

#[test]
fn nothing_and_comments_pass() {
    for text in ["", "\n", "# nothing\n", "---\n", "---\n---\n# a\n", "x\n"] {
        assert_eq!(injected(text), text);
    }
}
