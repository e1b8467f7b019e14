//! Which file of a crate imports which, read from the text.

use std::collections::{BTreeMap, BTreeSet};

/// A file's place in its crate: the folder of the crate, then the names of the modules down to it.
type Module = Vec<String>;

/// Circles in the imports of all crates, each as `a → b → a`.
pub(super) fn circles(sources: &[(String, String)]) -> Vec<String> {
    let files: BTreeMap<Module, (&str, &str)> = sources
        .iter()
        .filter(|(path, _)| !path.ends_with("/tests.rs"))
        .filter_map(|(path, text)| Some((module(path)?, (path.as_str(), text.as_str()))))
        .collect();
    let graph: BTreeMap<&Module, BTreeSet<&Module>> =
        files.iter().map(|(from, (_, text))| (from, imports(from, text, &files))).collect();
    let mut circles = BTreeSet::new();
    for start in graph.keys() {
        if let Some(path) = way(&graph, start) {
            let names: BTreeSet<&str> = path.iter().map(|module| files[*module].0).collect();
            circles.insert(names.into_iter().collect::<Vec<_>>().join(" ↔ "));
        }
    }
    circles.into_iter().collect()
}

/// Circles in the imports between the folders of each crate: a file that stands beside a folder of
/// its name belongs to it, and what lies deeper does too.
pub(super) fn folder_circles(sources: &[(String, String)]) -> Vec<String> {
    let files: BTreeMap<Module, (&str, &str)> = sources
        .iter()
        .filter(|(path, _)| !path.contains("/tests/") && !path.ends_with("/tests.rs"))
        .filter_map(|(path, text)| Some((module(path)?, (path.as_str(), text.as_str()))))
        .collect();
    // The root of a crate has the names of all of its parts, and is no part.
    let folder = |module: &Module| module.get(..2).map(|names| names.join("/"));
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (from, (_, text)) in &files {
        let Some(start) = folder(from) else { continue };
        let reached = imports(from, text, &files).into_iter().filter_map(folder);
        graph.entry(start.clone()).or_default().extend(reached.filter(|to| *to != start));
    }
    let reach = |start: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(next) = open.pop() {
            let further = graph.get(next).into_iter().flatten();
            open.extend(further.filter(|to| seen.insert((*to).clone())));
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        graph.keys().map(|start| (start, reach(start))).collect();
    let circle = |start: &&String| {
        let others = &reached[*start];
        let back = |other: &&String| reached.get(other).is_some_and(|seen| seen.contains(*start));
        let circle: Vec<_> = others.iter().filter(back).cloned().collect();
        (!circle.is_empty()).then(|| circle.join(" ↔ "))
    };
    let circles: BTreeSet<String> = graph.keys().filter_map(|start| circle(&start)).collect();
    circles.into_iter().collect()
}

/// `proxy/net/src/tls/contents.rs` → `[proxy/net/src, tls, contents]`; `None` for what is not part of a crate's
/// tree.
fn module(path: &str) -> Option<Module> {
    let inside =
        path.find("src/").map(|at| at + 3).or_else(|| path.find("/it/").map(|at| at + 3))?;
    let (root, rest) = path.split_at(inside);
    let mut module = vec![root.to_owned()];
    module
        .extend(rest.trim_start_matches('/').trim_end_matches(".rs").split('/').map(str::to_owned));
    if module.last().is_some_and(|name| ["lib", "main", "mod"].contains(&name.as_str())) {
        module.pop();
    }
    Some(module)
}

/// The part of a file before the tests at its foot.
pub(super) fn product(text: &str) -> &str {
    text.split("#[cfg(test)]\n").next().unwrap_or_default()
}

/// The files that one file imports.
fn imports<'a, T>(
    from: &Module,
    text: &str,
    files: &'a BTreeMap<Module, T>,
) -> BTreeSet<&'a Module> {
    let code = code_lines(text);
    let code = without_reexports(&code.join("\n"));
    let mut paths = Vec::new();
    for statement in code.split("use ").skip(1) {
        expand("", statement.split(';').next().unwrap_or_default(), &mut paths);
    }
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    paths.extend(code.split(|c| !word(c)).filter(|path| path.contains("::")).map(str::to_owned));
    paths.iter().filter_map(|path| resolve(from, path, files)).filter(|to| *to != from).collect()
}

