use super::*;

fn prompt(wire: Wire, body: &str) -> Prompt {
    prompt_text(wire, None, body.as_bytes())
}

fn exactly(texts: &[&str], tokens: u64) -> Prompt {
    let texts = texts.iter().map(|&text| text.to_owned()).collect();
    Prompt { texts, tokens, ..Prompt::default() }
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
    let image = prompt(Wire::ChatCompletions, image);
    assert_eq!(image, Prompt { image_tokens: 765, ..about(&["What is this?"], 6) });

    let tools = r#"{"messages":[{"content":"Go."}],"tools":[{"type":"function"}]}"#;
    let texts = ["Go.", r#"{"type":"function"}"#];
    assert_eq!(prompt(Wire::ChatCompletions, tools), about(&texts, 6 + 12));

    let call = r#"{"messages":[{"tool_calls":[{"id":"a"}]},{"content":"7","tool_call_id":"a"}]}"#;
    assert_eq!(prompt(Wire::ChatCompletions, call), about(&[r#"[{"id":"a"}]"#, "7"], 9));

    for part in [
        r#"{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}"#,
        r#"{"type":"file","file":{"file_id":"f"}}"#,
        r#"{"type":"video_url","video_url":{"url":"https://e.org/a.mp4"}}"#,
    ] {
        let body = format!(r#"{{"messages":[{{"content":[{part}]}}]}}"#);
        assert_eq!(prompt(Wire::ChatCompletions, &body), about(&[], 6), "{part}");
    }
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
    for body in [
        r#"{"query":"taxi","documents":["cab",{"text":"car"}]}"#,
        r#"{"query":"taxi","texts":["cab","car"]}"#,
        r#"{"queries":"taxi","documents":["cab","car"]}"#,
        r#"{"text_1":"taxi","text_2":["cab","car"]}"#,
        r#"{"data_1":"taxi","data_2":["cab","car"]}"#,
        r#"{"query":"taxi","items":["cab","car"]}"#,
        r#"{"content":["taxi","cab","car"]}"#,
    ] {
        assert_eq!(prompt(Wire::Embeddings, body), about(&["taxi", "cab", "car"], 0), "{body}");
    }
}

#[test]
fn responses_and_messages_are_estimates() {
    let body = r#"{"instructions":"Be brief.","input":[
        {"role":"user","content":[{"type":"input_text","text":"Hi"},
            {"type":"input_image","image_url":"data:AAAA"}]},
        {"type":"function_call","name":"f","arguments":"{}","call_id":"c"},
        {"type":"function_call_output","call_id":"c","output":"7"}]}"#;
    let texts = ["Be brief.", "Hi", "f", r#""{}""#, "7"];
    let expected = Prompt { image_tokens: 765, ..about(&texts, 0) };
    assert_eq!(prompt(Wire::Responses, body), expected);
    assert_eq!(prompt(Wire::Responses, r#"{"input":"Hi"}"#), about(&["Hi"], 0));

    let body = r#"{"system":[{"type":"text","text":"Be brief."}],"tools":[{"name":"f"}],"messages":[
        {"role":"user","content":"Hi"},
        {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"x":1}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"7"},
            {"type":"image","source":{"type":"base64","data":"AAAA"}}]}]}"#;
    let texts = ["Be brief.", "Hi", "f", r#"{"x":1}"#, "7", r#"[{"name":"f"}]"#];
    let expected = Prompt { image_tokens: 1399, ..about(&texts, 0) };
    assert_eq!(prompt(Wire::Messages, body), expected);
}

#[test]
fn chats_in_a_batch_are_each_in_a_form_of_their_own() {
    let body = r#"{"model":"m","messages":[[{"role":"user","content":"Hi"}],
        [{"role":"user","content":"Go."}]]}"#;
    let chats = prompt(Wire::ChatBatch, body);
    assert_eq!(chats, exactly(&["Hi", "user", "Go.", "user"], 2 * (3 + 3)));
    assert_eq!(prompt(Wire::ChatBatch, r#"{"messages":[1]}"#), about(&[], 0));
}

#[test]
fn providers_of_their_own_kind_have_their_texts_read_wherever_they_stand() {
    let gemini = r#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[
        {"role":"user","parts":[{"text":"Hi"},{"inlineData":{"mimeType":"image/png","data":"AA"}}]},
        {"role":"model","parts":[{"functionCall":{"name":"f","args":{"x":1}}}]},
        {"role":"user","parts":[{"functionResponse":{"name":"f","response":{"y":2}}}]}],
        "tools":[{"googleSearch":{}}]}"#;
    let texts =
        ["Be brief.", "Hi", "f", r#"{"x":1}"#, "f", r#"{"y":2}"#, r#"[{"googleSearch":{}}]"#];
    assert_eq!(prompt(Wire::GenerateContent, gemini), about(&texts, 0));

    let bedrock = r#"{"system":[{"text":"Be brief."}],"messages":[
        {"role":"user","content":[{"text":"Hi"},{"image":{"format":"png","source":{"bytes":"AA"}}}]},
        {"role":"assistant","content":[{"toolUse":{"toolUseId":"t","name":"f","input":{"x":1}}}]},
        {"role":"user","content":[{"toolResult":{"toolUseId":"t","content":[{"json":{"y":2}}]}}]}],
        "toolConfig":{"tools":[]}}"#;
    let texts = ["Be brief.", "Hi", "f", r#"{"x":1}"#, r#"{"y":2}"#, r#"{"tools":[]}"#];
    assert_eq!(prompt(Wire::Converse, bedrock), about(&texts, 0));

    let cohere = r#"{"messages":[{"role":"system","content":"Be brief."},
        {"role":"user","content":[{"type":"text","text":"Hi"}]}],"documents":["A rank."]}"#;
    assert_eq!(prompt(Wire::CohereChat, cohere), about(&["Be brief.", "Hi", "A rank."], 0));

    let embedded = r#"{"content":{"parts":[{"text":"taxi"},{"text":"cab"}]}}"#;
    assert_eq!(prompt(Wire::Embeddings, embedded), about(&["taxi", "cab"], 0));
    let several = r#"{"requests":[{"content":{"parts":[{"text":"taxi"}]}}]}"#;
    assert_eq!(prompt(Wire::Embeddings, several), about(&["taxi"], 0));
}

