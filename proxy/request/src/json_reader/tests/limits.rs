//! Tests which limits of the output pass, and which worst case they make.

use super::*;

#[test]
fn the_worst_case_is_the_largest_limit_of_all_answers_or_none() {
    let most = |members: &str| {
        let body = format!(r#"{{"model":"m",{members}}}"#);
        let facts = read(&body).unwrap_or_else(|fault| panic!("{fault}: {body}"));
        (facts.max_output_tokens, facts.output_tokens_max())
    };
    for (members, each, all) in [
        (r#""max_tokens":5"#, Some(5), Some(5)),
        (r#""max_tokens":5,"n":3"#, Some(5), Some(15)),
        (r#""max_tokens":5,"n":3,"best_of":4"#, Some(5), Some(20)),
        (r#""max_tokens":5,"n":null,"best_of":null"#, Some(5), Some(5)),
        (r#""max_completion_tokens":7,"max_tokens":5"#, Some(7), Some(7)),
        (r#""max_output_tokens":7"#, Some(7), Some(7)),
        (r#""max_tokens":5,"n_predict":9"#, Some(9), Some(9)),
        (r#""max_tokens":4.5"#, Some(5), Some(5)),
        (r#""max_tokens":1e3"#, Some(1_000), Some(1_000)),
        // No limit: llama.cpp, LM Studio and Ollama read them so, others refuse them.
        (r#""max_tokens":-1"#, None, None),
        (r#""max_tokens":0"#, None, None),
        (r#""max_tokens":0.5"#, None, None),
        (r#""max_tokens":-1,"max_completion_tokens":5"#, None, None),
        (r#""max_completion_tokens":5,"max_tokens":-1"#, None, None),
        (r#""max_tokens":5,"n_predict":-1"#, None, None),
        (r#""max_tokens":null"#, None, None),
        (r#""temperature":1"#, None, None),
        // Of how many answers is unknown.
        (r#""max_tokens":5,"n":-1"#, Some(5), None),
        (r#""max_tokens":5,"n":0,"best_of":2"#, Some(5), None),
        (r#""max_tokens":18446744073709551615,"n":2"#, Some(u64::MAX), None),
    ] {
        assert_eq!(most(members), (each, all), "{members}");
    }
    let choices = |n: &str| read(format!(r#"{{"n":{n}}}"#)).unwrap().choices;
    assert_eq!(
        [choices("2"), choices("0"), choices("-1"), choices("null")],
        [Some(2), None, None, None]
    );
}

#[test]
fn values_are_left_to_the_engine_where_we_do_not_act_on_them() {
    let body =
        br#"{"stream":"yes","n":"two","max_tokens":true,"max_output_tokens":[1],"best_of":{}}"#;
    for wire in [Wire::Embeddings, Wire::Opaque] {
        assert!(!read_in(wire, &[body]).unwrap().stream, "{wire:?}");
    }
    let limits = br#"{"stream":true,"n":"two","max_tokens":1e400,"n_predict":"many"}"#;
    for wire in Wire::ALL.iter().filter(|wire| !wire.obeys_max_tokens()) {
        let facts = read_in(*wire, &[limits]).unwrap();
        assert_eq!((facts.stream, facts.max_output_tokens), (true, None), "{wire:?}");
    }
}
