use serde_json::json;

use super::*;
use crate::sample::sidecar;

/// The pod with its sidecar; a second injection changes nothing.
fn injected(pod: &Value, sidecar: &Sidecar) -> Value {
    let Injected { pod, notes } = inject(pod, sidecar, false).unwrap().expect("a sidecar");
    let again = inject(&pod, sidecar, false).unwrap().expect("a sidecar");
    assert_eq!(again, Injected { pod: pod.clone(), notes });
    pod
}

fn refused(pod: &Value, sidecar: &Sidecar) -> String {
    inject(pod, sidecar, false).expect_err("a pod that does not do").to_string()
}

fn vllm(ports: &Value) -> Value {
    json!({
        "metadata": {"generateName": "vllm-"},
        "spec": {"containers": [{
            "name": "engine",
            "image": "vllm/vllm-openai:v0.12.0",
            "ports": ports,
            "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}},
        }]},
    })
}

fn application(env: &Value) -> Value {
    json!({"metadata": {}, "spec": {"containers": [{"name": "app", "image": "a", "env": env}]}})
}

fn ours(pod: &Value) -> &Value {
    named(list(&pod["spec"], "initContainers"), NAME).expect("the sidecar")
}

fn configuration(pod: &Value) -> &str {
    pod["metadata"]["annotations"][CONFIG].as_str().expect("a configuration")
}

fn variable<'a>(pod: &'a Value, container: usize, name: &str) -> &'a Value {
    named(list(&pod["spec"]["containers"][container], "env"), name).unwrap_or(&Value::Null)
}

#[test]
fn beside_an_engine_the_name_of_its_port_becomes_ours_and_its_probes_keep_asking_it() {
    let before = vllm(&json!([{"name": "http", "containerPort": 8000}]));
    let pod = injected(&before, &sidecar(Beside::Engine));
    let engine = &pod["spec"]["containers"][0];
    assert_eq!(engine["ports"], json!([{"containerPort": 8000}]));
    assert_eq!(engine["readinessProbe"]["httpGet"]["port"], 8000);
    let ours = ours(&pod);
    assert_eq!(ours["restartPolicy"], "Always");
    assert_eq!(ours["ports"], json!([{"name": "http", "containerPort": 8080}]));
    let words = ["startupProbe", "readinessProbe", "livenessProbe"]
        .map(|probe| ours[probe]["exec"]["command"].as_array().expect("asks us").len());
    assert_eq!(words, [2, 3, 2], "whether it lives, and once whether it is ready");
    assert!(configuration(&pod).contains("{name: engine, url: \"http://127.0.0.1:8000\"}"));
    assert!(configuration(&pod).starts_with("listen: 0.0.0.0:8080\n"));
    assert_eq!(pod["metadata"]["labels"][SIDECAR], "engine");
    assert_eq!(pod["metadata"]["generateName"], "vllm-");
}

#[test]
fn the_sidecar_is_the_first_of_the_init_containers_and_stays_where_it_is() {
    let mut before = vllm(&json!([]));
    before["spec"]["initContainers"] = json!([{"name": "fetch"}]);
    before["spec"]["volumes"] = json!([{"name": "models"}]);
    let mut pod = injected(&before, &sidecar(Beside::Engine));
    let names = |pod: &Value, key| -> Vec<String> {
        list(&pod["spec"], key).iter().map(|one| name_of(one).to_owned()).collect()
    };
    assert_eq!(names(&pod, "initContainers"), ["taximeter", "fetch"]);
    assert_eq!(names(&pod, "volumes"), ["models", "taximeter-config", "taximeter-data"]);
    // Another webhook came after us.
    list_in(&mut pod["spec"], "initContainers").unwrap().insert(0, json!({"name": "mesh"}));
    let again = injected(&pod, &sidecar(Beside::Engine));
    assert_eq!(names(&again, "initContainers"), ["mesh", "taximeter", "fetch"]);
}

#[test]
fn another_version_replaces_the_one_that_is_there_and_nothing_else() {
    let before = vllm(&json!([{"name": "http", "containerPort": 8000}]));
    let old = injected(&before, &sidecar(Beside::Engine));
    let newer = Sidecar { image: "taximeter:2".to_owned(), ..sidecar(Beside::Engine) };
    let new = injected(&old, &newer);
    let patch = serde_json::to_value(crate::patch::between(&old, &new)).unwrap();
    let path = "/spec/initContainers/0/image";
    assert_eq!(patch, json!([{"op": "replace", "path": path, "value": "taximeter:2"}]));
}

