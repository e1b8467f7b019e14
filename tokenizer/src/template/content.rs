//! Reads from a template's source which shape of messages it expects.
//!
//! vLLM looks in the template's syntax tree for a loop over a message's content. If there is one,
//! it passes contents as lists of parts, otherwise as texts. This module reads the same from the
//! text of the statements: `{% for … %}`, `{% set … %}`, `{% macro … %}`.

use std::collections::HashSet;

/// How messages are to be given to a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Contents are lists of parts, even where they are one text.
    pub(super) parts: bool,
    /// It knows the role `developer`; otherwise such messages are the system's.
    pub(super) developer: bool,
    /// It names a method without calling it (`schema.items`), which for Python is the method and
    /// here the member.
    pub(super) names_methods: bool,
    /// It joins values with `~`, where minijinja prints them itself.
    pub(super) joins_values: bool,
}

impl Shape {
    pub(super) fn of(source: &str) -> Self {
        Self {
            parts: loops_over_content(source),
            names_methods: names_methods(source),
            joins_values: Block::all(source).any(|block| block.inside.contains('~')),
            developer: source.contains("\"developer\"") || source.contains("'developer'"),
        }
    }
}

/// The source in words that minijinja has.
///
/// `{% generation %}` blocks, which mark what the model wrote and change nothing else, are blocks
/// that are always there. Where something is added to a text that a filter has marked up, Python
/// escapes what is added: there the filter is [`UNSUPPORTED`].
pub(super) fn in_our_words(source: &str) -> String {
    let added = added_names(source);
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(block) = Block::next(rest) {
        rest = block.after;
        let inside = match block.statement() {
            Some("generation") => block.inside.replace("generation", "if true"),
            Some("endgeneration") => block.inside.replace("endgeneration", "endif"),
            _ if block.adds() || block.set().is_some_and(|name| added.contains(&name)) => {
                without_markup(block.inside)
            }
            _ => block.inside.to_owned(),
        };
        for text in [block.before, block.opening, &inside, block.closing] {
            out.push_str(text);
        }
    }
    out.push_str(rest);
    out
}

/// A filter that always fails.
pub(super) const UNSUPPORTED: &str = "unsupported";

/// Filters that mark a text up.
const MARKUP: [&str; 4] = ["safe", "escape", "e", "forceescape"];

/// What adds texts.
const ADDING: [&str; 3] = ["+", "~", "join"];

/// Everything that is named where texts are added.
fn added_names(source: &str) -> HashSet<&str> {
    let adding = Block::all(source).filter(Block::adds);
    adding.flat_map(|block| block.inside.split(|c: char| !is_word(c))).collect()
}

fn without_markup(inside: &str) -> String {
    let mut parts = inside.split('|');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let name = word(part);
        out.push('|');
        if MARKUP.contains(&name) {
            out.push_str(&part.replacen(name, UNSUPPORTED, 1));
        } else {
            out.push_str(part);
        }
    }
    out
}

/// A statement `{% … %}` or an expression `{{ … }}`.
struct Block<'a> {
    before: &'a str,
    opening: &'a str,
    inside: &'a str,
    closing: &'a str,
    after: &'a str,
}

impl<'a> Block<'a> {
    /// The next one; those in comments are none.
    fn next(source: &'a str) -> Option<Self> {
        let mut from = 0;
        loop {
            let at = from + source.get(from..)?.find('{')?;
            let (before, tail) = source.split_at_checked(at)?;
            let closing = match tail.get(..2) {
                Some("{#") => {
                    from = at + tail.find("#}")? + 2;
                    continue;
                }
                Some("{%") => "%}",
                Some("{{") => "}}",
                _ => {
                    from = at + 1;
                    continue;
                }
            };
            let (opening, rest) = tail.split_at_checked(2)?;
            let (inside, rest) = rest.split_at_checked(end_of(rest, closing)?)?;
            let (closing, after) = rest.split_at_checked(2)?;
            return Some(Self { before, opening, inside, closing, after });
        }
    }

    fn all(source: &'a str) -> impl Iterator<Item = Self> {
        let mut rest = source;
        std::iter::from_fn(move || {
            let block = Self::next(rest)?;
            rest = block.after;
            Some(block)
        })
    }

