//! Tests of chat templates.

use proptest::prelude::*;

use super::*;

const CASES: &str = include_str!("cases.json");
const CHATML: &str = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}";

fn now() -> Timestamp {
    Timestamp::from_second(1_795_000_000).unwrap()
}

fn template(source: &str) -> ChatTemplate {
    ChatTemplate::new(source, []).unwrap()
}

fn render(source: &str, body: &str) -> Result<Rendered, TemplateError> {
    template(source).render(body.as_bytes(), now())
}

fn hello(source: &str) -> Result<String, TemplateError> {
    let body = r#"{"messages":[{"role":"user","content":"hello"}]}"#;
    render(source, body).map(|rendered| rendered.text)
}

#[test]
fn prompts_are_those_of_the_reference_program() {
    let file: serde_json::Value = serde_json::from_str(CASES).unwrap();
    let specials: Vec<_> = file["specials"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, text)| (name.clone(), text.as_str().unwrap().to_owned()))
        .collect();
    let cases = file["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let source = file["templates"][case["template"].as_str().unwrap()].as_str().unwrap();
        let template = ChatTemplate::new(source, specials.clone()).unwrap();
        let body = case["request"].as_str().unwrap();
        let rendered = template.render(body.as_bytes(), now()).unwrap();
        assert_eq!(rendered.text, case["text"].as_str().unwrap(), "{body}");
        assert!(!rendered.media);
    }
}

#[test]
fn numbers_and_lists_print_as_in_python() {
    for (expression, printed) in [
        (
            "[1, 2.50, true, none, 'it\\'s', '\"', \"'\\\"\"]",
            r#"[1, 2.5, True, None, "it's", '"', '\'"']"#,
        ),
        ("{'a': [], 'b': {}}", "{'a': [], 'b': {}}"),
        ("1e16", "1e+16"),
        ("123456789012345680.0", "1.2345678901234568e+17"),
        ("0.0001", "0.0001"),
        ("0.00001234", "1.234e-05"),
        ("100.0", "100.0"),
        ("0.0", "0.0"),
        ("[1.5, 'x'] | join('-')", "1.5-x"),
        ("['\u{a0}\u{200b}é\u{301}']", "['\\xa0\\u200bé\u{301}']"),
        ("{'z': 1, 'a': 'é'} | tojson", r#"{"z": 1, "a": "é"}"#),
        (
            "{'z': 1, 'a': 'é'} | tojson(ensure_ascii=true, sort_keys=true)",
            r#"{"a": "\u00e9", "z": 1}"#,
        ),
        ("[1, []] | tojson(indent=1)", "[\n 1,\n []\n]"),
        ("[1, 2] | tojson(separators=(',', ':'))", "[1,2]"),
        ("'a\\rb\\x1cc\\n\\n'.splitlines()", "['a', 'b', 'c', '']"),
        ("'ab-c-d'.partition('-')", "['ab', '-', 'c-d']"),
        ("'ab'.removesuffix('b').removeprefix('x')", "a"),
        ("none is iterable", "False"),
        ("{} is sequence", "True"),
    ] {
        assert_eq!(hello(&format!("{{{{ {expression} }}}}")).as_deref(), Ok(printed));
    }
}

#[test]
fn a_model_s_files_give_the_template_and_its_variables() {
    let config = r#"{"bos_token":{"content":"<s>"},"eos_token":"</s>","pad_token":null,
        "extra_special_tokens":{"image_token":"<i>"},"add_bos_token":true,
        "chat_template":[{"name":"default","template":"{{ bos_token }}d{{ pad_token }}"},
            {"name":"tool_use","template":"t{{ image_token }}"}]}"#;
    let template = ChatTemplate::from_config(config, None).unwrap().unwrap();
    let text = |template: &ChatTemplate, tools: &str| {
        let body = format!(r#"{{"messages":[],"tools":{tools}}}"#);
        template.render(body.as_bytes(), now()).unwrap().text
    };
    assert_eq!(text(&template, "null"), "<s>d");
    assert_eq!(text(&template, "[]"), "t<i>");
    let of_file = ChatTemplate::from_config(config, Some("{{ eos_token }}")).unwrap().unwrap();
    assert_eq!(text(&of_file, "[]"), "</s>");
    assert!(ChatTemplate::from_config("{}", None).unwrap().is_none());
    for bad in ["", "[]", r#"{"chat_template":1}"#, r#"{"chat_template":[{"name":"x"}]}"#] {
        let fault = ChatTemplate::from_config(bad, None).unwrap_err();
        assert!(matches!(fault, TemplateError::Config(_)), "{bad}");
    }
    assert!(matches!(ChatTemplate::new("{% if %}", []), Err(TemplateError::Source(_))));
}

#[test]
fn images_are_told_and_take_their_place_in_a_list_of_parts() {
    let body = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"What is"},
        {"type":"image_url","image_url":{"url":"data:"}},{"type":"text","text":"this?"}]}]}"#;
    let rendered = render(CHATML, body).unwrap();
    assert_eq!((rendered.text.as_str(), rendered.media), ("<user>What is\nthis?", true));
    let parts = "{% for m in messages %}{% for p in m.content %}{{ p.type }} {% endfor %}\
                 {% endfor %}";
    assert_eq!(render(parts, body).unwrap().text, "text image text ");
}