#[test]
fn beside_something_else_what_was_changed_before_is_put_back() {
    let before = vllm(&json!([{"name": "http", "containerPort": 8000}]));
    let pod = injected(&before, &sidecar(Beside::Engine));
    let pod = injected(&pod, &sidecar(Beside::Application));
    assert_eq!(pod["spec"]["containers"][0]["ports"][0]["name"], "http");
    assert!(variable(&pod, 0, "OPENAI_BASE_URL").is_object());
    assert!(ours(&pod).get("ports").is_none());
    let pod = injected(&pod, &sidecar(Beside::Engine));
    assert_eq!(pod["spec"]["containers"][0]["env"], json!([]));
    assert_eq!(ours(&pod)["ports"][0]["name"], "http");
}

#[test]
fn the_engines_port_is_the_one_that_it_is_told_declares_or_has_by_default() {
    let port = |container: Value, sidecar: &Sidecar| {
        engine::find(&[container], sidecar).map(|engine| engine.port).map_err(|why| why.to_string())
    };
    let any = sidecar(Beside::Engine);
    let told = json!({"name": "e", "args": ["--model", "m", "--port", "9000"],
                      "ports": [{"containerPort": 1}]});
    assert_eq!(port(told.clone(), &any), Ok(9000));
    assert_eq!(port(told, &Sidecar { engine_port: Some(7), ..any.clone() }), Ok(7));
    let script = json!({"name": "e", "command": ["sh", "-c", "exec serve --port=9001 m"]});
    assert_eq!(port(script, &any), Ok(9001));
    let several = json!({"name": "e", "ports": [
        {"name": "metrics", "containerPort": 2}, {"name": "http", "containerPort": 3},
    ]});
    assert_eq!(port(several, &any), Ok(3));
    assert_eq!(port(json!({"name": "e", "image": "lmsysorg/sglang:v1"}), &any), Ok(30000));
    let unknown = port(json!({"name": "e", "image": "x"}), &any);
    let why = "which port does container `e` listen on? name it with --engine-port";
    assert_eq!(unknown, Err(why.to_owned()));
}

#[test]
fn of_several_containers_the_engine_is_the_one_that_looks_like_one_or_is_named() {
    let mut pod = vllm(&json!([]));
    let logger = json!({"name": "logger", "image": "busybox", "ports": [{"containerPort": 9}]});
    list_in(&mut pod["spec"], "containers").unwrap().insert(0, logger);
    let found = injected(&pod, &sidecar(Beside::Engine));
    assert!(configuration(&found).contains("127.0.0.1:8000"));
    let named = Sidecar { container: Some("logger".to_owned()), ..sidecar(Beside::Engine) };
    assert!(configuration(&injected(&pod, &named)).contains("127.0.0.1:9"));
    let wrong = Sidecar { container: Some("loger".to_owned()), ..sidecar(Beside::Engine) };
    assert_eq!(refused(&pod, &wrong), "it has no container `loger`, only logger, engine");
    pod["spec"]["containers"][1]["image"] = "mine".into();
    let why = "which of its containers is the engine (logger, engine)? name it with --container";
    assert_eq!(refused(&pod, &sidecar(Beside::Engine)), why);
}

#[test]
fn a_port_that_is_taken_is_left_to_whoever_has_it() {
    let at_8080 = vllm(&json!([{"name": "http", "containerPort": 8080}]));
    let pod = injected(&at_8080, &sidecar(Beside::Engine));
    assert_eq!(ours(&pod)["ports"][0]["containerPort"], 18080);
    assert!(configuration(&pod).contains("url: \"http://127.0.0.1:8080\""));
    let chosen = Sidecar { listen_port: Some(8080), ..sidecar(Beside::Engine) };
    let why = "container `engine` has port 8080 already; choose another with --listen-port";
    assert_eq!(refused(&at_8080, &chosen), why);
    let secret = Sidecar { admin_secret: Some("s".to_owned()), ..sidecar(Beside::Engine) };
    let at_9464 = vllm(&json!([{"name": "http", "containerPort": 9464}]));
    assert!(refused(&at_9464, &secret).contains("has port 9464 already"));
    let silent = json!({"spec": {"containers": [{"name": "e", "args": ["llama-server"]}]}});
    let pod = injected(&silent, &sidecar(Beside::Engine));
    assert_eq!(ours(&pod)["ports"][0]["containerPort"], 18080, "llama.cpp is at 8080 untold");
}

