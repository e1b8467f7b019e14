//! The rules of the house, kept by a program: who may depend on what, how long a file may be, who
//! reads the clock.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

mod imports;

/// Crates without sockets, runtime, clock and files; and which of ours each may name.
const PURE: &[(&str, &[&str])] = &[
    ("taximeter-collections", &[]),
    ("taximeter-json", &[]),
    ("taximeter-yaml", &[]),
    ("taximeter-pricing", &["taximeter-json", "taximeter-yaml"]),
    ("taximeter-tokenizer", &["taximeter-json"]),
    ("taximeter-fleet", &[]),
    ("taximeter-framing", &["taximeter-json"]),
    ("taximeter-meter", &["taximeter-framing", "taximeter-json", "taximeter-pricing"]),
    ("taximeter-request", &["taximeter-json", "taximeter-meter"]),
    ("taximeter-ledger", &["taximeter-json", "taximeter-pricing"]),
    ("taximeter-dimensions", &["taximeter-json", "taximeter-ledger", "taximeter-request"]),
    ("taximeter-columnar", &["taximeter-json", "taximeter-ledger", "taximeter-pricing"]),
    (
        "taximeter-billing",
        &["taximeter-columnar", "taximeter-json", "taximeter-ledger", "taximeter-pricing"],
    ),
    ("taximeter-sessions", &["taximeter-billing", "taximeter-columnar", "taximeter-ledger"]),
    (
        "taximeter-database",
        &[
            "taximeter-billing",
            "taximeter-columnar",
            "taximeter-json",
            "taximeter-ledger",
            "taximeter-pricing",
            "taximeter-sessions",
        ],
    ),
    (
        "taximeter-config",
        &[
            "taximeter-dimensions",
            "taximeter-ledger",
            "taximeter-meter",
            "taximeter-pricing",
            "taximeter-tokenizer",
            "taximeter-yaml",
        ],
    ),
    ("taximeter-sidecar", &["taximeter-config"]),
];

/// Crates with sockets, files or a clock; and which of ours each may name beside the pure ones.
const IMPURE_CRATES: &[(&str, &[&str])] = &[
    ("taximeter-system", &[]),
    ("taximeter-resident", &[]),
    ("taximeter-simulator", &[]),
    ("taximeter-control", &["taximeter-net", "taximeter-system"]),
    ("taximeter-net", &["taximeter-system"]),
    ("taximeter-journal", &["taximeter-system"]),
    ("taximeter-postgres", &["taximeter-journal", "taximeter-net"]),
    ("taximeter-sqlite", &["taximeter-journal"]),
    (
        "taximeter-store",
        &[
            "taximeter-journal",
            "taximeter-net",
            "taximeter-postgres",
            "taximeter-sqlite",
            "taximeter-system",
        ],
    ),
    ("taximeter-export", &["taximeter-net", "taximeter-store", "taximeter-system"]),
    (
        "taximeter-push",
        &["taximeter-journal", "taximeter-net", "taximeter-store", "taximeter-system"],
    ),
    ("taximeter-telemetry", &["taximeter-journal", "taximeter-net", "taximeter-system"]),
    (
        "taximeter-gateway",
        &[
            "taximeter-journal",
            "taximeter-net",
            "taximeter-store",
            "taximeter-system",
            "taximeter-telemetry",
        ],
    ),
    (
        "taximeter-admin",
        &[
            "taximeter-export",
            "taximeter-gateway",
            "taximeter-journal",
            "taximeter-net",
            "taximeter-store",
            "taximeter-system",
            "taximeter-telemetry",
        ],
    ),
    ("taximeter-proxy", &["taximeter-commands"]),
    ("taximeter-top", &["taximeter-net", "taximeter-system"]),
];

/// Programs and tests: they may name any crate.
const MAY_NAME_ALL: &[&str] = &["taximeter-commands", "taximeter-tests", "taximeter-benches"];

/// The folders of `proxy/`: one crate each, and `src` for the program.
const PROXY_FOLDERS: &[&str] = &[
    "admin",
    "billing",
    "collections",
    "columnar",
    "commands",
    "control",
    "crc64",
    "database",
    "dimensions",
    "export",
    "fleet",
    "framing",
    "gateway",
    "journal",
    "json",
    "ledger",
    "meter",
    "net",
    "postgres",
    "push",
    "request",
    "resident",
    "sessions",
    "sidecar",
    "simulator",
    "sqlite",
    "src",
    "store",
    "system",
    "telemetry",
    "top",
    "yaml",
];

