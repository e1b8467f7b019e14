//! The table of rules in the book of this project.

use super::*;

const PAGE: &str = include_str!("../../../../docs/prices.md");

/// The cells of the table, each line with the rule that it belongs to.
fn table() -> Vec<(&'static str, Vec<&'static str>)> {
    let (_, behind) = PAGE.split_once("| rule | what the row's name lacks |").unwrap();
    let mut rule = "";
    let lines = behind.lines().skip(2).take_while(|line| line.starts_with('|'));
    lines
        .map(|line| {
            let cells = line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`'));
            let cells: Vec<_> = cells.collect();
            if !cells[0].is_empty() {
                rule = cells[0];
            }
            (rule, cells)
        })
        .collect()
}

#[test]
fn the_book_has_every_rule_with_examples_that_are_true() {
    let mut rules = Vec::new();
    let mut examples = 0;
    for (rule, cells) in table() {
        rules.push(rule);
        let [provider, name, row] = cells[2..] else { panic!("{cells:?}") };
        if provider.is_empty() {
            continue;
        }
        let prices = format!(
            "models: [{{model: '{row}', provider: {provider}, rates: {{input: 1, output: 2}}, when: \
             {{region: {{us: {{times: 1.1}}, eu: {{times: 1.1}}, us-gov-west-1: {{times: 1.2}}}}}}}}]"
        );
        let book = PriceBook::empty().with_overrides(&prices, "prices.yaml").unwrap();
        let query = query(provider, name, "");
        let found = book.lookup(&query).unwrap_or_else(|missing| panic!("{name}: {missing}"));
        assert_eq!(
            (found.how.to_string().as_str(), found.row.model.as_str()),
            (rule, row),
            "{name}"
        );
        examples += 1;
    }
    rules.dedup();
    assert_eq!(rules, Rule::ALL.map(Rule::as_str));
    assert!(examples > 20);
}

#[test]
fn what_the_book_says_stays_in_a_name_does() {
    let (_, behind) = PAGE.split_once("**Everything else stays in the name**").unwrap();
    let (listed, _) = behind.split_once("Add a row").unwrap();
    let suffixes: Vec<_> = listed.split('`').skip(1).step_by(2).collect();
    assert!(suffixes.len() > 7, "{suffixes:?}");
    let book = book();
    for (provider, model) in MODELS {
        for suffix in &suffixes {
            let name = format!("{model}{suffix}");
            let query = query(provider, &name, "");
            assert!(book.lookup(&query).is_err(), "{provider} {name}");
        }
    }
}
