//! `taximeter inject`: text in, text out.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use taximeter_tests::generated::is_fresh;

use crate::gateway::{bounded, taximeter};

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/kubernetes.md")
}

/// The text between two lines of a page, and what stands before and behind it.
fn block<'a>(page: &'a str, fence: &str) -> (&'a str, &'a str, &'a str) {
    let (before, rest) = page.split_once(&format!("{fence}\n")).expect("a block");
    let (block, _) = rest.split_once("```\n").expect("its end");
    (&page[..before.len() + fence.len() + 1], block, &rest[block.len()..])
}

/// Runs `inject` on what is piped into it.
pub(crate) fn piped(words: &[&str], text: &str) -> Output {
    let mut command = bounded();
    command.arg("inject").args(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("run taximeter");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("write the manifest");
    drop(input);
    child.wait_with_output().expect("its output")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// What stands before the manifest on the page.
const MANIFEST: &str = "The manifest `vllm.yaml`:\n\n```yaml fragment";
const IMAGE: [&str; 2] = ["--image", "registry.example/taximeter:0.1.0"];

#[test]
fn the_page_shows_what_is_added() {
    let written = std::fs::read_to_string(page()).expect("the page");
    let manifest = block(&written, MANIFEST).1;
    let injected = piped(&IMAGE, manifest);
    assert_eq!((text(&injected.stderr), injected.status.code()), ("", Some(0)));
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("before"), manifest).expect("write it");
    std::fs::write(folder.path().join("after"), &injected.stdout).expect("write it");
    let mut diff = Command::new("diff");
    let diff = diff.args(["-U", "2", "before", "after"]).current_dir(folder.path());
    let diff = diff.output().expect("run diff").stdout;
    // The names of the files have times behind them.
    let diff: String = text(&diff).lines().skip(2).map(|line| format!("{line}\n")).collect();
    let with_diff = |stands: &str| {
        let (before, _, behind) = block(stands, "```diff");
        [before, &diff, behind].concat()
    };
    assert_eq!(is_fresh("docs/kubernetes.md", with_diff), Ok(()));
}

#[test]
fn a_second_run_changes_nothing_and_another_image_only_that() {
    let manifest = std::fs::read_to_string(page()).expect("the page");
    let manifest = block(&manifest, MANIFEST).1;
    let once = piped(&IMAGE, manifest).stdout;
    let twice = piped(&IMAGE, text(&once));
    assert_eq!(text(&twice.stdout), text(&once));
    let newer = piped(&["--image", "registry.example/taximeter:2"], text(&once)).stdout;
    assert_eq!(text(&newer), text(&once).replace("/taximeter:0.1.0", "/taximeter:2"));
}

#[test]
fn the_configuration_that_is_added_is_a_good_one() {
    let app = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n\
               spec: {containers: [{name: app, image: app}]}\n";
    let options = ["--beside", "application", "--admin-secret", "admin"];
    let injected = piped(&options, app).stdout;
    let key = r#""taximeter.io/config":"#;
    let (_, rest) = text(&injected).split_once(key).expect("the annotation");
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    let configuration = values.next().expect("a text").expect("JSON");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let token = folder.path().join("token");
    std::fs::write(&token, "a-token-for-the-admin-address").expect("write it");
    let configuration =
        configuration.replace("/run/secrets/taximeter/token", &token.to_string_lossy());
    let file = folder.path().join("taximeter.yaml");
    std::fs::write(&file, configuration).expect("write it");
    let mut check = bounded();
    for name in ["TAXIMETER_TENANT", "K8S_POD_NAME", "K8S_NAMESPACE_NAME", "K8S_NODE_NAME"] {
        check.env(name, "shop");
    }
    let checked = check.arg("check").arg(&file).output().expect("run taximeter");
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    assert!(
        text(&checked.stdout)
            .contains("other callers are tenant shop; clients connect to 127.0.0.1:8080")
    );
}

#[test]
fn what_is_in_the_way_is_on_stderr_and_nothing_is_written() {
    let manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: good}\n\
                    spec: {containers: [{name: e, image: vllm}]}\n---\n\
                    apiVersion: batch/v1\nkind: Job\nmetadata: {name: bad}\n\
                    spec: {template: {spec: {hostNetwork: true, containers: [{name: e}]}}}\n";
    let refused = piped(&[], manifest);
    assert_eq!((text(&refused.stdout), refused.status.code()), ("", Some(64)));
    let told = text(&refused.stderr);
    assert!(
        told.starts_with("standard input:6: document 2, Job bad: it has the node's network"),
        "{told}"
    );
    assert!(told.ends_with("1 problem; nothing was written\n"), "{told}");
    let broken = piped(&[], "a: [\n");
    assert_eq!((text(&broken.stdout), broken.status.code()), ("", Some(64)));
    assert!(text(&broken.stderr).starts_with("standard input:1: column 4: "));
    let missing = taximeter(["inject", "/nowhere/pod.yaml"]);
    assert_eq!(missing.status.code(), Some(64));
    assert!(text(&missing.stderr).starts_with("/nowhere/pod.yaml: cannot be read: No such file"));
}

#[test]
fn containers_of_an_unknown_kind_are_named_and_nothing_is_written_unless_allowed() {
    let cluster = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: c}\n\
                   spec:\n  headGroupSpec:\n    template: {spec: {containers: [{name: e}]}}\n";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("ray.yaml");
    std::fs::write(&file, cluster).expect("write it");
    let file = file.to_str().expect("a path");
    let refused = taximeter(["inject", file]);
    assert_eq!((text(&refused.stdout), refused.status.code()), ("", Some(1)));
    let told = text(&refused.stderr);
    let place = format!("{file}:6: document 1, RayCluster c: has containers at ");
    assert!(told.starts_with(&place), "{told}");
    let allowed = taximeter(["inject", "--allow-unknown", file]);
    assert_eq!((text(&allowed.stdout), allowed.status.code()), (cluster, Some(0)));
    assert!(text(&allowed.stderr).starts_with("document 1, RayCluster c: left as it is"));
}

#[test]
fn what_has_no_pods_passes_and_is_told() {
    let service = "apiVersion: v1\nkind: Service   # of nobody\nmetadata: {name: s}\n";
    let passed = piped(&[], service);
    assert_eq!((text(&passed.stdout), passed.status.code()), (service, Some(0)));
    assert_eq!(text(&passed.stderr), "no sidecar was added: no pod in the input needs one\n");
}