/// The one group of folders that import each other: a gateway, its connections and their requests.
const ONE_ROOM: &[&str] =
    &["proxy/gateway/src/gateway", "proxy/gateway/src/journey", "proxy/gateway/src/listen"];

/// Longest crate, and what the program itself may have, in lines.
const CRATE_LINES_MAX: usize = 20_000;
const PROGRAM_LINES_MAX: usize = 8_000;

/// Simulated engine: stands on its own.
const SIMULATOR: &str = "taximeter-simulator";

/// What a pure crate may not reach, through whomever.
const IMPURE: &[&str] = &[
    "axum",
    "hyper",
    "metrics",
    "mio",
    "opentelemetry",
    "rusqlite",
    "rustls",
    "socket2",
    "tokio",
    "tonic",
];

/// The top level of the repository, beside dot-files.
const TOP_LEVEL: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "benches",
    "clippy.toml",
    "config",
    "deny.toml",
    "deploy",
    "docs",
    "pricing",
    "proxy",
    "rust-toolchain.toml",
    "tests",
    "tokenizer",
];

/// Longest source file, in lines.
const FILE_LINES_MAX: usize = 500;

/// The only file that reads the clock for the product.
const CLOCK: &str = "proxy/system/src/clock.rs";
/// Programs that measure or simulate have a clock of their own.
const OWN_CLOCK: &[&str] = &["benches/", "proxy/simulator/", "tests/"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository").to_owned()
}

fn output_of(command: &mut Command) -> String {
    let output = command.current_dir(root()).output().expect("run it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Paths of all files that are committed or about to be.
fn files() -> Vec<String> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let listed = output_of(&mut git);
    listed.lines().filter(|path| root().join(path).is_file()).map(str::to_owned).collect()
}

fn sources() -> Vec<(String, String)> {
    let rust = files().into_iter().filter(|path| path.ends_with(".rs"));
    rust.map(|path| {
        let text = std::fs::read_to_string(root().join(&path)).expect("a source file");
        (path, text)
    })
    .collect()
}

/// Package → packages that it is built with; what only its tests need is left out.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    let metadata = output_of(cargo.args(["metadata", "--format-version", "1", "--locked"]));
    let metadata: Value = serde_json::from_str(&metadata).expect("JSON");
    let members = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    let names: BTreeMap<String, String> =
        members(&metadata, "packages").iter().map(|p| (text(&p["id"]), text(&p["name"]))).collect();
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for node in members(&metadata["resolve"], "nodes") {
        let built_with = graph.entry(names[&text(&node["id"])].clone()).or_default();
        for dependency in members(&node, "deps") {
            if members(&dependency, "dep_kinds").iter().any(|kind| kind["kind"] != "dev") {
                built_with.insert(names[&text(&dependency["pkg"])].clone());
            }
        }
    }
    graph
}

/// Everything that `start` is built with, and how it comes to it.
fn reach(graph: &BTreeMap<String, BTreeSet<String>>, start: &str) -> BTreeMap<String, String> {
    let mut paths = BTreeMap::from([(start.to_owned(), start.to_owned())]);
    let mut open = vec![start.to_owned()];
    while let Some(package) = open.pop() {
        for dependency in graph.get(&package).into_iter().flatten() {
            if !paths.contains_key(dependency) {
                paths.insert(dependency.clone(), format!("{} → {dependency}", paths[&package]));
                open.push(dependency.clone());
            }
        }
    }
    paths
}

#[test]
fn pure_crates_reach_no_runtime_no_socket_and_no_database() {
    let graph = dependencies();
    for (package, path) in PURE.iter().flat_map(|(pure, _)| reach(&graph, pure)) {
        assert!(!IMPURE.contains(&package.as_str()), "{path}");
    }
}

#[test]
fn our_crates_depend_on_each_other_in_one_direction() {
    let graph = dependencies();
    let ours = |package: &str| package.starts_with("taximeter-");
    let is_pure = |package: &str| PURE.iter().any(|(pure, _)| *pure == package);
    for (package, dependencies) in graph.iter().filter(|(package, _)| ours(package)) {
        if MAY_NAME_ALL.contains(&package.as_str()) {
            continue;
        }
        let mut rules = PURE.iter().chain(IMPURE_CRATES);
        let (_, may) = rules.find(|(name, _)| name == package).expect(package);
        for dependency in dependencies.iter().filter(|dependency| ours(dependency)) {
            let named = may.contains(&dependency.as_str()) || dependency == "taximeter-collections";
            let pure_below = !is_pure(package) && is_pure(dependency);
            assert!(named || pure_below, "{package} may not name {dependency}");
        }
        if package == SIMULATOR {
            assert!(!dependencies.iter().any(|dependency| ours(dependency)), "{package}");
        }
    }
    for (name, _) in PURE.iter().chain(IMPURE_CRATES) {
        assert!(graph.contains_key(*name), "{name} does not exist, and is guarded in vain");
    }
}