#[test]
fn beside_an_application_what_it_asked_before_is_what_the_sidecar_asks() {
    let before = application(&json!([
        {"name": "A", "value": "1"},
        {"name": "OPENAI_BASE_URL", "value": "https://models.example/v1"},
        {"name": "B", "value": "$(A)"},
    ]));
    let pod = injected(&before, &sidecar(Beside::Application));
    let openai = variable(&pod, 0, "OPENAI_BASE_URL");
    assert_eq!(openai["value"], "http://127.0.0.1:8080/v1");
    assert_eq!(pod["spec"]["containers"][0]["env"][1], *openai, "where it was");
    assert_eq!(variable(&pod, 0, "ANTHROPIC_BASE_URL")["value"], "http://127.0.0.1:8080");
    let text = configuration(&pod);
    assert!(text.contains("{name: openai, url: \"https://models.example/v1\", forward"), "{text}");
    assert!(
        text.contains("name: anthropic, url: \"https://api.anthropic.com\", dialect"),
        "{text}"
    );
    assert!(text.starts_with("listen: 127.0.0.1:8080\n"), "nobody else comes in");
    assert!(ours(&pod).get("ports").is_none());
    for (probe, words) in [
        ("startupProbe", &["/taximeter", "healthy"][..]),
        ("readinessProbe", &["/taximeter", "healthy", "--ready"]),
        ("livenessProbe", &["/taximeter", "healthy"]),
    ] {
        assert_eq!(ours(&pod)[probe]["exec"]["command"], json!(words), "asks from within");
    }
    let admin = named(list(ours(&pod), "env"), "TAXIMETER_ADMIN").expect("where they ask");
    assert_eq!(admin["value"], "127.0.0.1:9464", "whatever a ConfigMap says");
    let tenant = named(list(ours(&pod), "env"), "TAXIMETER_TENANT").unwrap();
    assert_eq!(tenant["valueFrom"]["fieldRef"]["fieldPath"], "metadata.namespace");
    // It is told to ask another host now.
    let mut changed = pod;
    changed["spec"]["containers"][0]["env"][1]["value"] = "https://other.example/v1".into();
    let pod = injected(&changed, &sidecar(Beside::Application));
    assert!(configuration(&pod).contains("https://other.example/v1"));
}

#[test]
fn a_base_url_from_elsewhere_is_handed_on() {
    let source = json!({"configMapKeyRef": {"name": "c", "key": "url"}});
    let before = application(&json!([{"name": "OPENAI_BASE_URL", "valueFrom": source}]));
    let pod = injected(&before, &sidecar(Beside::Application));
    assert!(configuration(&pod).contains("url: \"${env:TAXIMETER_OPENAI_BASE_URL}\""));
    let handed = named(list(ours(&pod), "env"), "TAXIMETER_OPENAI_BASE_URL").unwrap();
    assert_eq!(handed["valueFrom"], source);
    let mut before = application(&json!([]));
    before["spec"]["containers"][0]["envFrom"] = json!([{"secretRef": {"name": "s"}}]);
    let sidecar = sidecar(Beside::Application);
    let notes = inject(&before, &sidecar, false).unwrap().unwrap().notes;
    assert!(notes[0].to_string().contains("say with --upstream what it was"), "{notes:?}");
}

