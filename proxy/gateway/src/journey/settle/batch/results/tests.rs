use taximeter_ledger::{RecordCost, RecordLine, UnknownCost, UnknownCostReason};

use super::*;
use crate::gateway::HeldBytes;

/// Longest line of these tests, in bytes.
const LINE_BYTES_MAX: usize = 4096;

/// A cent for each token of input, two beyond ten of them, and three for output.
fn price(model: Option<&str>, usage: &Usage) -> Charge {
    if model == Some("unpriced") {
        return Charge::unknown(None, [UnknownCost::new(UnknownCostReason::NoPrice, model)]);
    }
    let line = |meter: &str, tokens: u64, cents: i64| RecordLine {
        meter: meter.to_owned(),
        model: None,
        price_match: None,
        tokens: Some(tokens),
        quantity: None,
        unit: None,
        unit_price: Decimal::new(cents, 2),
        list_unit_price: None,
        amount: Decimal::new(cents, 2) * Decimal::from(tokens),
    };
    let (input, output) = (usage.input_tokens.unwrap(), usage.output_tokens.unwrap());
    let lines =
        vec![line("input", input, if input > 10 { 2 } else { 1 }), line("output", output, 3)];
    let amount = lines.iter().map(|line| line.amount).sum();
    let cost = RecordCost {
        at_least: false,
        currency: "USD".to_owned(),
        amount,
        list_amount: amount,
        price_id: "test".to_owned(),
        price_match: None,
        lines,
    };
    Charge { cost: Some(cost), unknown: Vec::new() }
}

fn results() -> Results {
    let conditions = [(Condition::Region, "eu".to_owned())].into();
    let held = HeldBytes::of(std::sync::Arc::default(), usize::MAX);
    Results::new(Dialect::OpenAi, conditions, HeldText::new(held, LINE_BYTES_MAX))
}

fn finished(text: &str) -> Option<BatchUsage> {
    let read = |pieces: &[&str]| {
        let mut results = results();
        pieces.iter().for_each(|piece| results.push(piece.as_bytes(), &price));
        results.finish(&price)
    };
    let whole = read(&[text]);
    for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
        let (head, tail) = text.split_at(at);
        assert_eq!(read(&[head, tail]), whole, "cut at {at}");
    }
    whole
}

fn chat(model: &str, input: u64, output: u64) -> String {
    format!(
        r#"{{"id":"batch_req_1","custom_id":"a","response":{{"status_code":200,"request_id":"r","body":{{"id":"c","object":"chat.completion","model":"{model}","choices":[{{"index":0,"message":{{"content":"\n"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":{input},"completion_tokens":{output},"total_tokens":{}}}}}}},"error":null}}"#,
        input + output
    )
}

fn message(input: u64, geo: &str) -> String {
    format!(
        r#"{{"custom_id":"a","result":{{"type":"succeeded","message":{{"id":"m","type":"message","role":"assistant","model":"claude","content":[{{"type":"text","text":"x"}}],"stop_reason":"end_turn","usage":{{"input_tokens":{input},"output_tokens":1,"cache_read_input_tokens":2,"inference_geo":"{geo}"}}}}}}}}"#
    )
}

const FAILED: &str = r#"{"id":"batch_req_2","custom_id":"b","response":{"status_code":400,"body":{"error":{}}},"error":null}"#;

fn cents(cents: i64) -> Decimal {
    Decimal::new(cents, 2)
}