#[test]
fn crates_stay_small_enough_to_be_read() {
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for (path, text) in sources() {
        let Some((folder, _)) = path.split_once("/src/") else { continue };
        *lines.entry(folder.to_owned()).or_default() += text.lines().count();
    }
    assert!(lines.len() > 10, "{lines:?}");
    for (folder, lines) in lines {
        let most = if folder == "proxy" { PROGRAM_LINES_MAX } else { CRATE_LINES_MAX };
        assert!(lines <= most, "{folder} has {lines} lines, more than {most}");
    }
}

#[test]
fn every_folder_of_the_proxy_is_a_crate_of_the_map() {
    let files = files();
    let inside = files.iter().filter_map(|path| path.strip_prefix("proxy/")?.split_once('/'));
    let found: BTreeSet<&str> = inside.map(|(folder, _)| folder).collect();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), PROXY_FOLDERS);
}

#[test]
fn no_two_folders_of_a_crate_import_each_other_but_one_room() {
    let circles = imports::folder_circles(&sources());
    assert_eq!(circles, [ONE_ROOM.join(" ↔ ")]);
}

#[test]
fn the_top_level_of_the_repository_is_the_map() {
    let files = files();
    let first: BTreeSet<&str> = files.iter().filter_map(|path| path.split('/').next()).collect();
    let found: Vec<&str> = first.into_iter().filter(|name| !name.starts_with('.')).collect();
    assert_eq!(found, TOP_LEVEL);
}

/// The rest of a file's first line that starts with a prefix.
fn rest_of_line(path: &str, prefix: &str) -> String {
    let text = std::fs::read_to_string(root().join(path)).expect(path);
    let found = text.lines().find_map(|line| line.strip_prefix(prefix));
    found.unwrap_or_else(|| panic!("{path} has no line `{prefix}…`")).trim_matches('"').to_owned()
}

#[test]
fn every_file_that_names_a_rust_version_names_the_pinned_one() {
    let pinned = rest_of_line("rust-toolchain.toml", "channel = ");
    assert_eq!(pinned.split('.').count(), 3, "{pinned} names one release of Rust");
    let least = rest_of_line("Cargo.toml", "rust-version = ");
    assert!(pinned.starts_with(&format!("{least}.")), "{least} is not of {pinned}");
    let image = format!("docker.io/library/rust:{pinned}-bookworm");
    let base = rest_of_line("deploy/image/Dockerfile", "FROM ");
    assert_eq!(base, format!("{image} AS build"));
    for workflow in ["ci", "release"] {
        let container =
            rest_of_line(&format!(".github/workflows/{workflow}.yaml"), "      image: ");
        assert_eq!(container, image, "{workflow}");
    }
}

#[test]
fn files_are_short() {
    let long: Vec<_> = sources()
        .into_iter()
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > FILE_LINES_MAX)
        .collect();
    assert!(long.is_empty(), "longer than {FILE_LINES_MAX} lines: {long:#?}");
}

#[test]
fn no_two_files_import_each_other() {
    let circles = imports::circles(&sources());
    assert!(
        circles.is_empty(),
        "files that import each other, in circles:\n{}",
        circles.join("\n")
    );
}

#[test]
fn one_file_reads_the_clock() {
    // clippy.toml bans the functions; this watches the doors that may be opened in the ban.
    let door = ["expect(clippy::", "disallowed_methods"].concat();
    for (path, text) in sources() {
        let own = path == CLOCK
            || path.ends_with("/tests.rs")
            || OWN_CLOCK.iter().any(|folder| path.starts_with(folder));
        assert!(
            own || !imports::product(&text).contains(&door),
            "{path} opens a door of its own to what clippy.toml bans"
        );
    }
}

#[test]
fn no_statement_asks_the_clock_of_a_store() {
    // Whose clock differs from ours: times come from entries, and are compared with each other.
    let clocks = ["current_timestamp", "clock_timestamp", "localtimestamp", "'now'", " now()"];
    let stores = ["store", "sqlite", "postgres"].map(|name| format!("proxy/{name}/src/"));
    let is_of_store = |path: &str| stores.iter().any(|folder| path.starts_with(folder));
    for (path, text) in sources().into_iter().filter(|(path, _)| is_of_store(path)) {
        let text = text.to_lowercase();
        let asked = clocks.iter().find(|clock| text.contains(**clock));
        assert_eq!(asked, None, "{path} asks a store what time it is");
    }
}

