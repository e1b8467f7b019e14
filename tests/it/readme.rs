//! What the README shows can be done as it stands.

use std::fs;

use crate::gateway;

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
