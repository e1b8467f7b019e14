//! Each dialect by its fixtures: read right, and taken for no other.

use super::*;

/// The dialect that a fixture shows to one that does not know.
pub(super) fn recognised(fixture: &Fixture) -> Dialect {
    let exchange = Exchange { dialect: Dialect::Auto, ..fixture.exchange };
    exchange.ride(epoch(), [fixture.bytes.as_slice()]).measurement.dialect
}

#[test]
fn every_dialect_has_a_fixture() {
    let folder = |fixture: &Fixture| fixture.path.parent().unwrap().file_name().unwrap().to_owned();
    let folders: Vec<_> = fixtures().iter().map(folder).collect();
    for dialect in Dialect::ALL.iter().filter(|dialect| **dialect != Dialect::Auto) {
        let name = serde_json::to_value(dialect).unwrap();
        assert!(folders.iter().any(|folder| *folder == *name.as_str().unwrap()), "{name} has none");
    }
}

#[test]
fn no_answer_is_taken_for_anothers() {
    for fixture in fixtures() {
        let shown = recognised(&fixture);
        let is_right = [Dialect::Auto, fixture.exchange.dialect].contains(&shown);
        assert!(is_right, "{} is taken for {shown:?}", fixture.path.display());
    }
}

#[test]
fn an_answer_is_settled_by_the_habits_that_it_shows_itself() {
    let stream = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3,\
        \"completion_tokens_details\":{\"reasoning_tokens\":7},\"num_sources_used\":0}}\n\n";
    let output = |dialect| {
        let found = measure(Exchange { dialect, ..Exchange::chat() }, stream);
        (found.dialect, found.reported.unwrap().usage.output_tokens)
    };
    assert_eq!(output(Dialect::Auto), (Dialect::Xai, Some(10)));
    assert_eq!(output(Dialect::OpenAi), (Dialect::OpenAi, Some(3)));
}

#[test]
fn headers_show_who_answers_before_anything_is_read() {
    let started_at = epoch();
    let (wire, dialect) = (Wire::ChatCompletions, Dialect::Auto);
    let mut meter = Meter::new(Setup { wire, dialect, started_at, hidden: Hidden::default() });
    meter.on_headers([("server", "llama.cpp")]);
    assert_eq!(meter.finish(started_at, StreamEnd::Clean).dialect, Dialect::LlamaCpp);
}

#[test]
fn a_whole_answer_shows_who_answers() {
    let json = Exchange {
        content_type: Some("application/json"),
        dialect: Dialect::Auto,
        ..Exchange::chat()
    };
    let found = measure(json, r#"{"choices":[{"native_finish_reason":"stop"}]}"#);
    assert_eq!(found.dialect, Dialect::OpenRouter);
}