    /// The statement's text, without the dashes that trim around it; `None` for an expression.
    fn statement(&self) -> Option<&'a str> {
        (self.opening == "{%").then(|| self.inside.trim_matches(['-', '+']).trim())
    }

    /// The name that the statement sets.
    fn set(&self) -> Option<&'a str> {
        self.statement()?.strip_prefix("set ").map(word)
    }

    /// Whether it adds texts.
    fn adds(&self) -> bool {
        let inside = self.inside.trim_matches(['-', '+']);
        ADDING.iter().any(|how| inside.contains(how))
    }
}

/// Where a block ends: not inside a text.
fn end_of(inside: &str, closing: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, character) in inside.char_indices() {
        match (quote, character) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), close) if open == close => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '%' | '}') if inside.get(at..)?.starts_with(closing) => return Some(at),
            _ => {}
        }
    }
    None
}

struct Loop<'a> {
    target: &'a str,
    over: &'a str,
    /// Index of the macro that it is in.
    inside: Option<usize>,
}

#[derive(Default)]
struct Statements<'a> {
    loops: Vec<Loop<'a>>,
    /// Names and what they are set to.
    sets: Vec<(&'a str, &'a str)>,
    /// Names and parameters.
    macros: Vec<(&'a str, Vec<&'a str>)>,
}

impl<'a> Statements<'a> {
    fn of(source: &'a str) -> Self {
        let mut found = Self::default();
        let mut inside = None;
        for statement in Block::all(source).filter_map(|block| block.statement()) {
            let (word, tail) = statement.split_once(char::is_whitespace).unwrap_or((statement, ""));
            match word {
                "for" => {
                    if let Some((target, over)) = tail.split_once(" in ") {
                        let over = over.split(" if ").next().unwrap_or_default();
                        let over = over.trim().trim_end_matches(" recursive");
                        found.loops.push(Loop { target: target.trim(), over, inside });
                    }
                }
                "set" => found
                    .sets
                    .extend(tail.split_once('=').map(|(name, value)| (name.trim(), value.trim()))),
                "macro" => {
                    let (name, parameters) = tail.split_once('(').unwrap_or((tail, ""));
                    let parameters = parameters.trim().trim_end_matches(')');
                    let parameters = parameters
                        .split(',')
                        .map(|parameter| parameter.split('=').next().unwrap_or_default().trim());
                    inside = Some(found.macros.len());
                    found.macros.push((name.trim(), parameters.collect()));
                }
                "endmacro" => inside = None,
                _ => {}
            }
        }
        found
    }
}

fn loops_over_content(source: &str) -> bool {
    let statements = Statements::of(source);
    // Everything that is, at times, the list of messages.
    let mut lists = vec!["messages"];
    let mut at = 0;
    while let Some(&list) = lists.get(at) {
        for (name, value) in &statements.sets {
            if is_access(value, list, None) && !lists.contains(name) {
                lists.push(name);
            }
        }
        at += 1;
    }
    let messages: Vec<&str> = statements
        .loops
        .iter()
        .filter(|each| lists.iter().any(|list| is_access(each.over, list, None)))
        .map(|each| each.target)
        .collect();
    let is_content =
        |text: &str| messages.iter().any(|message| is_access(text, message, Some("content")));
    statements.loops.iter().any(|each| {
        is_content(each.over)
            || match each.inside.and_then(|index| statements.macros.get(index)) {
                None => each.over == "content",
                Some((name, parameters)) => parameters
                    .iter()
                    .position(|parameter| *parameter == each.over)
                    .is_some_and(|index| is_passed(source, name, index, each.over, &is_content)),
            }
    })
}

/// Methods of Python's mappings.
const METHODS: [&str; 9] =
    ["items", "keys", "values", "get", "pop", "copy", "update", "clear", "setdefault"];

fn names_methods(source: &str) -> bool {
    Block::all(source).any(|block| {
        block.inside.split('.').skip(1).any(|tail| {
            let name = word(tail);
            METHODS.contains(&name)
                && !tail.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('('))
        })
    })
}