/// Lines of the product, without what is quoted. Inside a module within the file, `super` is the
/// file itself.
fn code_lines(text: &str) -> Vec<String> {
    let mut inside = false;
    let lines = product(text).lines().map(|line| {
        let line: String = line.split('"').step_by(2).collect();
        let line = line.split("//").next().unwrap_or_default();
        inside = (inside && line != "}") || (line.contains("mod ") && line.ends_with('{'));
        if inside { line.replacen("super::", "self::", 1) } else { line.to_owned() }
    });
    lines.collect()
}

/// `pub use` shows what another file has; it does not lean on it.
fn without_reexports(code: &str) -> String {
    let mut kept = String::new();
    let mut rest = code;
    while let Some(at) = ["pub use ", "pub(crate) use ", "pub(super) use "]
        .iter()
        .filter_map(|start| rest.find(start))
        .min()
    {
        kept.push_str(&rest[..at]);
        rest = &rest[at + rest[at..].find(';').unwrap_or(rest.len() - at)..];
    }
    kept + rest
}

/// `a::{b::C, d}` → `a::b::C`, `a::d`.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((start, group)) = tree.split_once('{') else {
        paths.push(format!("{prefix}{}", tree.split(" as ").next().unwrap_or_default()));
        return;
    };
    let group = group.strip_suffix('}').unwrap_or(group);
    let mut depth = 0;
    let parts = group.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    for part in parts.filter(|part| !part.trim().is_empty()) {
        expand(&format!("{prefix}{}", start.trim()), part, paths);
    }
}

/// The file that a path leads to: the longest part of it that is a module.
fn resolve<'a, T>(from: &Module, path: &str, files: &'a BTreeMap<Module, T>) -> Option<&'a Module> {
    let mut names = path.split("::").map(str::trim).peekable();
    let mut at = match *names.peek()? {
        "crate" => from[..1].to_vec(),
        "self" | "super" => from.clone(),
        child => {
            let module = [from.as_slice(), &[child.to_owned()]].concat();
            files.contains_key(&module).then(|| from.clone())?
        }
    };
    while let Some(step) = names.next_if(|name| ["crate", "self", "super"].contains(name)) {
        if step == "super" {
            at.pop();
        }
    }
    for name in names {
        at.push(name.to_owned());
        if !files.contains_key(&at) {
            at.pop();
            break;
        }
    }
    files.get_key_value(&at).map(|(module, _)| module)
}

/// A way from `start` back to itself, if there is one: the shortest.
fn way<'a>(
    graph: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
    start: &'a Module,
) -> Option<Vec<&'a Module>> {
    let mut seen = BTreeSet::new();
    let mut ways = std::collections::VecDeque::from([vec![start]]);
    while let Some(way) = ways.pop_front() {
        for next in graph.get(way.last()?).into_iter().flatten() {
            if *next == start {
                return Some(way);
            }
            if seen.insert(*next) {
                ways.push_back([way.as_slice(), &[*next]].concat());
            }
        }
    }
    None
}

#[test]
fn circles_are_found_through_groups_children_and_paths_in_code() {
    let source = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let sources = [
        source("x/src/lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\nuse b::f;\n"),
        source("x/src/a.rs", "mod deep;\nuse crate::{b::{f, g}, c};\n"),
        source("x/src/a/deep.rs", "fn h() { super::super::c::k() }\n"),
        source(
            "x/src/b.rs",
            "use std::fmt;\nfn f() { crate::a::deep::h() }\n\
             #[cfg(test)]\nmod tests { use crate::c; }\n",
        ),
        source("x/src/c.rs", "// use crate::b;\nuse super::b::f;\nmod i {\n    use super::x;\n}\n"),
    ];
    assert_eq!(circles(&sources), ["x/src/a/deep.rs ↔ x/src/b.rs ↔ x/src/c.rs"]);
}
