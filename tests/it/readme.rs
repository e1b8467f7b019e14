//! What the README shows can be done as it stands.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::engine::Engine;
use crate::gateway::{self, Gateway};

/// Each `yaml` block of the README: the name it has, if it has one, and its text.
fn yaml_blocks(readme: &str) -> Vec<(Option<String>, String)> {
    let mut blocks = Vec::new();
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```yaml") else { continue };
        let name = info.trim().strip_prefix("file=").map(str::to_owned);
        let text: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push((name, text.join("\n")));
    }
    blocks
}

#[test]
fn every_configuration_in_the_readme_is_good() {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let blocks = yaml_blocks(&readme);
    let (files, configurations): (Vec<_>, Vec<_>) =
        blocks.into_iter().partition(|(name, _)| name.is_some());
    for (name, text) in files {
        fs::write(dir.path().join(name.unwrap()), text).unwrap();
    }
    assert!(configurations.len() >= 3, "the README configures by example");
    for (number, (_, text)) in configurations.iter().enumerate() {
        let file = dir.path().join(format!("{number}.yaml"));
        fs::write(&file, text).unwrap();
        let checked = gateway::bounded()
            .args(["check".as_ref(), file.as_os_str()])
            .env("OPENAI_API_KEY", "sk-x")
            .env("ANTHROPIC_API_KEY", "sk-y")
            .env("GEMINI_API_KEY", "sk-g")
            .env("COHERE_API_KEY", "sk-d")
            .env("AWS_BEARER_TOKEN_BEDROCK", "sk-e")
            .env("OPENMETER_TOKEN", "sk-z")
            .env("PGPASSWORD", "hunter2")
            .env("COLLECTOR_KEY", "sk-c")
            .output()
            .unwrap();
        assert!(checked.status.success(), "{text}\n{}", String::from_utf8_lossy(&checked.stderr));
    }
}

/// The lines of a section of a file, as names and values.
fn section<'a>(text: &'a str, name: &str) -> BTreeMap<&'a str, &'a str> {
    let lines = text.lines().skip_while(|line| line.strip_suffix(':') != Some(name)).skip(1);
    lines
        .map_while(|line| line.strip_prefix("  ")?.split_once(": "))
        .map(|(key, value)| (key, value.split(" #").next().unwrap_or(value).trim()))
        .collect()
}

#[test]
fn every_limit_is_in_the_readme_with_its_default() {
    /// Those without a fixed one: they depend on the machine, or need not be there.
    const NO_DEFAULT: [&str; 4] = [
        "bodies_total_bytes_max",
        "memory_bytes_max",
        "connections_per_peer_max",
        "requests_per_tenant_max",
    ];
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let said = section(&readme, "limits");
    let schema = gateway::taximeter(["schema"]).stdout;
    let schema: Value = serde_json::from_slice(&schema).expect("a schema in JSON");
    let limits = schema["properties"]["limits"]["properties"].as_object().expect("limits");
    let named: BTreeSet<_> = limits.keys().map(String::as_str).collect();
    assert_eq!(said.keys().copied().collect::<BTreeSet<_>>(), named);
    let engine = Engine::start();
    let status = Gateway::before(&engine).admin("/api/v1/status").json();
    for (name, value) in said.into_iter().filter(|(name, _)| !NO_DEFAULT.contains(name)) {
        assert_eq!(status["limits"][name].to_string(), value, "{name}");
    }
}

fn page(path: &str) -> String {
    fs::read_to_string(format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn every_file_that_the_page_of_deploy_leads_to_is_there() {
    let deploy = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy"));
    let page = page("deploy/README.md");
    let links: Vec<_> =
        page.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()).collect();
    assert!(links.len() > 20, "{links:?}");
    for link in links {
        assert!(deploy.join(link).exists(), "{link}");
    }
}

#[test]
fn every_command_of_the_operations_guide_is_one_and_has_its_flags() {
    let guide = page("docs/operations.md") + &page("deploy/README.md");
    let lines = guide.lines().filter(|line| line.starts_with("taximeter "));
    let spans = guide.split('`').skip(1).step_by(2).filter(|span| span.starts_with("taximeter "));
    let commands: std::collections::BTreeSet<_> = lines.chain(spans).collect();
    assert!(commands.len() >= 6, "{commands:?}");
    for command in commands {
        let words: Vec<_> = command.split_whitespace().skip(1).collect();
        let names = words.iter().take(if words[0] == "keys" { 2 } else { 1 });
        let output = gateway::taximeter(names.chain([&"--help"]));
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{command}");
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(flag), "{command}: {flag}");
        }
    }
}
