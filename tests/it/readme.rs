//! What README and the book show can be done as it stands.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::gateway::{bounded, taximeter};

/// Variables that configurations of the book read.
const SECRETS: [&str; 10] = [
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "COHERE_API_KEY",
    "VLLM_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "OPENMETER_TOKEN",
    "TAXIMETER_ADMIN_TOKEN",
    "COLLECTOR_KEY",
    "PGPASSWORD",
];

struct Page {
    /// From the root of the repository.
    name: String,
    text: String,
}

/// A fenced block of a page.
struct Block<'a> {
    /// What stands behind the opening fence.
    info: &'a str,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The Markdown files of one folder.
fn pages_of(folder: &str) -> Vec<Page> {
    let files = fs::read_dir(root().join(folder)).expect("a folder of pages");
    let mut names: Vec<_> = files
        .map(|file| file.expect("a file").file_name().into_string().expect("UTF-8"))
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("{folder}/{name}"))
        .collect();
    names.sort();
    names.into_iter().map(page).collect()
}

fn page(name: String) -> Page {
    let text = fs::read_to_string(root().join(&name)).expect("a page");
    Page { name, text }
}

/// README and each page of the book.
fn book() -> Vec<Page> {
    let mut pages = vec![page("README.md".to_owned())];
    pages.extend(pages_of("docs"));
    pages.extend(pages_of("docs/recipes"));
    pages.extend(pages_of("docs/reference"));
    pages
}

fn blocks(page: &Page) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut lines = page.text.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.trim_start().strip_prefix("```") else { continue };
        let block = lines.by_ref().take_while(|line| line.trim_start() != "```");
        let text: String = block.map(|line| format!("{line}\n")).collect();
        blocks.push(Block { info: info.trim(), text });
    }
    blocks
}

/// Holds each configuration of a page against `taximeter check`; the number of them.
fn check_configurations(page: &Page) -> usize {
    let name = &page.name;
    let dir = tempfile::tempdir().unwrap();
    let blocks = blocks(page);
    let mut files = Vec::new();
    for block in &blocks {
        if let Some(file) = block.info.strip_prefix("yaml file=") {
            fs::write(dir.path().join(file), &block.text).unwrap();
            files.push(file);
        } else if block.info.starts_with("yaml fragment") {
            let parsed = serde_saphyr::from_str::<Value>(&block.text);
            assert!(parsed.is_ok(), "{name}: {}\n{:?}", block.text, parsed.err());
        }
    }
    let whole: Vec<_> = blocks.iter().filter(|block| block.info == "yaml").collect();
    let file = dir.path().join("taximeter.yaml");
    for block in &whole {
        fs::write(&file, &block.text).unwrap();
        let mut check = bounded();
        check.arg("check").arg(&file);
        for secret in SECRETS {
            check.env(secret, "a-secret-of-sixteen-and-more");
        }
        let checked = check.output().unwrap();
        let mistakes = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success(), "{name}: {}\n{mistakes}", block.text);
    }
    for file in files {
        let used = whole.iter().any(|block| block.text.contains(file));
        assert!(used, "{name}: no configuration names {file}, so nothing checks it");
    }
    whole.len()
}

#[test]
fn every_configuration_of_the_book_is_good() {
    let checked: usize = book().iter().map(check_configurations).sum();
    assert!(checked >= 20, "the book configures by example: {checked}");
}

/// The lines of a block that a shell is given. A backslash at the end joins two.
fn typed(block: &Block<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = block.text.lines();
    while let Some(line) = rest.next() {
        let line = match block.info {
            "console" => line.trim_start().strip_prefix("$ "),
            "sh" => Some(line),
            _ => None,
        };
        let Some(line) = line else { continue };
        let mut whole = line.to_owned();
        while whole.ends_with('\\') {
            whole.pop();
            whole.push_str(rest.next().unwrap_or_default());
        }
        lines.push(whole);
    }
    lines
}

