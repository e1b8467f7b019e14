use super::*;

fn prompt(wire: Wire, body: &str) -> Prompt {
    prompt_text(wire, body.as_bytes())
}

fn exactly(texts: &[&str], tokens: u64) -> Prompt {
    let texts = texts.iter().map(|&text| text.to_owned()).collect();
    Prompt { texts, tokens, estimated: false }
}

fn about(texts: &[&str], tokens: u64) -> Prompt {
    Prompt { estimated: true, ..exactly(texts, tokens) }
}

#[test]
fn a_chat_is_its_strings_and_openais_form() {
    let body = r#"{"model":"m","messages":[
        {"role":"system","content":"Be brief."},
        {"role":"user","name":"ann","content":[{"type":"text","text":"Hi"},
            {"type":"text","text":"!"}]},
        {"role":"assistant","content":null,"refusal":"No."}],"tools":null,"stream":true}"#;
    let texts = ["Be brief.", "system", "Hi", "!", "ann", "user", "No.", "assistant"];
    assert_eq!(prompt(Wire::ChatCompletions, body), exactly(&texts, 3 * 3 + 1 + 3));
}

#[test]
fn what_is_no_text_makes_a_chat_an_estimate() {
    let image = r#"{"messages":[{"content":[{"type":"text","text":"What is this?"},
        {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}"#;
    assert_eq!(prompt(Wire::ChatCompletions, image), about(&["What is this?"], 6));

    let tools = r#"{"messages":[{"content":"Go."}],"tools":[{"type":"function"}]}"#;
    let texts = ["Go.", r#"[{"type":"function"}]"#];
    assert_eq!(prompt(Wire::ChatCompletions, tools), about(&texts, 6));

    let call = r#"{"messages":[{"tool_calls":[{"id":"a"}]},{"content":"7","tool_call_id":"a"}]}"#;
    assert_eq!(prompt(Wire::ChatCompletions, call), about(&[r#"[{"id":"a"}]"#, "7"], 9));

    for body in ["{}", r#"{"messages":null}"#] {
        assert_eq!(prompt(Wire::ChatCompletions, body), about(&[], 0));
    }
    assert_eq!(prompt(Wire::ChatCompletions, r#"{"messages":[1]}"#), about(&[], 6));
}

#[test]
fn completions_and_embeddings_take_texts_or_token_ids() {
    for (wire, key) in [(Wire::Completions, "prompt"), (Wire::Embeddings, "input")] {
        let prompt = |value: &str| prompt(wire, &format!(r#"{{"model":"m","{key}":{value}}}"#));
        assert_eq!(prompt(r#""one text""#), exactly(&["one text"], 0));
        assert_eq!(prompt(r#"["one","two"]"#), exactly(&["one", "two"], 0));
        assert_eq!(prompt("[1,22,333]"), exactly(&[], 3));
        assert_eq!(prompt("[[1,22],[333],[]]"), exactly(&[], 3));
        assert_eq!(prompt("null"), about(&[], 0));
    }
    let fill = r#"{"prompt":"fn main() {","suffix":"}"}"#;
    assert_eq!(prompt(Wire::Completions, fill), about(&["fn main() {", "}"], 0));
    let rerank = r#"{"query":"taxi","documents":["cab",{"text":"car"}]}"#;
    assert_eq!(prompt(Wire::Embeddings, rerank), about(&["taxi", "cab", "car"], 0));
}

#[test]
fn responses_and_messages_are_estimates() {
    let body = r#"{"instructions":"Be brief.","input":[
        {"role":"user","content":[{"type":"input_text","text":"Hi"},
            {"type":"input_image","image_url":"data:AAAA"}]},
        {"type":"function_call","name":"f","arguments":"{}","call_id":"c"},
        {"type":"function_call_output","call_id":"c","output":"7"}]}"#;
    let texts = ["Be brief.", "Hi", "f", r#""{}""#, "7"];
    assert_eq!(prompt(Wire::Responses, body), about(&texts, 0));
    assert_eq!(prompt(Wire::Responses, r#"{"input":"Hi"}"#), about(&["Hi"], 0));

    let body = r#"{"system":[{"type":"text","text":"Be brief."}],"tools":[{"name":"f"}],"messages":[
        {"role":"user","content":"Hi"},
        {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"x":1}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"7"},
            {"type":"image","source":{"type":"base64","data":"AAAA"}}]}]}"#;
    let texts = ["Be brief.", "Hi", "f", r#"{"x":1}"#, "7", r#"[{"name":"f"}]"#];
    assert_eq!(prompt(Wire::Messages, body), about(&texts, 0));
}

#[test]
fn an_engines_own_routes_have_the_prompt_as_it_is() {
    for key in ["text", "inputs", "prompt"] {
        let body = format!(r#"{{"{key}":"Where to?","stream":true}}"#);
        assert_eq!(prompt(Wire::Generate, &body), exactly(&["Where to?"], 0));
    }
    assert_eq!(prompt(Wire::Generate, r#"{"input_ids":[[1,2],[3]]}"#), exactly(&[], 3));
    let body = r#"{"prompt":["Where",[1,2],7],"n_predict":9}"#;
    assert_eq!(prompt(Wire::LlamaCompletion, body), exactly(&["Where"], 3));
    let body = r#"{"input":"To the station","voice":"alloy"}"#;
    assert_eq!(prompt(Wire::Speech, body), exactly(&["To the station"], 0));
}

#[test]
fn ollama_wraps_its_prompts_and_its_images_are_no_text() {
    let body = r#"{"messages":[{"role":"user","content":"Hi","images":["AAAA"]}],"tools":[{}]}"#;
    assert_eq!(prompt(Wire::OllamaChat, body), about(&["Hi", "[{}]"], 0));
    let body = r#"{"prompt":"Where to?","system":"Be brief.","images":["AAAA"]}"#;
    assert_eq!(prompt(Wire::OllamaGenerate, body), about(&["Be brief.", "Where to?"], 0));
}

#[test]
fn lone_surrogates_are_replaced_one_by_one() {
    let body = r#"{"\ud800":1,"prompt":"a\ud83d\ud83d\ude00\ude00z"}"#;
    assert_eq!(prompt(Wire::Completions, body), exactly(&["a\u{fffd}😀\u{fffd}z"], 0));
}

#[test]
fn nesting_is_read_to_its_limit_and_counts_as_json_below() {
    let deep = "[".repeat(250) + &"]".repeat(250);
    let body = format!(r#"{{"x":{deep},"prompt":"text"}}"#);
    assert_eq!(prompt(Wire::Completions, &body), exactly(&["text"], 0));
    let body = format!(r#"{{"messages":[{{"content":{deep}}}]}}"#);
    let below = &deep[CONTENT_DEPTH_MAX..deep.len() - CONTENT_DEPTH_MAX];
    assert_eq!(prompt(Wire::ChatCompletions, &body), about(&[below], 6));
}

#[test]
fn a_body_that_cannot_be_read_is_text_as_a_whole() {
    let prompt = prompt_text(Wire::ChatCompletions, b"not JSON \xff");
    assert_eq!(prompt, about(&["not JSON \u{fffd}"], 0));
}