#[test]
fn base_urls_that_cannot_become_one_upstream_are_told() {
    let told = |value: &str| {
        let pod = application(&json!([{"name": "OPENAI_BASE_URL", "value": value}]));
        refused(&pod, &sidecar(Beside::Application))
    };
    let start = "OPENAI_BASE_URL of container `app`";
    assert!(told("http://$(HOST)/v1").starts_with(&format!("{start} is made of other variables;")));
    assert!(told("http://localhost:8080/v1").contains("points at the sidecar's own port"));
    assert!(told("models.example").starts_with(start));
    let mut pod = application(&json!([{"name": "OPENAI_BASE_URL", "value": "http://a/v1"}]));
    let other = json!({"name": "b", "env": [{"name": "OPENAI_BASE_URL", "value": "http://b/v1"}]});
    list_in(&mut pod["spec"], "containers").unwrap().push(other);
    assert!(refused(&pod, &sidecar(Beside::Application)).contains("different values of OPENAI_"));
    let one = Sidecar { container: Some("b".to_owned()), ..sidecar(Beside::Application) };
    let only = injected(&pod, &one);
    assert_eq!(variable(&only, 0, "OPENAI_BASE_URL")["value"], "http://a/v1", "left as it is");
    let url = Some("http://c/v1".to_owned());
    let all = injected(&pod, &Sidecar { upstream: url, ..sidecar(Beside::Application) });
    assert!(configuration(&all).contains("http://c/v1"));
}

#[test]
fn where_metrics_are_read_the_sidecar_is_shown_the_annotations_of_its_pod() {
    let mut before = vllm(&json!([]));
    let volume = |pod: &Value| named(list(&pod["spec"], "volumes"), "taximeter-pod").cloned();
    let mount = |pod: &Value| named(list(ours(pod), "volumeMounts"), "taximeter-pod").cloned();
    let off = injected(&before, &sidecar(Beside::Engine));
    assert_eq!((volume(&off), mount(&off)), (None, None));
    assert!(!configuration(&off).contains("fleet"));
    before["metadata"]["annotations"] = json!({"taximeter.io/fleet": "true"});
    let on = injected(&before, &sidecar(Beside::Engine));
    let item = json!({"path": "annotations", "fieldRef": {"fieldPath": "metadata.annotations"}});
    let shown = json!({"name": "taximeter-pod", "downwardAPI": {"items": [item]}});
    assert_eq!(volume(&on), Some(shown));
    let folder = mount(&on).expect("a mount")["mountPath"].clone();
    assert!(configuration(&on).contains(&format!(
        "fleet: {{annotations: {}/annotations}}\n",
        folder.as_str().expect("a path")
    )));
    // A ConfigMap may name the file too.
    let map = Sidecar { config_map: Some("c".to_owned()), fleet: true, ..sidecar(Beside::Engine) };
    assert!(volume(&injected(&vllm(&json!([])), &map)).is_some());
    // It is told otherwise now.
    let mut changed = on;
    changed["metadata"]["annotations"]["taximeter.io/fleet"] = "false".into();
    let off = injected(&changed, &Sidecar { fleet: true, ..sidecar(Beside::Engine) });
    assert_eq!((volume(&off), mount(&off)), (None, None));
    changed["metadata"]["annotations"]["taximeter.io/fleet"] = "on".into();
    let why = "taximeter.io/fleet: \"on\" is neither \"true\" nor \"false\"";
    assert_eq!(refused(&changed, &sidecar(Beside::Engine)), why);
}

#[test]
fn what_the_pod_says_wins_over_flags_and_its_annotation_over_its_label() {
    let asked = |metadata: Value, only_if_asked| {
        let mut pod = vllm(&json!([]));
        pod["metadata"] = metadata;
        inject(&pod, &sidecar(Beside::Engine), only_if_asked).map(|injected| injected.is_some())
    };
    let key = "taximeter.io/inject";
    assert_eq!(asked(json!({}), true), Ok(false));
    assert_eq!(asked(json!({}), false), Ok(true));
    assert_eq!(asked(json!({"labels": {key: "true"}}), true), Ok(true));
    assert_eq!(asked(json!({"annotations": {key: "true"}}), true), Ok(true));
    let both = json!({"labels": {key: "true"}, "annotations": {key: "false"}});
    assert_eq!(asked(both, true), Ok(false));
    assert_eq!(asked(json!({"labels": {key: "false"}}), false), Ok(false));
    let wrong = asked(json!({"labels": {key: "yes"}}), true).unwrap_err().to_string();
    assert_eq!(wrong, "taximeter.io/inject: \"yes\" is neither \"true\" nor \"false\"");

    let mut pod = vllm(&json!([]));
    pod["metadata"]["annotations"] = json!({
        "taximeter.io/beside": "application",
        "taximeter.io/tenant": "shop",
        "taximeter.io/listen-port": "9000",
        "taximeter.io/upstream": "https://models.example/v1",
    });
    let pod = injected(&pod, &sidecar(Beside::Engine));
    assert!(configuration(&pod).contains("listen: 127.0.0.1:9000"));
    assert!(configuration(&pod).contains("https://models.example/v1"));
    let tenant = named(list(ours(&pod), "env"), "TAXIMETER_TENANT").unwrap();
    assert_eq!(tenant["value"], "shop");
    let mut pod = vllm(&json!([]));
    pod["metadata"]["annotations"] = json!({"taximeter.io/engine-port": "0"});
    let told = refused(&pod, &sidecar(Beside::Engine));
    assert_eq!(told, "taximeter.io/engine-port: \"0\" is no port");
}