#[test]
fn each_request_has_a_price_of_its_own() {
    let text =
        format!("{}\n{FAILED}\n{}\r\n\n{}", chat("m", 8, 1), chat("m", 20, 2), chat("m", 7, 1));
    let batch = finished(&text).unwrap();
    assert_eq!((batch.requests, batch.answered), (4, 3));
    assert_eq!(batch.response_model.as_deref(), Some("m"));
    assert_eq!((batch.usage.input_tokens, batch.usage.output_tokens), (Some(35), Some(4)));
    assert_eq!(batch.usage.source, Source::Reported);
    assert_eq!(batch.usage.conditions, [(Condition::Region, "eu".to_owned())].into());
    let cost = batch.charge.cost.unwrap();
    assert_eq!((cost.amount, cost.at_least), (cents(15 + 40 + 12), false));
    let lines: Vec<_> =
        cost.lines.iter().map(|line| (line.meter.as_str(), line.tokens, line.amount)).collect();
    let expected = [
        ("input", Some(15), cents(15)),
        ("input", Some(20), cents(40)),
        ("output", Some(4), cents(12)),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn results_have_the_shape_of_their_provider() {
    let anthropic = |kind: &str| {
        format!(r#"{{"custom_id":"b","result":{{"type":"{kind}","error":{{"type":"error"}}}}}}"#)
    };
    let all = [message(5, ""), anthropic("errored"), anthropic("canceled"), anthropic("expired")];
    let embeddings = r#"{"custom_id":"a","response":{"status_code":200,"body":{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":9,"total_tokens":9}}},"error":null}"#;
    let response = r#"{"custom_id":"a","response":{"status_code":200,"body":{"id":"r","object":"response","status":"completed","model":"m","output":[],"usage":{"input_tokens":7,"output_tokens":1,"total_tokens":8}}},"error":null}"#;
    let gemini = r#"{"key":"a","response":{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":6,"candidatesTokenCount":1,"totalTokenCount":7},"modelVersion":"m"}}"#;
    let refused = r#"{"key":"b","error":{"code":3,"message":"no"}}"#;
    let expired = r#"{"id":"x","custom_id":"c","response":null,"error":{"code":"batch_expired"}}"#;
    let errored = r#"{"custom_id":"d","response":{"status_code":200,"body":{"error":{"message":"no","type":"server_error"}}}}"#;
    for (text, requests, input) in [
        (all.join("\n"), 4, 7),
        (format!("{response}\n{expired}\n{errored}"), 3, 7),
        (format!("{gemini}\n{refused}"), 2, 6),
    ] {
        let batch = finished(&text).unwrap();
        assert_eq!((batch.requests, batch.answered), (requests, 1), "{text}");
        assert_eq!(batch.usage.input_tokens, Some(input), "{text}");
        assert_eq!(batch.charge.cost.unwrap().amount, cents(i64::try_from(input).unwrap() + 3));
    }
    let mut results = results();
    let free = |_: Option<&str>, _: &Usage| Charge::default();
    results.push(embeddings.as_bytes(), &free);
    let batch = results.finish(&free).unwrap();
    assert_eq!((batch.usage.input_tokens, batch.usage.source), (Some(9), Source::Reported));
    // They owe a share of GPUs.
    assert_eq!(batch.charge.cost, None);
}

#[test]
fn a_batch_of_two_models_has_the_sum_and_what_each_of_them_used() {
    let batch = finished(&format!("{}\n{}\n", chat("m", 1, 1), chat("n", 2, 2))).unwrap();
    assert_eq!((batch.response_model, batch.usage.input_tokens), (None, Some(3)));
    assert_eq!((batch.usage.output_tokens, batch.usage.passes), (Some(3), None));
    let models = batch.models.iter().map(|it| (it.model.as_deref(), it.usage.input_tokens));
    assert_eq!(models.collect::<Vec<_>>(), [(Some("m"), Some(1)), (Some("n"), Some(2))]);
    let cost = batch.charge.cost.unwrap();
    let models: Vec<_> = cost.lines.iter().map(|line| line.model.as_deref()).collect();
    assert_eq!(models, [Some("m"), Some("m"), Some("n"), Some("n")]);
    assert_eq!(cost.amount, cents(4 + 8));
}

#[test]
fn a_condition_that_differs_between_requests_holds_for_none_of_the_sum() {
    let conditions = |texts: [String; 2]| {
        let conditions = finished(&texts.join("\n")).unwrap().usage.conditions;
        conditions.get(&Condition::InferenceGeo).cloned()
    };
    assert_eq!(conditions([message(5, "us"), message(6, "us")]).as_deref(), Some("us"));
    assert_eq!(conditions([message(5, "us"), message(6, "global")]).as_deref(), Some("mixed"));
    let without = message(6, "").replace(r#","inference_geo":"""#, "");
    assert_eq!(conditions([without.clone(), message(5, "us")]).as_deref(), Some("mixed"));
    assert_eq!(conditions([message(5, "us"), without]).as_deref(), Some("mixed"));
}

#[test]
fn a_price_that_is_unknown_leaves_what_the_others_cost_at_least() {
    let batch = finished(&format!("{}\n{}\n", chat("m", 1, 1), chat("unpriced", 2, 2))).unwrap();
    let cost = batch.charge.cost.unwrap();
    assert_eq!((cost.amount, cost.at_least, batch.requests), (cents(4), true, 2));
    let batch = finished(&chat("unpriced", 2, 2)).unwrap();
    assert_eq!((batch.charge.cost, batch.usage.input_tokens), (None, Some(2)));
}

#[test]
fn requests_that_all_failed_have_used_nothing() {
    let batch = finished(&format!("{FAILED}\n")).unwrap();
    assert_eq!((batch.usage.source, batch.requests, batch.answered), (Source::None, 1, 0));
    assert_eq!((batch.charge.cost, batch.reported_cost), (None, None));
}

#[test]
fn costs_that_are_reported_add_up_if_all_answers_have_one() {
    let with = |cost: &str| chat("m", 1, 1).replace("\"total_tokens\":2", cost);
    let both = [with(r#""cost":0.25"#), with(r#""cost":0.05"#)].join("\n");
    assert_eq!(finished(&both).unwrap().reported_cost.as_deref(), Some("0.3"));
    let one = [with(r#""cost":0.25"#), chat("m", 1, 1)].join("\n");
    assert_eq!(finished(&one).unwrap().reported_cost, None);
}

#[test]
fn what_is_not_all_is_nothing() {
    let line = chat("m", 1, 1);
    let without_usage = line.replace("\"usage\"", "\"used\"");
    let cut = &line[..line.len() - 10];
    for text in [
        String::new(),
        "\n\n".to_owned(),
        "an ordinary file".to_owned(),
        r#"{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{}}"#.to_owned(),
        r#"{"custom_id":"a","result":{"type":"unheard_of"}}"#.to_owned(),
        format!("{line}\n{without_usage}\n"),
        format!("{line}\n{cut}"),
    ] {
        assert_eq!(finished(&text), None, "{text}");
    }
    let mut results = results();
    results.push(format!("{line}\n").as_bytes(), &price);
    results.push(&vec![b' '; LINE_BYTES_MAX + 1], &price);
    assert_eq!(results.finish(&price), None);
}

#[test]
fn more_models_than_are_kept_make_the_whole_unknown() {
    let lines = |models: usize| {
        let lines = (0..models).map(|number| chat(&format!("m{number}"), 1, 1));
        let mut results = results();
        results.push(lines.collect::<Vec<_>>().join("\n").as_bytes(), &price);
        results.finish(&price)
    };
    assert!(lines(16).is_some());
    assert_eq!(lines(17), None);
}
