//! Tests the questions for more than usage at the end.

use super::*;

/// What is hidden, by the first letters of the members of `Hidden`.
fn shown(hidden: Hidden) -> String {
    let letters = [(hidden.usage_event, 'u'), (hidden.running_usage, 'r'), (hidden.token_ids, 't')];
    letters.iter().filter(|(hides, _)| *hides).map(|(_, letter)| letter).collect()
}

fn assert_asked(ask: UsageAsk, cases: &[(&str, &str, &str)]) {
    for (body, expected, hidden) in cases {
        let body = format!(r#"{{"stream":true,"model":"m"{body}}}"#);
        let (sent, hides) = asking(body.as_bytes(), ask);
        let sent = String::from_utf8(sent).unwrap();
        let put = sent.strip_suffix('}').unwrap().replacen(r#""stream":true,"model":"m""#, "~", 1);
        assert_eq!((put.as_str(), shown(hides).as_str()), (*expected, *hidden), "{body}");
    }
}

#[test]
fn running_usage_is_asked_for_and_hidden_as_far_as_the_client_did_not_ask() {
    const BOTH: &str = r#""include_usage":true,"continuous_usage_stats":true"#;
    let put = |options: &str| format!(r#"{{"stream_options":{{{options}}},~"#);
    let object = |options: &str| format!(r#"{{~,"stream_options":{{{options}}}"#);
    assert_asked(
        UsageAsk::Continuous,
        &[
            ("", &put(BOTH), "ur"),
            (r#","stream_options":null"#, &object(BOTH), "ur"),
            (r#","stream_options":{}"#, &object(BOTH), "ur"),
            (
                r#","stream_options":{"include_usage":true}"#,
                &object(r#""continuous_usage_stats":true,"include_usage":true"#),
                "r",
            ),
            (
                r#","stream_options":{"include_usage":true,"continuous_usage_stats":false}"#,
                &object(r#""include_usage":true,"continuous_usage_stats":true"#),
                "r",
            ),
            (
                r#","stream_options":{"continuous_usage_stats":null,"include_usage":false}"#,
                &object(r#""continuous_usage_stats":true,"include_usage":true"#),
                "ur",
            ),
            (
                r#","stream_options":{"continuous_usage_stats":true}"#,
                &object(r#""include_usage":true,"continuous_usage_stats":true"#),
                "ur",
            ),
            (
                r#","stream_options":{"include_usage":true,"continuous_usage_stats":true}"#,
                &object(BOTH),
                "",
            ),
            (
                r#","stream_options":{"continuous_usage_stats":"yes"}"#,
                &object(r#""include_usage":true,"continuous_usage_stats":"yes""#),
                "u",
            ),
            (
                r#","stream_options":{"continuous_usage_stats":[true]}"#,
                &object(r#""include_usage":true,"continuous_usage_stats":[true]"#),
                "u",
            ),
            (r#","stream_options":7"#, r#"{~,"stream_options":7"#, ""),
            (
                r#","stream_options":{"include_usage":"true"}"#,
                &object(r#""include_usage":"true""#),
                "",
            ),
            (
                r#","stream_options":{"continuous_usage_stats":true,"include_usage":{}}"#,
                &object(r#""continuous_usage_stats":true,"include_usage":{}"#),
                "",
            ),
        ],
    );
}

#[test]
fn running_usage_that_comes_because_we_asked_for_usage_is_hidden_too() {
    assert_asked(
        UsageAsk::Final,
        &[(
            r#","stream_options":{"continuous_usage_stats":true}"#,
            r#"{~,"stream_options":{"include_usage":true,"continuous_usage_stats":true}"#,
            "ur",
        )],
    );
}

#[test]
fn token_ids_are_asked_for_beside_usage() {
    const USAGE: &str = r#"{"stream_options":{"include_usage":true},"#;
    assert_asked(
        UsageAsk::TokenIds,
        &[
            ("", &format!(r#"{USAGE}"return_token_ids":true,~"#), "ut"),
            (r#","return_token_ids":false"#, &format!(r#"{USAGE}~,"return_token_ids":true"#), "ut"),
            (r#","return_token_ids":true"#, &format!(r#"{USAGE}~,"return_token_ids":true"#), "u"),
            (r#","return_token_ids":{}"#, &format!(r#"{USAGE}~,"return_token_ids":{{}}"#), "u"),
            (r#","return_token_ids":1"#, &format!(r#"{USAGE}~,"return_token_ids":1"#), "u"),
            (
                r#","stream_options":{"include_usage":true}"#,
                r#"{"return_token_ids":true,~,"stream_options":{"include_usage":true}"#,
                "t",
            ),
        ],
    );
}

#[test]
fn an_engine_is_asked_no_more_than_it_understands() {
    let facts = read(r#"{"model":"m","stream":true}"#).unwrap();
    for ask in [UsageAsk::Continuous, UsageAsk::TokenIds] {
        let usage_at_the_end = facts.question(Dialect::Vllm, UsageAsk::Final);
        assert_eq!(facts.question(Dialect::OpenAi, ask), usage_at_the_end);
        assert_eq!(facts.question(Dialect::TensorrtLlm, ask), BodyEdits::default());
        assert_eq!(facts.question(Dialect::Auto, ask), BodyEdits::default());
        assert_ne!(facts.question(Dialect::Sglang, ask), usage_at_the_end);
    }
}

proptest! {
    #[test]
    fn splices_add_the_questions_and_change_nothing_else(
        mut value in any_request(),
        pretty: bool,
        ids: bool,
        said in prop::option::of(any::<bool>()),
    ) {
        if let Some(said) = said {
            value["return_token_ids"] = said.into();
        }
        let ask = if ids { UsageAsk::TokenIds } else { UsageAsk::Continuous };
        let (sent, _) = asking(&written(&value, pretty), ask);
        let options = &mut value["stream_options"];
        if options.is_null() {
            *options = json!({});
        }
        options["include_usage"] = json!(true);
        if ids {
            value["return_token_ids"] = json!(true);
        } else {
            options["continuous_usage_stats"] = json!(true);
        }
        prop_assert_eq!(serde_json::from_slice::<Value>(&sent).unwrap(), value);
        prop_assert_eq!(asking(&sent, ask), (sent, Hidden::default()));
    }
}

#[test]
fn only_members_that_the_client_left_out_are_ours() {
    let added = |body: &str, ask| {
        let body = format!(r#"{{"model":"m","stream":true{body}}}"#);
        read(body).unwrap().question(Dialect::Vllm, ask).added
    };
    const OPTIONS: &str = "stream_options";
    const USAGE: &str = "include_usage";
    for (body, expected) in [
        ("", &[OPTIONS, USAGE, "continuous_usage_stats"][..]),
        (r#","stream_options":null"#, &[OPTIONS, USAGE, "continuous_usage_stats"]),
        (r#","stream_options":{}"#, &[USAGE, "continuous_usage_stats"]),
        (r#","stream_options":{"include_usage":true}"#, &["continuous_usage_stats"]),
        (r#","stream_options":{"include_usage":false}"#, &["continuous_usage_stats"]),
        (r#","stream_options":7"#, &[]),
    ] {
        assert_eq!(added(body, UsageAsk::Continuous), expected, "{body}");
    }
    let ids = added("", UsageAsk::TokenIds);
    assert_eq!(ids, [OPTIONS, USAGE, "return_token_ids"]);
    let own = r#","stream_options":{"include_usage":true},"return_token_ids":true"#;
    assert_eq!(added(own, UsageAsk::TokenIds), [""; 0]);
}
