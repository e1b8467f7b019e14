use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::RequestReader;
use taximeter_meter::Hidden;

mod asking;
mod limits;
mod parameters;
mod properties;

type Outcome = Result<RequestFacts, RequestFault>;

fn read_in(wire: Wire, pieces: &[&[u8]]) -> Outcome {
    let mut reader = RequestReader::json(wire);
    for piece in pieces {
        reader.push(piece)?;
    }
    reader.finish()
}

fn read(body: impl AsRef<[u8]>) -> Outcome {
    read_in(Wire::ChatCompletions, &[body.as_ref()])
}

fn code(body: impl AsRef<[u8]>) -> &'static str {
    read(body).map_or_else(|fault| fault.code(), |_| "ok")
}

/// The body as it is sent to vLLM, and what is then hidden.
fn asking(body: &[u8], ask: UsageAsk) -> (Vec<u8>, Hidden) {
    let question = read(body).expect("a valid body").question(Dialect::Vllm, ask);
    let mut spliced = body.to_vec();
    for Splice { range, text } in question.splices.iter().rev() {
        let at = |offset| usize::try_from(offset).unwrap();
        spliced.splice(at(range.start)..at(range.end), text.iter().copied());
    }
    (spliced, question.hidden)
}

/// The body with the question for usage at the end, if that changes it.
fn spliced(body: &[u8]) -> Option<Vec<u8>> {
    Some(asking(body, UsageAsk::Final).0).filter(|spliced| spliced != body)
}

/// Bodies that pass.
const VALID: &[&str] = &[
    r#"{"model":"m"}"#,
    " \t\r\n{ \"model\" : \"m\" , \"messages\" : [ ] }\n",
    r#"{"model":"m","messages":[{"role":"user","content":"naïve 日本 😀 \n \u00e9"}]}"#,
    r#"{"model":"m","x":[0,-0,1.0,1e400,-1.5E-7,123456789012345678901234567890]}"#,
    r#"{"model":"m","x":"\ud83d","y":"\ude00\ud83d","z":"\ud83dz"}"#,
    r#"{"model":"m","x":1,"x":2,"messages":[{"model":1,"model":2}]}"#,
    r#"{"model":"m","Model":"n","MODEL":"o","model\u0000":"p"}"#,
    r#"{"model":"m","stream":null,"n":null,"max_tokens":null}"#,
    r#"{"model":"m","stream_options":{"include_usage":true}}"#,
    r#"{"model":"m","stream_options":"yes","user":7,"service_tier":[]}"#,
    r#"{"model":"m","metadata":{"include_usage":1,"include_usage":2}}"#,
    r#"{"model":"m","n":-1,"best_of":0,"max_tokens":-1,"max_completion_tokens":1.5}"#,
    r#"{"model":"m","n":1.0,"max_output_tokens":1e3,"n_predict":-2,"temperature":"hot"}"#,
    r#"{"model":"m","max_tokens":18446744073709551615,"max_completion_tokens":-0}"#,
    r#"{"model":"m","stream_options":{"include_usage":"true"}}"#,
    r#"{"model":"m","stream":true,"stream_options":{"include_usage":{"x":1}}}"#,
    "{}",
    r#"{"model":null}"#,
    r#"{"messages":[{"model":"m"}]}"#,
    r#"{"model":"m","stream_options":{"x":{"include_usage":1,"include_usage":2}}}"#,
];