#[test]
fn a_tenants_label_must_be_there() {
    let tenant = Some(Tenant::Label("team".to_owned()));
    let sidecar = Sidecar { tenant, ..sidecar(Beside::Engine) };
    let mut pod = vllm(&json!([]));
    assert_eq!(refused(&pod, &sidecar), "it has no label `team`, which names its tenant");
    pod["metadata"]["labels"] = json!({"team": "search"});
    let pod = injected(&pod, &sidecar);
    let env = named(list(ours(&pod), "env"), "TAXIMETER_TENANT").unwrap();
    assert_eq!(env["valueFrom"]["fieldRef"]["fieldPath"], "metadata.labels['team']");
    assert!(configuration(&pod).contains("tenants: {unknown: \"${env:TAXIMETER_TENANT}\"}"));
}

#[test]
fn a_secret_opens_the_admin_address_and_a_config_map_takes_the_annotations_place() {
    let secret = Some("admin".to_owned());
    let open = Sidecar { admin_secret: secret, ..sidecar(Beside::Engine) };
    let before = vllm(&json!([]));
    let pod = injected(&before, &open);
    assert!(configuration(&pod).contains("admin_token: ${file:/run/secrets/taximeter/token}"));
    assert_eq!(
        ours(&pod)["readinessProbe"]["httpGet"],
        json!({"path": "/readyz", "port": "admin"})
    );
    let mapped = Sidecar { config_map: Some("meter".to_owned()), ..sidecar(Beside::Engine) };
    let pod = injected(&pod, &mapped);
    assert!(pod["metadata"]["annotations"].get(CONFIG).is_none());
    let volumes = list(&pod["spec"], "volumes");
    assert_eq!(named(volumes, "taximeter-config").unwrap()["configMap"]["name"], "meter");
    assert!(named(volumes, "taximeter-admin").is_none(), "what is not wanted any more goes");
    let mut before = before;
    let claim = json!([{"name": "taximeter-data", "persistentVolumeClaim": {"claimName": "c"}}]);
    before["spec"]["volumes"] = claim.clone();
    let pod = injected(&before, &mapped);
    assert_eq!(pod["spec"]["volumes"][0], claim[0], "a claim of the pod's own is left");
}

#[test]
fn pods_that_cannot_have_one_say_why() {
    let with = |key: &str, value: Value| {
        let mut pod = vllm(&json!([]));
        pod["spec"][key] = value;
        refused(&pod, &sidecar(Beside::Engine))
    };
    assert!(with("os", json!({"name": "windows"})).starts_with("it is for Windows"));
    let selector = json!({"kubernetes.io/os": "windows"});
    assert!(with("nodeSelector", selector).starts_with("it is for Windows"));
    assert!(with("hostNetwork", json!(true)).contains("`hostNetwork`"));
    assert_eq!(with("containers", json!([])), "it has no containers");
    let foreign = "it has a container `taximeter` that was not injected";
    assert!(with("initContainers", json!([{"name": "taximeter"}])).starts_with(foreign));
    assert!(with("containers", json!([{"name": "taximeter"}])).starts_with(foreign));
    assert_eq!(with("volumes", json!(1)), "`volumes` is not what a pod has there");
    let none = json!({"metadata": {}});
    assert_eq!(refused(&none, &sidecar(Beside::Engine)), "it has no containers");
    let mut pod = vllm(&json!([]));
    pod["metadata"]["annotations"] = json!({"taximeter.io/injected": "x"});
    assert!(refused(&pod, &sidecar(Beside::Engine)).contains("was not written by us"));
}

