use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::wire::Wire;

fn names(error: &str) -> Option<[String; 3]> {
    let found = find(error.as_bytes())?;
    Some([found.status, found.error_type, found.code].map(Option::unwrap_or_default))
}

/// Errors in the forms of many providers and frameworks, with their status, type and code.
const ERRORS: &[(&str, [&str; 3])] = &[
    (r#"{"error":{"message":"m","type":"t","param":null,"code":"c"}}"#, ["", "t", "c"]),
    (r#"{"error":{"code":429,"message":"m","status":"EXHAUSTED"}}"#, ["EXHAUSTED", "", "429"]),
    (r#"{"error":"m"}"#, ["", "", ""]),
    (r#"{"error":"m","error_type":"overloaded"}"#, ["", "overloaded", ""]),
    (r#"{"error":{"error":{"type":"t"}},"code":5}"#, ["", "t", "5"]),
    (r#"[{"error":{"code":400,"status":"INVALID"}}]"#, ["INVALID", "", "400"]),
    (
        r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#,
        ["", "overloaded_error", ""],
    ),
    (r#"{"choices":null,"base_resp":{"status_code":1008,"status_msg":"m"}}"#, ["", "", "1008"]),
    (
        r#"{"id":"1","model":"m","base_resp":{"status_code":1008,"status_msg":""}}"#,
        ["", "", "1008"],
    ),
    (r#"{"code":1113,"msg":"m","success":false}"#, ["", "", "1113"]),
    (r#"{"code":200,"msg":"ok","success":false}"#, ["", "", "200"]),
    (r#"{"detail":"m"}"#, ["", "", ""]),
    (r#"{"detail":[{"type":"missing","loc":["body"],"msg":"m"}]}"#, ["", "missing", ""]),
    (r#"{"detail":{"code":"c"}}"#, ["", "", "c"]),
    (
        r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#,
        ["", "BadRequestError", "400"],
    ),
    (r#"{"errors":[{"code":7009,"message":"m"}],"success":false,"result":null}"#, ["", "", "7009"]),
    (r#"{"error_code":17,"error_msg":"m"}"#, ["", "", "17"]),
    (r#"{"code":"InvalidApiKey","message":"m","request_id":"r"}"#, ["", "", "InvalidApiKey"]),
    (
        r#"{"__type":"com.amazon.coral#ThrottlingException","message":"m"}"#,
        ["", "ThrottlingException", ""],
    ),
    (r#"{"message":"m"}"#, ["", "", ""]),
    (r#"{"Message":"m"}"#, ["", "", ""]),
    (r#"{"statusCode":401,"message":"m"}"#, ["401", "", ""]),
    (r#"{"type":"about:blank","title":"m","status":503}"#, ["503", "about:blank", ""]),
    (r#"{"status":"error","message":"m"}"#, ["", "", ""]),
    (r#"{"Response":{"Error":{"Code":"c","Message":"m"},"RequestId":"r"}}"#, ["", "", "c"]),
    (r#"{"ResponseMetadata":{"Error":{"Code":"c"}}}"#, ["", "", "c"]),
];

/// What is no error, although it has some member of one.
const OTHERS: &[&str] = &[
    "{}",
    "[]",
    r#"{"error":null}"#,
    r#"{"error":false,"errors":[],"detail":null}"#,
    r#"{"error":{}}"#,
    r#"{"error":{"code":0,"message":""}}"#,
    r#"{"error":{"code":null,"message":null,"type":null}}"#,
    r#"{"base_resp":{"status_code":0,"status_msg":"success"}}"#,
    r#"{"code":0,"message":"Success","sid":"s"}"#,
    r#"{"code":200,"msg":"fine","success":true,"data":{}}"#,
    r#"{"status_code":200,"code":"","message":""}"#,
    r#"{"errcode":0,"errmsg":"ok"}"#,
    r#"{"message":{"role":"assistant","content":""},"done":false}"#,
    r#"{"choices":[{"index":0}],"message":"m","code":"c"}"#,
    r#"{"choices":[{"index":0}],"detail":"high"}"#,
    r#"{"id":"1","object":"video","status":"queued"}"#,
    r#"{"type":"ping"}"#,
    "<html>busy</html>",
    r#"{"error":"half"#,
];

#[test]
fn an_error_is_found_in_the_form_of_every_provider_and_named() {
    for (error, expected) in ERRORS {
        assert_eq!(names(error), Some(expected.map(str::to_owned)), "{error}");
    }
}

#[test]
fn what_is_no_error_is_taken_for_none() {
    for other in OTHERS {
        assert_eq!(names(other), None, "{other}");
    }
}

#[test]
fn a_name_that_may_quote_a_prompt_is_left_out() {
    let error = r#"{"error":{"type":"you said: secret","code":"a b","status":{"x":1}}}"#;
    assert_eq!(names(error), Some([(); 3].map(|()| String::new())));
}

/// Facts of a document on this wire, with the error that others would have given.
fn facts(wire: Wire, document: &str) -> Option<ProviderError> {
    let mut facts = wire.format()?.document(document.as_bytes()).unwrap_or_default();
    complete(&mut facts, document.as_bytes(), false);
    facts.error
}

#[test]
fn every_wire_knows_every_form() {
    for &wire in Wire::ALL.iter().filter(|wire| wire.format().is_some()) {
        for (error, expected) in ERRORS {
            let found = facts(wire, error).unwrap_or_else(|| panic!("{wire:?}: {error}"));
            let found = [found.status, found.error_type, found.code];
            assert_eq!(found.map(Option::unwrap_or_default), *expected, "{wire:?}: {error}");
        }
        for other in OTHERS {
            assert_eq!(facts(wire, other), None, "{wire:?}: {other}");
        }
    }
}

proptest! {
    #[test]
    fn members_may_stand_in_any_order_among_others(
        (error, expected) in select(ERRORS),
        order in any::<prop::sample::Index>(),
        beside in prop::collection::vec(("[a-d]{1,3}x", "[a-z {}:,]{0,9}"), 0..4),
    ) {
        let Ok(serde_json::Value::Object(members)) = serde_json::from_str(error) else {
            return Ok(());
        };
        let beside = beside.into_iter().map(|(key, text)| (key, text.into()));
        let mut members: Vec<(String, serde_json::Value)> = members.into_iter().chain(beside).collect();
        let by = order.index(members.len());
        members.rotate_left(by);
        let written: Vec<_> = members
            .iter()
            .map(|(key, value)| format!("{}: {value}", serde_json::Value::from(key.as_str())))
            .collect();
        let document = format!("{{ {} }}", written.join(",\n"));
        prop_assert_eq!(names(&document), Some(expected.map(str::to_owned)), "{}", document);
    }
}
