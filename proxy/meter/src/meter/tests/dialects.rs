//! Tests that each dialect reads its fixtures right, and that no fixture is taken for another
//! dialect.

use std::fmt::Write as _;

use super::*;

/// The dialect that a fixture shows to one that does not know.
fn recognised(fixture: &Fixture) -> Dialect {
    let exchange = Exchange { dialect: Dialect::Auto, ..fixture.exchange };
    exchange.ride(epoch(), [fixture.bytes.as_slice()]).measurement.dialect
}

/// What a reviewer wants to see of a measurement: one line each, times left out.
fn summary(ride: &Ride, recognised: Dialect) -> String {
    let found = &ride.measurement;
    let mut summary = String::new();
    let mut line = |name: &str, value: &dyn std::fmt::Debug| {
        writeln!(summary, "{name}: {value:?}").unwrap();
    };
    line("ending", &found.ending);
    line("id", &found.response_id);
    line("model", &found.response_model);
    line("tier", &found.service_tier);
    if let Some(fingerprint) = &found.system_fingerprint {
        line("fingerprint", fingerprint);
    }
    line("finish reasons", &found.finish_reasons);
    line("error type", &found.error.as_ref().map(ProviderError::word));
    line("events with content", &found.timing.output_chunks);
    line("output text", &found.output_text);
    if found.is_pending {
        line("pending", &found.is_pending);
    }
    line("held bytes", &ride.held);
    if !found.counted_units.is_empty() {
        line("counted", &found.counted_units);
    }
    if !found.calls.is_empty() {
        line("calls", &found.calls);
    }
    if !found.tools.is_empty() {
        line("tools", &found.tools);
    }
    if found.is_compaction {
        line("compaction", &found.is_compaction);
    }
    if !found.passes.is_empty() {
        line("passes of tools", &found.passes);
    }
    if recognised != Dialect::Auto {
        line("recognised", &recognised);
    }
    if let Some(cost) = &found.reported_cost {
        line("reported cost", cost);
    }
    if found.counts != Counts::default() {
        line("counts", &found.counts);
    }
    match &found.reported {
        None => line("usage", &"none"),
        Some(reported) => {
            line("flags", &reported.flags);
            let mut usage = reported.usage.clone();
            if let Some(modalities) = usage.modalities.take() {
                line("modalities", &modalities.named());
            }
            if !usage.units.is_empty() {
                line("units", &std::mem::take(&mut usage.units));
            }
            if !usage.conditions.is_empty() {
                line("conditions", &std::mem::take(&mut usage.conditions));
            }
            let unsaid = ", modalities: None, units: {}, conditions: {}";
            let usage = format!("{usage:?}").replace(unsaid, "");
            writeln!(summary, "usage: {usage}").unwrap();
        }
    }
    summary
}

#[test]
fn each_fixture_measures_as_its_snapshot_says() {
    for fixture in fixtures() {
        let ride = fixture.exchange.ride(epoch(), [fixture.bytes.as_slice()]);
        assert_eq!(ride.bytes, fixture.bytes, "{}", fixture.path.display());
        let recognised = recognised(&fixture);
        insta::with_settings!({
            snapshot_path => fixture.path.parent().unwrap(),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            let name = fixture.path.file_stem().unwrap().to_str().unwrap();
            insta::assert_snapshot!(name, summary(&ride, recognised));
        });
    }
}

#[test]
fn every_fixture_is_in_the_table() {
    let table = include_str!("../../../../../tests/fixtures/README.md");
    for fixture in fixtures() {
        let folder = fixture.path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let file = fixture.path.file_name().unwrap().to_str().unwrap();
        let is_listed = table.contains(&format!("`{folder}/{file}`"));
        assert!(is_listed || folder == "framing", "{folder}/{file} is not in the table");
    }
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
fn a_usage_object_is_settled_by_its_own_marks_where_nothing_else_is_known() {
    let stream = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3,\
        \"completion_tokens_details\":{\"reasoning_tokens\":7},\"num_sources_used\":0}}\n\n";
    let output = |dialect| {
        let found = measure(Exchange { dialect, ..Exchange::chat() }, stream);
        (found.dialect, found.reported.unwrap().usage.output_tokens)
    };
    assert_eq!(output(Dialect::Auto), (Dialect::Xai, Some(10)));
    assert_eq!(output(Dialect::OpenAi), (Dialect::OpenAi, Some(3)));
}

/// What is known of an answer that is read as this dialect, but for the dialect.
fn output(dialect: Dialect, marks: &str, usage: &str) -> Option<u64> {
    let stream = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\"}},\
         \"native_finish_reason\":\"stop\"}}]{marks}}}\n\n\
         data: {{\"choices\":[],\"usage\":{{{usage}}}}}\n\ndata: [DONE]\n\n"
    );
    measure(Exchange { dialect, ..Exchange::chat() }, &stream).reported.unwrap().usage.output_tokens
}