#[test]
fn routes_that_clouds_ask_engines_on_are_read_as_those_they_stand_for() {
    let instances = r#"{"instances":[{"text":"Hi"},{"input_ids":[1,2]}],
        "parameters":{"sampling_params":{"max_new_tokens":4}}}"#;
    assert_eq!(prompt(Wire::VertexGenerate, instances), exactly(&["Hi"], 2));
    let several = r#"{"instances":[{"text":"Hi"}],"parameters":{"sampling_params":{"n":2}}}"#;
    assert_eq!(prompt(Wire::VertexGenerate, several), about(&["Hi"], 0));
    assert_eq!(prompt(Wire::VertexGenerate, "{}"), about(&[], 0));

    let chat = r#"{"messages":[{"role":"user","content":"Hi"}]}"#;
    assert_eq!(prompt(Wire::Invocations, chat), prompt(Wire::ChatCompletions, chat));
    assert_eq!(prompt(Wire::Invocations, r#"{"prompt":"Hi"}"#), exactly(&["Hi"], 0));
    assert_eq!(prompt(Wire::Invocations, r#"{"input":["Hi"]}"#), exactly(&["Hi"], 0));
}

#[test]
fn flat_tools_are_told_in_openais_form() {
    let body = |model: &str| {
        format!(
            r#"{{"model":"{model}","messages":[{{"content":"Go."}}],"tools":[
            {{"type":"function","function":{{"name":"fare","description":"What it costs.",
                "parameters":{{"type":"object","required":["to"],"properties":{{
                    "to":{{"type":"string","description":"Where."}},
                    "unit":{{"type":"string","description":"Of length","enum":["km","mi"]}}}}}}}}}},
            {{"type":"function","function":{{"name":"now","description":"The time"}}}}]}}"#
        )
    };
    let texts = [
        "Go.",
        "fare:What it costs",
        "to:string:Where",
        "km",
        "mi",
        "unit:string:Of length",
        "now:The time",
    ];
    // Two functions, parameters, two of them, one with two values in place of three, the end.
    let around = |function: u64| 6 + 2 * function + 3 + 2 * 3 - 3 + 2 * 3 + 12;
    for (model, function) in [("gpt-4o-mini", 7), ("gpt-4-0613", 10), ("openai/gpt-3.5-turbo", 10)]
    {
        let counted = prompt(Wire::ChatCompletions, &body(model));
        assert_eq!(counted, exactly(&texts, around(function)), "{model}");
    }
    assert_eq!(prompt(Wire::ChatCompletions, &body("gpt-5.4")), about(&texts, around(7)));
}

