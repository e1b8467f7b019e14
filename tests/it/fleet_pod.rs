//! What a gateway in a pod is told without asking the cluster: the pod's annotations, in a file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::fleet_scraping::{Source, await_source, metrics, text};
use crate::gateway::{Setup, taximeter};

/// A volume in which Kubernetes shows something of the pod.
struct Volume {
    folder: TempDir,
    versions: u32,
}

impl Volume {
    fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder"), versions: 0 }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("annotations")
    }

    /// Swaps a link, as the kubelet does.
    fn show(&mut self, annotations: &str) {
        self.versions += 1;
        let at = |name: &str| self.folder.path().join(name);
        let version = format!("..{}", self.versions);
        fs::create_dir(at(&version)).expect("a folder");
        fs::write(at(&version).join("annotations"), annotations).expect("write it");
        symlink(&version, at("..data_tmp")).expect("a link");
        fs::rename(at("..data_tmp"), at("..data")).expect("swap it");
        if self.versions == 1 {
            symlink("..data/annotations", self.file()).expect("a link");
        }
    }
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn annotations_of_the_pod_name_a_place_and_what_is_wrong_with_them_is_stated() {
    let (engine, beside) = (Source::saying(text(&metrics(1))), Source::saying(text(&metrics(2))));
    let mut volume = Volume::empty();
    let file = name(&volume.file());
    let upstream = format!("name: engine, url: \"http://{}\", dialect: openai", engine.address);
    let fleet = format!("fleet: {{hosts: {{local: off}}, annotations: {file:?}}}");
    let gateway = Setup::with_upstream(&upstream).with(&fleet).start();
    let state = |is: &str| {
        let is = is.to_owned();
        move |source: &Value| source["state"] == is.as_str()
    };
    let missing = await_source(&gateway, &file, state("failing"));
    assert_eq!(
        (&missing["cause"], &missing["kind"]),
        (&"unreadable".into(), &"annotations".into())
    );

    let annotations = |port: u16| {
        format!(
            "kubernetes.io/config.seen=\"2026-11-27T10:00:00\"\nnote=\"say \\\"hi\\\"\\n\"\n\
             prometheus.io/port=\"{port}\"\nprometheus.io/scrape=\"true\""
        )
    };
    volume.show(&annotations(beside.address.port()));
    let found = await_source(&gateway, &beside.url(), state("up"));
    assert_eq!(
        (&found["kind"], &found["upstreams"]),
        (&"engine".into(), &Value::Array(Vec::new()))
    );
    let read = await_source(&gateway, &file, state("up"));
    assert_eq!((&read["cause"], &read["failed"]), (&Value::Null, &1.into()));

    // The address of an upstream is asked once.
    volume.show(&annotations(engine.address.port()));
    await_source(&gateway, &file, |source| source["asked"] == 3);
    let sources = gateway.admin("/api/v1/fleet").json()["sources"].clone();
    let names: Vec<_> =
        sources.as_array().expect("a list").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, [&Value::from(engine.url()), &Value::from(file.clone())]);

    let wrong = annotations(1).replace("\"1\"", "\"http\"");
    volume.show(&wrong);
    let told = await_source(&gateway, &file, |source| source["cause"] == "annotation");
    assert_eq!(told["why"], "prometheus.io/port: \"http\" is no port, from 1 to 65535");
    let checked = taximeter(["check".as_ref(), gateway.config_file().as_os_str()]);
    let said = String::from_utf8_lossy(&checked.stdout);
    let line = format!("fleet.annotations, {file}: prometheus.io/port: \"http\" is no port");
    assert!(checked.status.success() && said.contains(&line), "{said}");
}