#[test]
fn the_total_is_asked_before_anything_is_added_beside_the_output() {
    let usage = |rest: &str| {
        format!(
            r#""prompt_tokens":100,"completion_tokens":96,
            "completion_tokens_details":{{"reasoning_tokens":64}}{rest}"#
        )
        .replace('\n', "")
    };
    for (rest, expected) in [
        (r#","total_tokens":196"#, 96),
        (r#","total_tokens":196,"search_context_size":"low""#, 96),
        (r#","total_tokens":196,"num_sources_used":2"#, 96),
        (r#","total_tokens":196,"citation_tokens":5000"#, 96),
        (r#","total_tokens":260,"citation_tokens":5000"#, 160),
        (r#","total_tokens":5196,"citation_tokens":5000"#, 5096),
        (r#","total_tokens":5260,"citation_tokens":5000"#, 5160),
    ] {
        for dialect in Dialect::ALL.iter().filter(|dialect| **dialect != Dialect::Perplexity) {
            assert_eq!(output(*dialect, "", &usage(rest)), Some(expected), "{dialect:?} {rest}");
        }
    }
    for (rest, expected) in [
        ("", 96),
        (r#","search_context_size":"low""#, 160),
        (r#","num_sources_used":2"#, 160),
        (r#","citation_tokens":5000"#, 5160),
    ] {
        assert_eq!(output(Dialect::Auto, "", &usage(rest)), Some(expected), "{rest}");
        assert_eq!(output(Dialect::OpenAi, "", &usage(rest)), Some(96), "{rest}");
    }
    let all = usage(r#","total_tokens":196,"citation_tokens":5000"#);
    assert_eq!(output(Dialect::Perplexity, "", &all), Some(5160), "its total holds neither");
}

proptest! {
    /// A mark outside of the usage object changes nothing in how that is read; one inside of it
    /// only where the total says nothing.
    #[test]
    fn a_mark_holds_for_the_object_that_carries_it(
        dialect in prop::sample::select(Dialect::ALL),
        mark in prop::sample::select(vec![
            r#","x_groq":{"id":"r"}"#,
            r#","sglext":{}"#,
            r#","kv_transfer_params":null"#,
            r#","system_fingerprint":"fp_ollama""#,
            r#","prompt_filter_results":[]"#,
        ]),
        inside in prop::sample::select(vec![
            r#""search_context_size":"low""#,
            r#""num_sources_used":0"#,
            r#""avg_compl_tok_per_sec":1"#,
        ]),
        mut members in Just(vec![
            r#""prompt_tokens":10"#,
            r#""completion_tokens":20"#,
            r#""reasoning_tokens":7"#,
        ]).prop_shuffle(),
        place in 0..4_usize,
        total: bool,
    ) {
        if total {
            members.push(r#""total_tokens":30"#);
        }
        let plain = output(dialect, "", &members.join(","));
        prop_assert_eq!(output(dialect, mark, &members.join(",")), plain);
        members.insert(place, inside);
        if total || dialect != Dialect::Auto {
            prop_assert_eq!(output(dialect, "", &members.join(",")), plain);
        }
    }
}

#[test]
fn headers_show_who_answers_before_anything_is_read() {
    let started_at = epoch();
    let (wire, dialect) = (Wire::ChatCompletions, Dialect::Auto);
    let mut meter = Meter::new(Setup {
        wire,
        dialect,
        started_at,
        hidden: Hidden::default(),
        has_one_prompt: false,
    });
    meter.on_headers([("server", "llama.cpp")]);
    assert_eq!(meter.finish(started_at, StreamEnd::Clean).dialect, Dialect::LlamaCpp);
}

#[test]
fn the_tier_that_has_served_may_stand_in_a_header() {
    let started_at = epoch();
    let mut meter = Exchange { wire: Wire::GenerateContent, ..Exchange::chat() }.meter(started_at);
    meter.on_headers([("x-gemini-service-tier", "flex"), ("server", "scaffolding")]);
    let found = meter.finish(started_at, StreamEnd::Clean);
    assert_eq!(found.service_tier.as_deref(), Some("flex"));
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
