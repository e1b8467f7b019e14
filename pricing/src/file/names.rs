//! Names in price files.

use crate::row::When;

/// What begins or stands in patterns of names, and in no name.
const OF_PATTERNS: [char; 4] = ['*', '?', '^', '$'];

/// What is wrong with a name of a model.
pub(super) fn model_problem(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("a model needs a name".to_owned());
    }
    if let Some(mark) = pattern_in(name) {
        return Some(format!(
            "{name:?} has a `{mark}`, and a model is found by its exact name; write each model, and \
             its other names as `aliases`"
        ));
    }
    has_outer_space(name).then(|| format!("{name:?} begins or ends with a space; remove it"))
}

/// What is wrong with the name of a provider.
pub(super) fn provider_problem(name: &str) -> Option<String> {
    if name.is_empty() || pattern_in(name).is_some() {
        return Some(format!(
            "the provider {name:?} is not a name; leave out `provider` for a price of any provider"
        ));
    }
    has_outer_space(name).then(|| format!("{name:?} begins or ends with a space; remove it"))
}

/// What is wrong with the values of conditions.
pub(super) fn when_problem(when: &When) -> Option<String> {
    let words = when.iter().flat_map(|(condition, words)| {
        words.keys().map(|word| (condition.as_str(), word.as_str()))
    });
    let mut patterns = words.filter(|(_, word)| word.is_empty() || pattern_in(word).is_some());
    patterns.next().map(|(condition, word)| {
        format!("the {condition} {word:?} is not a value; write each value of {condition} alone")
    })
}

fn pattern_in(name: &str) -> Option<char> {
    name.chars().find(|found| OF_PATTERNS.contains(found))
}

fn has_outer_space(name: &str) -> bool {
    name.trim().len() != name.len()
}