#[test]
fn nested_schemas_count_as_their_json_and_make_an_estimate() {
    let body = r#"{"model":"gpt-4o","messages":[],"tools":[{"type":"function","function":{"name":"f",
        "description":"d","parameters":{"type":"object","properties":{
            "x":{"type":"array","description":"y","items":{"type":"string"}}}}}}]}"#;
    let texts = ["f:d", "x:array:y", r#"{"type":"string"}"#];
    assert_eq!(prompt(Wire::ChatCompletions, body), about(&texts, 3 + 7 + 3 + 3 + 12));
    for odd in [r#""x""#, "{}", "[1]", r#"[{"function":1}]"#, r#"[{"type":"web_search"}]"#] {
        let body = format!(r#"{{"model":"gpt-4o","messages":[],"tools":{odd}}}"#);
        assert!(prompt(Wire::ChatCompletions, &body).estimated, "{odd}");
    }
    let none = r#"{"model":"gpt-4o","messages":[],"tools":[],"functions":null}"#;
    assert_eq!(prompt(Wire::ChatCompletions, none), exactly(&[], 3));
}

#[test]
fn the_first_chat_model_had_a_form_of_its_own() {
    let body = r#"{"messages":[{"content":"a"},{"content":"b","name":"ann"}]}"#;
    let count = |model| prompt_text(Wire::ChatCompletions, Some(model), body.as_bytes());
    assert_eq!(count("gpt-3.5-turbo-0301"), exactly(&["a", "b", "ann"], 4 + 3 + 3));
    assert_eq!(count("gpt-3.5-turbo-0613"), exactly(&["a", "b", "ann"], 3 + 4 + 3));
}

#[test]
fn a_chat_with_an_open_model_is_an_estimate_in_openais_form() {
    let body = r#"{"messages":[{"content":"Go."}]}"#;
    let count = |model| prompt_text(Wire::ChatCompletions, Some(model), body.as_bytes());
    assert_eq!(count("openai/gpt-oss-20b"), about(&["Go."], 6));
    assert_eq!(count("gpt-5"), exactly(&["Go."], 6));
    let body = r#"{"prompt":"Go."}"#;
    let plain = prompt_text(Wire::Completions, Some("gpt-oss-20b"), body.as_bytes());
    assert_eq!(plain, exactly(&["Go."], 0));
}

proptest::proptest! {
    #[test]
    fn any_body_is_read_without_a_panic(
        body in "(\\{|\\}|\\[|\\]|\"(messages|tools|functions|function|parameters|properties|enum|type|content|image_url|url|name|x)\"|:|,|1|null|\"data:image/png;base64,iVBORw0KGgo\"){0,60}",
    ) {
        for wire in [Wire::ChatCompletions, Wire::Responses, Wire::Messages, Wire::Embeddings] {
            let counted = prompt_text(wire, None, body.as_bytes());
            let bytes: usize = counted.texts.iter().map(String::len).sum();
            proptest::prop_assert!(bytes <= 4 * body.len() + 64);
        }
    }
}

#[test]
fn an_engines_own_routes_have_the_prompt_as_it_is() {
    for key in ["text", "inputs", "prompt"] {
        let body = format!(r#"{{"{key}":"Where to?","stream":true}}"#);
        assert_eq!(prompt(Wire::Generate, &body), exactly(&["Where to?"], 0));
    }
    assert_eq!(prompt(Wire::Generate, r#"{"input_ids":[[1,2],[3]]}"#), exactly(&[], 3));
    for beside in [
        r#""image_data":["AAAA"]"#,
        r#""audio_data":"AAAA""#,
        r#""sampling_params":{"n":2}"#,
        r#""sampling_params":[{"n":1},{"n":3}]"#,
    ] {
        let body = format!(r#"{{"text":"Where to?",{beside}}}"#);
        assert_eq!(prompt(Wire::Generate, &body), about(&["Where to?"], 0), "{beside}");
    }
    let one = r#"{"text":"Where to?","image_data":null,"sampling_params":{"n":1,"temperature":0}}"#;
    assert_eq!(prompt(Wire::Generate, one), exactly(&["Where to?"], 0));
    let seen = r#"{"prompt":{"prompt_string":"What is <__media__>?","multimodal_data":["AAAA"]}}"#;
    assert_eq!(prompt(Wire::LlamaCompletion, seen), about(&["What is <__media__>?"], 0));
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
    let prompt = prompt_text(Wire::ChatCompletions, None, b"not JSON \xff");
    assert_eq!(prompt, about(&["not JSON \u{fffd}"], 0));
}