#[test]
fn nothing_allows_what_the_workspace_denies() {
    let door = ["[allow", "("].concat();
    for (path, text) in sources() {
        assert!(!text.contains(&door), "{path}: expect with a reason instead of allow");
    }
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("a manifest");
    let manifests = files().into_iter().filter(|path| path.ends_with("/Cargo.toml"));
    for manifest in manifests.filter(|path| path != UNSAFE) {
        let has_them = read(&manifest).contains("[lints]\nworkspace = true");
        assert!(has_them, "{manifest} has lints of its own");
    }
    let [all, with_unsafe] = ["Cargo.toml", UNSAFE].map(|path| lints(&read(path)));
    let forbidden = "unsafe_code = \"forbid\"";
    assert!(all.len() >= 20 && all.iter().any(|lint| lint == forbidden));
    for lint in all.iter().filter(|lint| *lint != forbidden) {
        assert!(with_unsafe.contains(lint), "{UNSAFE} lacks {lint}");
    }
    assert!(with_unsafe.iter().any(|lint| lint == "unsafe_code = \"deny\""));
}

/// The one crate that may have `unsafe`, where it says why.
const UNSAFE: &str = "proxy/resident/Cargo.toml";

/// The lints of a manifest.
fn lints(manifest: &str) -> Vec<String> {
    let sections = manifest.split("\n[").filter(|section| section.contains("lints."));
    sections.flat_map(|section| section.lines().skip(1)).map(str::to_owned).collect()
}

/// Each configuration in `deploy/`, by its file: those that are files, and those that manifests
/// carry within them.
fn configurations() -> Vec<(String, String)> {
    let text = |path: &str| std::fs::read_to_string(root().join(path)).expect("a file of deploy/");
    let mut found = Vec::new();
    for path in files().into_iter().filter(|path| path.ends_with(".yaml")) {
        let Some((folder, name)) = path.rsplit_once('/') else { continue };
        let alone = folder == "deploy/examples" || name == "taximeter.yaml";
        if folder.starts_with("deploy/examples") || folder.starts_with("deploy/kustomize") {
            match alone {
                true => found.push((path.clone(), text(&path))),
                false => found.extend(carried(&text(&path)).map(|text| (path.clone(), text))),
            }
        }
    }
    found
}

/// The configurations in the ConfigMaps of a manifest.
fn carried(manifest: &str) -> impl Iterator<Item = String> {
    const KEY: &str = "\n  taximeter.yaml: |\n";
    manifest.split(KEY).skip(1).map(|behind| {
        let lines = behind.lines().take_while(|line| line.starts_with("    ") || line.is_empty());
        lines.map(|line| format!("{}\n", line.get(4..).unwrap_or_default())).collect()
    })
}

#[test]
fn every_example_is_what_editors_are_told_of() {
    let output = crate::gateway::bounded().arg("schema").output().expect("run taximeter");
    let schema = serde_json::from_slice(&output.stdout).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for (example, text) in configurations() {
        let file = serde_saphyr::from_str(&text).expect("YAML");
        let faults: Vec<_> = validator.iter_errors(&file).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{example}: {faults:?}");
    }
}

#[test]
fn every_example_is_a_good_configuration() {
    let configurations = configurations();
    for folder in ["deploy/examples/kubernetes/", "deploy/examples/compose/", "deploy/kustomize/"] {
        let found = configurations.iter().any(|(path, _)| path.starts_with(folder));
        assert!(found, "{folder} has configurations");
    }
    for (example, text) in configurations {
        // Secrets that an example names are somebody else's: stand-ins will do.
        let named = |kind: &str| -> Vec<String> {
            let start = format!("${{{kind}:");
            let rest = text.split(start.as_str()).skip(1);
            rest.filter_map(|rest| rest.split('}').next()).map(str::to_owned).collect()
        };
        let mut stood_in = text.clone();
        for path in named("file") {
            stood_in = stood_in.replace(&format!("${{file:{path}}}"), "a-secret-for-the-test");
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("example.yaml");
        std::fs::write(&file, stood_in).expect("write the example");
        let mut check = crate::gateway::bounded();
        check.arg("check").arg(&file);
        check.envs(named("env").iter().map(|name| (name, "a-secret-for-the-test")));
        let output = check.output().expect("run taximeter");
        assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