#[test]
fn a_service_that_goes_by_number_is_told_of() {
    let note = |ports: Value| {
        let pod = vllm(&ports);
        let notes = inject(&pod, &sidecar(Beside::Engine), false).unwrap().unwrap().notes;
        notes.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(note(json!([{"name": "http", "containerPort": 8000}])), [""; 0]);
    let told = note(json!([{"containerPort": 8000}]));
    let end = "by its number 8000 goes past the meter; let its targetPort be `http`";
    assert!(told[0].ends_with(end), "{told:?}");
}

#[test]
fn what_the_sidecar_takes_is_told_by_flags_and_by_the_pod() {
    let mut pod = vllm(&json!([]));
    pod["metadata"]["annotations"] = json!({
        "taximeter.io/memory": "1Gi",
        "taximeter.io/cpu": "0.5",
        "taximeter.io/drain-seconds": "20",
    });
    let roomy = Sidecar {
        journal_size: "4Gi".parse().unwrap(),
        memory: "256Mi".parse().unwrap(),
        ..sidecar(Beside::Engine)
    };
    let pod = injected(&pod, &roomy);
    let resources = json!({
        "requests": {"cpu": "0.5", "memory": "64Mi"},
        "limits": {"memory": "1Gi"},
    });
    assert_eq!(ours(&pod)["resources"], resources);
    let limits = "limits: {drain_seconds: 20, bodies_total_bytes_max: 268435456}\n";
    assert!(configuration(&pod).contains(limits), "{}", configuration(&pod));
    assert!(configuration(&pod).contains("ledger: {dir_bytes_max: 3865470566}\n"));
    let journal = named(list(&pod["spec"], "volumes"), "taximeter-data").unwrap();
    assert_eq!(journal["emptyDir"]["sizeLimit"], "4Gi");
    let told = |name: &str, value: &str| {
        let mut pod = vllm(&json!([]));
        pod["metadata"]["annotations"] = json!({format!("taximeter.io/{name}"): value});
        refused(&pod, &sidecar(Beside::Engine))
    };
    let why = "taximeter.io/memory: \"64Mi\" is too little; at least 128Mi";
    assert_eq!(told("memory", "64Mi"), why);
    assert!(told("cpu", "half").ends_with("is no number of processors such as 50m or 0.5"));
    assert!(told("drain-seconds", "0").ends_with("is no whole number of seconds from 1 to 86400"));
    assert!(told("drain-seconds", "86401").ends_with("from 1 to 86400"));
    assert!(told("journal-size", "1GB").ends_with("is no number of bytes such as 512Mi"));
}

#[test]
fn another_size_replaces_the_journals_volume_that_was_made_and_no_other() {
    let sized =
        |size: &str| Sidecar { journal_size: size.parse().unwrap(), ..sidecar(Beside::Engine) };
    let journal = |pod: &Value| named(list(&pod["spec"], "volumes"), "taximeter-data").cloned();
    let of = |size: &str| Some(json!({"name": "taximeter-data", "emptyDir": {"sizeLimit": size}}));
    let mut pod = injected(&vllm(&json!([])), &sized("1024Mi"));
    assert_eq!(journal(&pod), of("1024Mi"));
    // As the API server writes it.
    list_in(&mut pod["spec"], "volumes").unwrap()[1] = of("1Gi").unwrap();
    let pod = injected(&pod, &sized("2Gi"));
    assert_eq!(journal(&pod), of("2Gi"));
    let pod = injected(&pod, &sidecar(Beside::Engine));
    assert_eq!(journal(&pod), of("1Gi"));

    let mut theirs = vllm(&json!([]));
    theirs["spec"]["volumes"] = json!([of("3Gi")]);
    let pod = injected(&theirs, &sized("2Gi"));
    assert_eq!(journal(&pod), of("3Gi"), "the pod's own");
    assert!(!configuration(&pod).contains("dir_bytes_max"), "nobody says how much of it is ours");
}