/// The simple commands of a line of a shell, as words: without pipes, redirections and comments.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let (mut word, mut quote, mut redirected) = (String::new(), None, false);
    for c in line.chars().chain([' ']) {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '#') if word.is_empty() => break,
            (None, ' ' | '|' | '&' | ';' | '<' | '>' | '(' | ')') => {
                if !word.is_empty() {
                    let word = std::mem::take(&mut word);
                    if !std::mem::take(&mut redirected) {
                        found.last_mut().unwrap().push(word);
                    }
                }
                match c {
                    ' ' => {}
                    '<' | '>' => redirected = true,
                    _ => found.push(Vec::new()),
                }
            }
            (_, c) => word.push(c),
        }
    }
    found.retain(|words| !words.is_empty());
    found
}

/// What a command gives to our program, on this machine or in a container.
fn arguments(words: &[String]) -> Option<&[String]> {
    let in_image = words.iter().any(|word| word == "run" || word == "exec");
    let program = |word: &String| match word.as_str() {
        "/taximeter" => in_image,
        other => in_image && other.starts_with("taximeter:"),
    };
    if words.first().is_some_and(|word| word == "taximeter") {
        return words.get(1..);
    }
    let cargo = words.first().is_some_and(|word| word == "cargo");
    let at = if cargo && words.get(1).is_some_and(|word| word == "run") {
        words.iter().position(|word| word == "--")?
    } else {
        words.iter().position(program)?
    };
    words.get(at + 1..)
}

/// The commands of our program that a page shows, in blocks and within its text.
fn shown(page: &Page) -> BTreeSet<Vec<String>> {
    let blocks = blocks(page);
    let typed = blocks.iter().flat_map(typed);
    let prose = page.text.split("```").step_by(2);
    let spans = prose.flat_map(|text| text.split('`').skip(1).step_by(2));
    let spans = spans.filter(|span| span.starts_with("taximeter "));
    // What stands for any command or any value is not parsed.
    let spans = spans.filter(|span| !span.contains("COMMAND") && !span.contains('…'));
    let lines: Vec<_> = typed.chain(spans.map(str::to_owned)).collect();
    let all = lines.iter().flat_map(|line| commands(line));
    all.filter_map(|words| arguments(&words).map(<[String]>::to_vec)).collect()
}

#[test]
fn every_command_of_the_book_has_its_flags_and_values() {
    let mut pages = book();
    pages.push(page("deploy/README.md".to_owned()));
    pages.extend(pages_of("deploy/prometheus/runbooks"));
    let mut seen = BTreeSet::new();
    for page in &pages {
        for words in shown(page) {
            // With `--help` behind it, a command is read to its end, and does nothing.
            let output = taximeter(words.iter().map(String::as_str).chain(["--help"]));
            let mistake = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {words:?}\n{mistake}", page.name);
            seen.insert(words);
        }
    }
    assert!(seen.len() >= 60, "the book shows commands: {seen:?}");
}

/// The commands that the help of `words` lists, each with what stands before it.
fn listed(words: &[&str]) -> Vec<String> {
    let output = taximeter(words.iter().copied().chain(["--help"]));
    let help = String::from_utf8(output.stdout).unwrap();
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // What goes on with a long description stands further to the right.
    let names = lines.filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let names = names.filter(|name| *name != "help");
    names.map(|name| [words, &[name]].concat().join(" ")).collect()
}

#[test]
fn every_command_of_the_program_is_in_the_book() {
    let text: String = book().into_iter().map(|page| page.text).collect();
    let mut names = listed(&[]);
    assert!(names.len() > 10, "{names:?}");
    for group in ["prices", "keys", "fleet"] {
        names.extend(listed(&[group]));
    }
    for name in names {
        assert!(text.contains(&format!("taximeter {name}")), "taximeter {name}");
    }
}

#[test]
fn the_page_of_limits_names_every_limit_and_no_other() {
    let schema = taximeter(["schema"]).stdout;
    let schema: Value = serde_json::from_slice(&schema).expect("a schema in JSON");
    let limits = schema["properties"]["limits"]["properties"].as_object().expect("limits");
    let limits: BTreeSet<_> = limits.keys().map(String::as_str).collect();
    let page = page("docs/limits.md".to_owned());
    // The first cell of each row has names, in backticks. Keys of other sections have a dot.
    let rows = page.text.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let named = cells.flat_map(|cell| cell.split('`').step_by(2));
    let named = named.filter(|name| !name.is_empty() && !name.contains(['.', ',', ' ']));
    let named: BTreeSet<_> = named.collect();
    assert_eq!(named, limits);
}