/// Bodies that some reader somewhere takes for JSON.
const NOT_JSON: &[&str] = &[
    "",
    "  ",
    "[]",
    r#""model""#,
    "null",
    r#"{"model":"m"} {}"#,
    r#"{"model":"m"}x"#,
    r#"{"model":"m",}"#,
    r#"{"model":"m","x":[1,]}"#,
    r#"{"model":"m","x":[,1]}"#,
    r#"{"model":"m","x":[1}}"#,
    r#"{"model":"m","x":{"a":1]}"#,
    r#"{"model":"m""x":1}"#,
    r#"{"model" "m"}"#,
    r#"{model:"m"}"#,
    r#"{'model':'m'}"#,
    r#"{"model":"m" /* no */}"#,
    "{\"model\":\"m\" // no\n}",
    "{\"model\":\"m\",\"x\":\"a\nb\"}",
    "{\"model\":\"m\",\"x\":\"a long text, longer than the narrow look \u{0}\"}",
    "{\"model\":\"m\",\"x\":\"ä\tb\"}",
    r#"{"model":"m","x":NaN}"#,
    r#"{"model":"m","x":Infinity}"#,
    r#"{"model":"m","x":-Infinity}"#,
    r#"{"model":"m","x":truE}"#,
    r#"{"model":"m","x":nul}"#,
    r#"{"model":"m","x":01}"#,
    r#"{"model":"m","x":+1}"#,
    r#"{"model":"m","x":.5}"#,
    r#"{"model":"m","x":5.}"#,
    r#"{"model":"m","x":1e}"#,
    r#"{"model":"m","x":1e+}"#,
    r#"{"model":"m","x":-}"#,
    r#"{"model":"m","x":0x10}"#,
    r#"{"model":"m","x":1_000}"#,
    r#"{"model":"m","x":"\x41"}"#,
    r#"{"model":"m","x":"\u12g4"}"#,
    r#"{"model":"m","x":"\u{41}"}"#,
    r#"{"model":"m","x":"abc"#,
    r#"{"model":"m","x":"abc\"#,
    r#"{"model":"m""#,
    r#"{"model":"m","x":1"#,
    r#"{"model":"m","x":[[]"#,
    "{\"model\":\"m\"\u{a0}}",
    "\u{feff}{\"model\":\"m\"}",
];

/// Keys that we act on, twice.
const TWICE: &[&str] = &[
    r#"{"model":"m","model":"n"}"#,
    r#"{"model":"m","mod\u0065l":"n"}"#,
    r#"{"model":"m","\u006d\u006F\u0064\u0065\u006c":"n"}"#,
    r#"{"model":"m","stream":true,"stream":true}"#,
    r#"{"model":"m","n":1,"n":1}"#,
    r#"{"model":"m","user":"a","user":"b"}"#,
    r#"{"model":"m","service_tier":{},"service_tier":null}"#,
    r#"{"model":"m","max_tokens":1,"max_tokens":2}"#,
    r#"{"model":"m","n_predict":1,"n_predict":-1}"#,
    r#"{"model":"m","best_of":1,"best_of":2}"#,
    r#"{"model":"m","stream_options":{},"stream_options":{}}"#,
    r#"{"model":"m","stream_options":{"include_usage":true,"include\u005fusage":false}}"#,
];

/// Values that readers read differently, or not at all.
const WRONG_VALUE: &[&str] = &[
    r#"{"model":""}"#,
    r#"{"model":1}"#,
    r#"{"model":true}"#,
    r#"{"model":["m"]}"#,
    r#"{"model":{}}"#,
    r#"{"model":"a\u0000b"}"#,
    r#"{"model":"a\nb"}"#,
    r#"{"model":"a\u0085b"}"#,
    r#"{"model":"m","stream":1}"#,
    r#"{"model":"m","stream":"true"}"#,
    r#"{"model":"m","stream":{}}"#,
    r#"{"model":"m","n":"1"}"#,
    r#"{"model":"m","best_of":[2]}"#,
    r#"{"model":"m","n_predict":true}"#,
    r#"{"model":"m","max_tokens":-1e400}"#,
    r#"{"model":"m","max_tokens":1e400}"#,
    r#"{"model":"m","max_completion_tokens":18446744073709551616}"#,
    r#"{"model":"m","max_output_tokens":[1]}"#,
];

