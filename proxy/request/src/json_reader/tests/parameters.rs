//! Tests the parameters that spans report.

use super::*;

/// The parameters of a body, read in two pieces that are cut anywhere.
fn parameters(body: &str) -> Vec<(Parameter, String)> {
    let stated = |at: usize| {
        let mut reader = RequestReader::json(Wire::Responses).with_parameters();
        let (head, tail) = body.split_at_checked(at)?;
        reader.push(head.as_bytes()).unwrap();
        reader.push(tail.as_bytes()).unwrap();
        Some(reader.finish().unwrap().parameters)
    };
    let whole = stated(0).unwrap();
    for at in 1..body.len() {
        assert!(stated(at).is_none_or(|parts| parts == whole), "split at byte {at}");
    }
    whole
}

#[test]
fn parameters_are_noted_wherever_a_wire_format_has_them() {
    use Parameter::{
        Conversation, Dimensions, FrequencyPenalty, Modality, OutputFormat, Prompt, PromptVersion,
        ReasoningLevel, Seed, StopSequence, Temperature, TopK, TopP,
    };
    for (member, expected) in [
        (
            r#""temperature":0.5,"top_p":1e-1,"top_k":40"#,
            &[(Temperature, "0.5"), (TopP, "1e-1"), (TopK, "40")][..],
        ),
        (
            r#""seed":-7,"frequency_penalty":-2,"dimensions":256"#,
            &[(Seed, "-7"), (FrequencyPenalty, "-2"), (Dimensions, "256")],
        ),
        (r#""stop":"a""#, &[(StopSequence, "a")]),
        (r#""stop":["a",["b"],{"x":"c"},"d",7],"user":"u""#, &[(StopSequence, "a")]),
        (r#""stop_sequences":["a","\u00e9"]"#, &[(StopSequence, "a"), (StopSequence, "é")]),
        (r#""modalities":["text","audio"]"#, &[(Modality, "text"), (Modality, "audio")]),
        (r#""reasoning_effort":"low""#, &[(ReasoningLevel, "low")]),
        (r#""reasoning":{"summary":{"effort":"x"},"effort":"high"}"#, &[(ReasoningLevel, "high")]),
        (
            r#""response_format":{"json_schema":{"type":"x"},"type":"json_schema"}"#,
            &[(OutputFormat, "json_schema")],
        ),
        (
            r#""text":{"verbosity":"low","format":{"type":"json_object"},"type":"x"},"conversation":"c""#,
            &[(OutputFormat, "json_object"), (Conversation, "c")],
        ),
        (r#""conversation":{"metadata":{"id":"x"},"id":"c"}"#, &[(Conversation, "c")]),
        (
            r#""prompt":{"id":"p","version":"2","variables":{"id":"x"}},"id":"y""#,
            &[(Prompt, "p"), (PromptVersion, "2")],
        ),
        // The last one is meant.
        (r#""temperature":1,"temperature":2"#, &[(Temperature, "2")]),
        // Others than they should be, and in other places.
        (
            r#""temperature":"hot","seed":true,"stop":null,"reasoning":"x","text":[{"format":{"type":"text"}}]"#,
            &[],
        ),
        (
            r#""metadata":{"temperature":1,"effort":"x","type":"text"},"input":[{"seed":1,"stop":"a"}]"#,
            &[],
        ),
        (r#""prompt":["p",{"id":"p"}],"conversation":[{"id":"c"}]"#, &[]),
    ] {
        let stated = parameters(&format!(r#"{{"model":"m",{member},"stream":true}}"#));
        let stated: Vec<_> = stated.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(stated, expected, "{member}");
    }
    let many: Vec<_> = (0..100).map(|number| number.to_string()).collect();
    let body = json!({"model": "m", "stop": many, "zzz": 0, "temperature": 0.5}).to_string();
    let stated = parameters(&body);
    assert_eq!(stated.len(), 24 + 1, "{stated:?}");
    assert!(stated.contains(&(Parameter::Temperature, "0.5".to_owned())));
}

#[test]
fn noting_parameters_changes_nothing_else() {
    let bodies = [
        r#"{"model":"m","stream":true,"stream_options":{"include_usage":false},"reasoning":{}}"#,
        r#"{"model":"m","stream":true,"stream_options":{},"response_format":{"type":"text"}}"#,
        r#"{"model":"m","stream":true,"text":{"include_usage":true,"model":"n"},"stop":["model"]}"#,
    ];
    for body in bodies.iter().chain(VALID) {
        let facts = |reader: RequestReader| {
            let mut reader = reader;
            reader.push(body.as_bytes()).unwrap();
            reader.finish().unwrap()
        };
        let plain = facts(RequestReader::json(Wire::ChatCompletions));
        let noted = facts(RequestReader::json(Wire::ChatCompletions).with_parameters());
        assert_eq!(RequestFacts { parameters: Vec::new(), ..noted }, plain, "{body}");
    }
}