#[test]
fn what_no_template_does_alone_is_refused() {
    for body in [
        "",
        "{}",
        "[]",
        r#"{"messages":"x"}"#,
        r#"{"messages":[{"content":"x"}]}"#,
        r#"{"messages":[{"role":"user","content":1}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"mystery"}]}]}"#,
        r#"{"messages":[{"role":"assistant","tool_calls":[1]}]}"#,
        r#"{"messages":[],"tools":[{"type":"custom"}]}"#,
        r#"{"messages":[],"continue_final_message":true}"#,
        r#"{"messages":[],"chat_template":"x"}"#,
        r#"{"messages":[{"role":"user","content":"\ud800"}]}"#,
    ] {
        let fault = render(CHATML, body).unwrap_err();
        assert!(matches!(fault, TemplateError::Request(_)), "{body}: {fault}");
    }
}

#[test]
fn what_is_not_known_to_be_exact_is_not_rendered() {
    let body = |value: &str| {
        format!(
            r#"{{"messages":[],"tools":[{{"function":{{"name":"f","parameters":{{"x":{value}}}}}}}]}}"#
        )
    };
    for (source, value, known) in [
        ("{{ tools ~ '' }}", "1e-5", false),
        ("{{ tools ~ '' }}", r#""\u200b""#, false),
        ("{{ tools ~ '' }}", "1.5", true),
        ("{{ tools }}", "1e-5", true),
        ("{{ tools[0].items }}", "1", false),
        ("{{ 'a' + ('<' | safe) }}", "1", false),
    ] {
        assert_eq!(render(source, &body(value)).is_ok(), known, "{source}, {value}");
    }
}

#[test]
fn a_fault_says_where_it_is_and_nothing_of_the_request() {
    let fault = hello("\n{{ raise_exception('no ' + messages[0].content) }}").unwrap_err();
    assert_eq!(
        fault.to_string(),
        "the chat template cannot render this request: invalid operation (line 2)"
    );
}

#[test]
fn rendering_stops_at_its_limits() {
    let limit = |source: &str, body: &str| match render(source, body) {
        Err(TemplateError::Limit(what)) => what,
        other => panic!("{other:?}"),
    };
    let empty = r#"{"messages":[]}"#;
    let endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
    assert_eq!(limit(endless, empty), "steps of the template");
    let long = "{% for a in range(99999) %}{{ 'x' * 100000 }}{% endfor %}";
    assert_eq!(limit(long, empty), "bytes of the prompt");
    let many = format!(r#"{{"messages":[{}1]}}"#, "1,".repeat(4096));
    assert_eq!(limit(CHATML, &many), "messages of the request");
    let large = " ".repeat(REQUEST_BYTES_MAX + 1);
    assert_eq!(limit(CHATML, &large), "bytes of the request");
    assert!(matches!(
        ChatTemplate::new(&" ".repeat(SOURCE_BYTES_MAX + 1), []),
        Err(TemplateError::Source(_))
    ));
    let deep = "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}";
    assert!(matches!(hello(deep), Err(TemplateError::Render { .. })));
    let nested = format!(r#"{{"messages":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert!(matches!(render(CHATML, &nested), Err(TemplateError::Request(_))));
}

proptest! {
    #[test]
    fn any_source_and_any_request_end_without_a_panic(
        source in "(\\{%|%\\}|\\{\\{|\\}\\}|for|in|messages|content|set|macro|\\(|\\)|'|\"|\\||safe|[a-z .=\\[\\]:+-]){0,40}",
        messages in "(\\{|\\}|\\[|\\]|\"role\":\"user\"|\"content\":|\"x\"|,|null|1){0,30}",
    ) {
        if let Ok(template) = ChatTemplate::new(&source, []) {
            let _ = template.render(format!("{{\"messages\":{messages}}}").as_bytes(), now());
        }
        let _ = render(CHATML, &format!("{{\"messages\":{messages}}}"));
    }

    #[test]
    fn python_s_floats_read_back_as_themselves(value: f64) {
        prop_assume!(value.is_finite());
        prop_assert_eq!(python::float(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
    }
}