/// All of these, and those that are no text, with the code of their fault.
fn bodies() -> Vec<(Vec<u8>, &'static str)> {
    let texts = [
        (VALID, "ok"),
        (NOT_JSON, "invalid_json"),
        (TWICE, "duplicate_key"),
        (WRONG_VALUE, "invalid_value"),
    ];
    let texts = texts.iter().flat_map(|(bodies, code)| bodies.iter().map(move |body| (body, code)));
    let mut bodies: Vec<_> = texts.map(|(body, code)| (body.as_bytes().to_vec(), *code)).collect();
    let not_utf8: [&[u8]; 8] = [
        b"\xff",
        b"\xc0\x80",
        b"\xe0\x80\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xe6\x97",
        b"\x80",
        b"a long text, longer than the narrow look \xf0\x9f\x98",
    ];
    for bytes in not_utf8 {
        bodies.push(([br#"{"model":"m","x":""#, bytes, br#""}"#].concat(), "invalid_json"));
    }
    let json = r#"{"model":"m"}"#;
    let utf16: Vec<u16> = json.encode_utf16().collect();
    let utf32 = || json.chars().map(u32::from);
    let wide = [
        utf16.iter().flat_map(|unit| unit.to_le_bytes()).collect::<Vec<_>>(),
        utf16.iter().flat_map(|unit| unit.to_be_bytes()).collect(),
        utf32().flat_map(u32::to_le_bytes).collect(),
        utf32().flat_map(u32::to_be_bytes).collect(),
    ];
    let marks: [&[u8]; 4] = [b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0", b"\0\0\xfe\xff"];
    for (body, mark) in wide.into_iter().zip(marks) {
        bodies.push(([mark, &body].concat(), "invalid_json"));
        bodies.push((body, "invalid_json"));
    }
    bodies
}

#[test]
fn every_kind_of_body_has_its_code() {
    for (body, expected) in bodies() {
        assert_eq!(code(&body), expected, "{}", String::from_utf8_lossy(&body));
    }
}

#[test]
fn bodies_may_split_anywhere() {
    for (body, _) in bodies() {
        let whole = read(&body);
        let bytewise: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(read_in(Wire::ChatCompletions, &bytewise), whole, "{body:?}");
        for at in 0..=body.len() {
            let (head, tail) = body.split_at(at);
            let split = read_in(Wire::ChatCompletions, &[head, &[], tail]);
            assert_eq!(split, whole, "split at byte {at} of {}", String::from_utf8_lossy(&body));
        }
    }
}

#[test]
fn facts_are_what_the_body_says() {
    let facts = read(
        r#"{"max_tokens":5,"user":"\u00fcser \ud83d\ude00 \ud83d!","n":2,"model":"org/m\u002d1",
            "max_completion_tokens":18446744073709551615,"stream":true,"max_output_tokens":0,
            "service_tier":"flex",
            "stream_options":{"include_obfuscation":false,"include_usage":null}}"#,
    )
    .unwrap();
    assert_eq!(facts.model.as_deref(), Some("org/m-1"));
    assert_eq!(facts.user.as_deref(), Some("üser 😀 \u{fffd}!"));
    assert_eq!(facts.service_tier.as_deref(), Some("flex"));
    assert_eq!(facts.choices, Some(2));
    assert_eq!(facts.max_output_tokens, None, "0 is no limit");
    assert_eq!((facts.stream, facts.include_usage), (true, None));
}

#[test]
fn one_prompt_is_a_text_or_its_ids_where_answers_do_not_say_how_many_there_are() {
    for (body, expected) in [
        (r#"{"text":"a","sampling_params":{"n":2}}"#, true),
        (r#"{"sampling_params":{"n":2},"inputs":"a"}"#, true),
        (r#"{"text":["a","b"]}"#, false),
        (r#"{"text":{"a":"b"}}"#, false),
        (r#"{"input_ids":[[1,2],[3]]}"#, false),
        (r#"{"input_ids":[1,2,3],"sampling_params":{"n":2}}"#, true),
        (r#"{"sampling_params":{"n":2},"input_ids": [ 1 ]}"#, true),
        (r#"{"input_ids":[]}"#, false),
        (r#"{"input_ids":[[1]],"model":"m"}"#, false),
        (r#"{"input_ids":["a"]}"#, false),
        (r#"{"input_ids":7}"#, false),
        (r#"{"x":{"input_ids":[1]}}"#, false),
        (r#"{"sampling_params":{"text":"a"}}"#, false),
    ] {
        let facts = read_in(Wire::Generate, &[body.as_bytes()]).unwrap();
        assert_eq!(facts.has_one_prompt, expected, "{body}");
        let elsewhere = read_in(Wire::Embeddings, &[body.as_bytes()]).unwrap();
        assert!(!elsewhere.has_one_prompt, "{body}");
    }
    // What follows is read as ever.
    for ids in ["[1,2,[3],{}]", "[[1,2],[3]]", "[]", "[[]]"] {
        let body = format!(r#"{{"input_ids":{ids},"model":"m","user":"u"}}"#);
        let facts = read_in(Wire::Generate, &[body.as_bytes()]).unwrap();
        assert_eq!(
            (facts.model.as_deref(), facts.user.as_deref()),
            (Some("m"), Some("u")),
            "{ids}"
        );
        let twice = format!(r#"{{"input_ids":{ids},"model":"m","model":"m"}}"#);
        assert!(read_in(Wire::Generate, &[twice.as_bytes()]).is_err(), "{ids}");
    }
}

#[test]
fn ollama_streams_unless_it_is_told_not_to() {
    let stream = |wire, body: &str| read_in(wire, &[body.as_bytes()]).unwrap().stream;
    for body in [r#"{"model":"m"}"#, r#"{"model":"m","stream":null}"#] {
        assert!(stream(Wire::OllamaChat, body));
        assert!(!stream(Wire::ChatCompletions, body));
    }
    assert!(!stream(Wire::OllamaGenerate, r#"{"model":"m","stream":false}"#));
}

#[test]
fn a_body_may_leave_its_model_to_the_engine() {
    for wire in Wire::ALL {
        for body in ["{}", r#"{"model":null}"#] {
            assert_eq!(read_in(*wire, &[body.as_bytes()]).unwrap().model, None, "{wire:?}");
        }
    }
}

#[test]
fn faults_say_what_and_where() {
    let cases: [(&str, &str, &str); 5] = [
        (
            r#"{"model":"m",}"#,
            "13",
            "the request body is not valid JSON at byte 13: expected a key in quotes",
        ),
        (
            "\u{feff}{}",
            "0",
            "the request body is not valid JSON at byte 0: \
             a byte order mark; send it without one",
        ),
        (r#"{"model":"m","n":1,"n":1}"#, "n", "`n` is given twice; send it once"),
        (
            r#"{"n":"2"}"#,
            "n",
            "`n` must be a number from -18446744073709551615 to 18446744073709551615",
        ),
        (r#"{"model":"m","stream":1}"#, "stream", "`stream` must be true or false"),
    ];
    for (body, param, message) in cases {
        let fault = read(body).unwrap_err();
        assert_eq!((fault.param().as_ref(), fault.to_string().as_str()), (param, message));
    }
}

#[test]
fn nesting_has_its_limit() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
        format!(r#"{{"model":"m","x":{open}{close}}}"#)
    };
    for depth_max in [1, 2, 7, 256, 1_000] {
        let read = |body: String| {
            let mut reader = RequestReader::json(Wire::ChatCompletions).nested(depth_max);
            reader.push(body.as_bytes())?;
            reader.finish()
        };
        assert!(read(r#"{"model":"m"}"#.to_owned()).is_ok());
        assert!(depth_max == 1 || read(nested(depth_max)).is_ok(), "{depth_max}");
        let offset = (r#"{"model":"m","x":"#.len() + depth_max - 1) as u64;
        let fault = read(nested(depth_max + 1)).unwrap_err();
        assert_eq!(fault, RequestFault::TooDeep { offset, depth_max });
        assert_eq!((fault.code(), fault.param()), ("invalid_json", offset.to_string().into()));
    }
    assert_eq!((code(nested(256)), code(nested(257))), ("ok", "invalid_json"));
    assert_eq!(
        code(r#"{"model":"m","x":"#.to_owned() + &r#"{"":"#.repeat(100_000)),
        "invalid_json"
    );
}

#[test]
fn a_model_name_has_its_limit_in_bytes_after_escapes() {
    let named = |name: &str| code(format!(r#"{{"model":"{name}"}}"#));
    assert_eq!(named(&"m".repeat(256)), "ok");
    assert_eq!(named(&"m".repeat(257)), "invalid_value");
    assert_eq!(named(&"é".repeat(128)), "ok");
    assert_eq!(named(&"é".repeat(129)), "invalid_value");
    assert_eq!(named(&r"\u006d".repeat(256)), "ok");
    assert_eq!(named(&r"\u006d".repeat(257)), "invalid_value");
}

#[test]
fn long_texts_are_checked_and_not_kept() {
    let long = "lang, länger, 日本 ".repeat(1 << 16);
    let body = format!(r#"{{"user":"{long}","{long}":"{long}","model":"m"}}"#);
    let mut reader = RequestReader::json(Wire::ChatCompletions);
    for piece in body.as_bytes().chunks(1_000) {
        reader.push(piece).unwrap();
    }
    let facts = reader.finish().unwrap();
    assert_eq!((facts.user, facts.model.as_deref()), (None, Some("m")));

    let mut broken = body.into_bytes();
    let at = broken.len() / 2;
    broken[at] = 0xff;
    assert_eq!(code(broken), "invalid_json");
}

#[test]
fn usage_is_asked_for_with_the_fewest_bytes() {
    let cases = [
        (
            r#"{"model":"m","stream":true}"#,
            r#"{"stream_options":{"include_usage":true},"model":"m","stream":true}"#,
        ),
        (
            r#" { "stream" : true , "model":"m" } "#,
            r#" {"stream_options":{"include_usage":true}, "stream" : true , "model":"m" } "#,
        ),
        (
            r#"{"stream":true,"stream_options": {} ,"model":"m"}"#,
            r#"{"stream":true,"stream_options": {"include_usage":true} ,"model":"m"}"#,
        ),
        (
            r#"{"stream":true,"stream_options":{ },"model":"m"}"#,
            r#"{"stream":true,"stream_options":{"include_usage":true },"model":"m"}"#,
        ),
        (
            r#"{"stream":true,"stream_options":{"x":{},"y":[]},"model":"m"}"#,
            r#"{"stream":true,"stream_options":{"include_usage":true,"x":{},"y":[]},"model":"m"}"#,
        ),
        (
            r#"{"stream":true,"stream_options": null ,"model":"m"}"#,
            r#"{"stream":true,"stream_options": {"include_usage":true} ,"model":"m"}"#,
        ),
        (
            r#"{"stream_options":{"include_usage": false,"x":1},"stream":true,"model":"m"}"#,
            r#"{"stream_options":{"include_usage": true,"x":1},"stream":true,"model":"m"}"#,
        ),
        (
            r#"{"stream_options":{"x":1,"include_usage":null},"stream":true,"model":"m"}"#,
            r#"{"stream_options":{"x":1,"include_usage":true},"stream":true,"model":"m"}"#,
        ),
    ];
    for (body, expected) in cases {
        let spliced = spliced(body.as_bytes()).map(|body| String::from_utf8(body).unwrap());
        assert_eq!(spliced.as_deref(), Some(expected));
    }
}

#[test]
fn nothing_is_asked_where_there_is_nothing_to_ask() {
    for body in [
        r#"{"model":"m"}"#,
        r#"{"model":"m","stream":false,"stream_options":{}}"#,
        r#"{"model":"m","stream":null}"#,
        r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
        r#"{"model":"m","stream":true,"stream_options":[]}"#,
    ] {
        assert_eq!(spliced(body.as_bytes()), None, "{body}");
    }
    let body = br#"{"model":"m","stream":true}"#;
    for wire in [Wire::Responses, Wire::Messages, Wire::Embeddings, Wire::Opaque] {
        let question =
            read_in(wire, &[body]).unwrap().question(Dialect::Vllm, UsageAsk::Continuous);
        assert_eq!(question, BodyEdits::default());
    }
}

/// Any JSON value, objects with keys that we act on among them.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // serde_json reads eighths back as it wrote them, other fractions not always.
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
        any::<String>().prop_map(Value::from),
        "[ -~]{0,60}".prop_map(Value::from),
    ];
    let key = prop_oneof![any::<String>(), "model|stream|n|user|include_usage"];
    leaf.prop_recursive(4, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A valid request for a stream: any members, and `stream_options` in any form.
fn any_request() -> impl Strategy<Value = Value> {
    let options = prop_oneof![
        Just(None),
        Just(Some(Value::Null)),
        prop_oneof![Just(json!({})), Just(json!({"a": 1})), Just(json!({"z": [{}]}))]
            .prop_map(Some),
        prop_oneof![Just(json!({"include_usage": false})), Just(json!({"include_usage": null}))]
            .prop_map(Some),
    ];
    (prop::collection::vec(any_value(), 0..4), options).prop_map(|(values, options)| {
        let mut body = json!({"model": "m", "stream": true, "messages": values});
        if let Some(options) = options {
            body["stream_options"] = options;
        }
        body
    })
}

/// Text of a value, compact or with blanks.
fn written(value: &Value, pretty: bool) -> Vec<u8> {
    if pretty { serde_json::to_vec_pretty(value) } else { serde_json::to_vec(value) }.unwrap()
}