/// The word that a text begins with.
fn word(text: &str) -> &str {
    let text = text.trim_start();
    text.split(|c: char| !is_word(c)).next().unwrap_or_default()
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Whether `text` is `name` – or its member `key` –, sliced, filtered and tested at most.
fn is_access(text: &str, name: &str, key: Option<&str>) -> bool {
    let text = text.trim().trim_start_matches('(').trim_start();
    let Some(mut rest) = text.strip_prefix(name) else { return false };
    if let Some(key) = key {
        let member = [format!(".{key}"), format!("['{key}']"), format!("[\"{key}\"]")];
        match member.iter().find_map(|member| rest.strip_prefix(member.as_str())) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    loop {
        rest = rest.trim_start();
        if rest.is_empty() || rest.starts_with([')', '|']) || rest.starts_with("is ") {
            return true;
        }
        let slice = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        match slice {
            Some((inside, after)) if inside.contains(':') => rest = after,
            _ => return false,
        }
    }
}

/// Whether a call of a macro passes something that `is_content` as its parameter.
fn is_passed(
    source: &str,
    name: &str,
    index: usize,
    parameter: &str,
    is_content: &impl Fn(&str) -> bool,
) -> bool {
    let call = format!("{name}(");
    source.match_indices(&call).any(|(at, _)| {
        let arguments = source.get(at + call.len()..).map(arguments).unwrap_or_default();
        arguments.iter().enumerate().any(|(place, argument)| {
            let named = argument
                .trim_start()
                .strip_prefix(parameter)
                .and_then(|rest| rest.trim_start().strip_prefix('='));
            match named {
                Some(value) => is_content(value),
                None => place == index && is_content(argument),
            }
        })
    })
}

/// The arguments of a call, from behind its bracket.
fn arguments(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let mut start = 0;
    let mut found = Vec::new();
    for (at, character) in text.char_indices() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => {
                found.extend(text.get(start..at));
                break;
            }
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_over_a_message_s_content_asks_for_parts() {
        for source in [
            "{% for m in messages %}{% for part in m.content %}x{% endfor %}{% endfor %}",
            "{%- for m in messages[1:] -%}{%- for p in m['content'] | list -%}{%- endfor %}",
            "{% set all = messages %}{% for m in all %}{% for p in m[\"content\"] %}{% endfor %}",
            "{% for m in messages %}{% set content = m.content %}{% for p in content %}",
            "{% macro say(what, to='x') %}{% for p in what %}{% endfor %}{% endmacro %}\
             {% for m in messages %}{{ say(m.content, 'y') }}{% endfor %}",
        ] {
            assert!(Shape::of(source).parts, "{source}");
        }
    }

    #[test]
    fn other_loops_do_not() {
        for source in [
            "",
            "{% for m in messages %}{{ m.content }}{% endfor %}",
            "{% for m in messages %}{% for call in m.tool_calls %}{% endfor %}{% endfor %}",
            "{# {% for m in messages %}{% for part in m.content %} #}",
            "{% for m in messages[0] %}{% for p in m.content %}{% endfor %}{% endfor %}",
            "{% macro say(content) %}{% for p in content %}{% endfor %}{% endmacro %}",
            "{% set x = '%}{% for p in content %}' %}",
            "{{ '{% for p in content %}' }}",
        ] {
            assert!(!Shape::of(source).parts, "{source}");
        }
    }

    #[test]
    fn filters_whose_text_is_added_to_are_not_supported() {
        for (source, expected) in [
            ("{{ 'a'|safe + b }}", "{{ 'a'|unsupported + b }}"),
            ("{{ a | tojson | safe }}{{ b + c }}", "{{ a | tojson | safe }}{{ b + c }}"),
            ("{% set x = y | e %}{{- 'b' + x }}", "{% set x = y | unsupported %}{{- 'b' + x }}"),
            ("{{- a | safe -}}", "{{- a | safe -}}"),
        ] {
            assert_eq!(in_our_words(source), expected);
        }
    }

    #[test]
    fn methods_that_are_not_called_are_found() {
        assert!(Shape::of("{{ type(spec.items) }}").names_methods);
        assert!(
            !Shape::of("{{ spec.items() }} {{ spec['items'] }} {{ x.itemsize }}").names_methods
        );
    }

    #[test]
    fn generation_blocks_keep_their_inside_and_their_dashes() {
        let source = "a{%- generation -%} b {% endgeneration %}c{{ generation }}{% if x %}";
        let expected = "a{%- if true -%} b {% endif %}c{{ generation }}{% if x %}";
        assert_eq!(in_our_words(source), expected);
    }
}
