use super::reference::all;
use super::*;

#[test]
fn every_refusal_speaks_both_shapes() {
    for refusal in all() {
        let openai = refusal.answer(Shape::OpenAi, "r");
        let body: serde_json::Value = serde_json::from_slice(openai.body()).unwrap();
        assert_eq!(body["error"]["code"], refusal.code());
        assert!(!body["error"]["message"].as_str().unwrap().is_empty());
        assert!(body["error"].as_object().unwrap().contains_key("param"));
        let anthropic = refusal.answer(Shape::Anthropic, "r");
        let body: serde_json::Value = serde_json::from_slice(anthropic.body()).unwrap();
        assert_eq!((&body["type"], &body["request_id"]), (&"error".into(), &"r".into()));
        assert_eq!(openai.status(), anthropic.status());
    }
}

#[test]
fn a_client_is_told_whether_to_try_again() {
    for refusal in all() {
        let answer = refusal.answer(Shape::OpenAi, "r");
        let never = answer.headers().contains_key("x-should-retry");
        match answer.status().as_u16() {
            408 | 429 | 500 | 502..600 => assert!(!never, "{refusal:?}"),
            _ => assert!(never, "{refusal:?}"),
        }
        let passes_soon = matches!(answer.status().as_u16(), 429 | 503);
        assert_eq!(answer.headers().contains_key(RETRY_AFTER), passes_soon, "{refusal:?}");
    }
}

#[test]
fn wrong_and_unknown_keys_read_the_same() {
    let answer = Refusal::InvalidKey.answer(Shape::OpenAi, "r");
    assert_eq!(answer.headers()[WWW_AUTHENTICATE], "Bearer");
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
}

#[test]
fn a_long_name_is_cut_between_characters() {
    assert_eq!(shown("short"), "short");
    let long = "é".repeat(100);
    assert_eq!(shown(&long).len(), 128);
    assert_eq!(shown(&format!("a{long}")).len(), 127);
}
