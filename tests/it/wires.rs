//! Routes beside chat: engines' own, sound, images, responses in the background, what is never
//! billed.

use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{Message, answer, bare, json_answer, post, stream_answer};

const NDJSON: &str = "application/x-ndjson";

/// One exchange: what the engine got, what the client heard, what the ledger has.
fn exchange(request: &[u8], reply: &[u8]) -> (Message, Message, Value) {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = Client::saying(gateway.address(), request);
    let got = engine.answer_once(reply);
    (got, client.answer(), gateway.record())
}

fn usage<'r>(record: &'r Value, member: &str) -> &'r Value {
    &record["usage"][member]
}

/// As `post`, of another type.
fn typed(target: &str, content_type: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let headers = format!("Content-Type: {content_type}\r\nContent-Length: {length}\r\n");
    [bare("POST", target, &headers), body.into()].concat()
}

/// A form with a file, as a client sends it, and its type.
fn form(fields: &[(&str, &str)]) -> (&'static str, String) {
    let mut body = String::from(
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n",
    );
    for (name, value) in fields {
        let part = format!("Content-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body = format!("{body}--b\r\n{part}");
    }
    ("multipart/form-data; boundary=b", format!("{body}--b--\r\n"))
}

#[test]
fn ollama_streams_lines_unless_told_not_to() {
    let lines = concat!(
        "{\"model\":\"llama3.2\",\"message\":{\"role\":\"assistant\",\"content\":\"To\"},",
        "\"done\":false}\n",
        "{\"model\":\"llama3.2\",\"message\":{\"content\":\"\"},\"done\":true,",
        "\"done_reason\":\"stop\",\"prompt_eval_count\":26,\"eval_count\":3}\n"
    );
    let ask = r#"{"model":"llama3.2","messages":[{"role":"user","content":"Where to?"}]}"#;
    // As curl sends it when it is told nothing, and with a receipt that lines have no place for.
    let headers = "Content-Type: application/x-www-form-urlencoded\r\nx-taximeter-receipt: 1\r\n";
    let (got, heard, record) =
        exchange(&post("/api/chat", headers, ask), &answer("200 OK", NDJSON, lines));
    assert_eq!(got.text(), ask);
    assert_eq!(heard.text(), lines);
    assert_eq!((&record["stream"], &record["end"]), (&true.into(), &"complete".into()));
    assert_eq!(usage(&record, "source"), "reported");
    assert_eq!(
        (usage(&record, "input_tokens"), usage(&record, "output_tokens")),
        (&26.into(), &3.into())
    );
    assert!(record["timing"]["time_to_first_token"].is_number(), "{record}");
}

#[test]
fn ollama_leaves_out_the_input_that_it_had_cached_and_it_is_counted() {
    let line = "{\"model\":\"m\",\"response\":\"To\",\"done\":true,\"eval_count\":1}\n";
    let ask = r#"{"model":"m","prompt":"Where to?","stream":false}"#;
    let (_, _, record) = exchange(&post("/api/generate", "", ask), &json_answer(line));
    assert_eq!(record["stream"], false);
    assert_eq!(usage(&record, "output_tokens"), 1);
    assert!(usage(&record, "input_tokens").as_u64() > Some(0), "{record}");
    assert_eq!(usage(&record, "source"), "counted");
}

#[test]
fn an_error_in_our_words_is_a_line_where_the_stream_is_lines() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: ollama")
        .with("limits: {upstream_idle_timeout_seconds: 0.2}")
        .start();
    let ask = r#"{"model":"m","prompt":"Where to?"}"#;
    let mut client = Client::saying(gateway.address(), &post("/api/generate", "", ask));
    let (mut connection, _) = engine.request();
    let line = "{\"model\":\"m\",\"response\":\"To\",\"done\":false}\n";
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: {NDJSON}\r\nTransfer-Encoding: chunked\r\n\r\n");
    connection.send(head.as_bytes());
    connection.send(&crate::http::chunk(line));
    let heard = client.answer();
    let error = heard.text().strip_prefix(line).expect("what came before the silence");
    let error: Value = serde_json::from_str(error).expect("one more line");
    assert!(error["error"].is_string(), "{error}");
    let record = gateway.record();
    assert_eq!(record["end"], "upstream_stalled");
    assert_eq!(usage(&record, "output_tokens"), 1);
}

#[test]
fn an_engines_own_route_needs_no_model() {
    let events = [
        "data: {\"text\":\" To\",\"meta_info\":{\"id\":\"a\",\"finish_reason\":null,\
         \"prompt_tokens\":6,\"completion_tokens\":1}}\n\n",
        "data: {\"text\":\" To the\",\"meta_info\":{\"id\":\"a\",\"finish_reason\":\
         {\"type\":\"stop\"},\"prompt_tokens\":6,\"completion_tokens\":2}}\n\n",
        "data: [DONE]\n\n",
    ];
    let ask = r#"{"text":"Where","stream":true}"#;
    let (_, heard, record) = exchange(&post("/generate", "", ask), &stream_answer(&events));
    assert_eq!(heard.text(), events.concat());
    assert_eq!(record["operation"], "text_completion");
    assert_eq!(
        (usage(&record, "input_tokens"), usage(&record, "output_tokens")),
        (&6.into(), &2.into())
    );
}

#[test]
fn a_form_passes_unchanged_and_names_the_model() {
    let (kind, body) = form(&[("model", "whisper-1")]);
    let reply = r#"{"text":"To the station","usage":{"type":"duration","seconds":3.5}}"#;
    let (got, _, record) =
        exchange(&typed("/v1/audio/transcriptions", kind, &body), &json_answer(reply));
    assert_eq!(got.text(), body);
    assert_eq!(record["request_model"], "whisper-1");
    assert_eq!(usage(&record, "source"), "reported");
    assert_eq!(usage(&record, "units")["audio_seconds"], "3.5");
    assert!(usage(&record, "input_tokens").is_null(), "{record}");
    let line = &record["cost"]["lines"][0];
    assert_eq!((&line["quantity"], &line["unit"]), (&"3.5".into(), &"seconds".into()));
    assert_eq!(record["cost"]["amount"], "0.00035");
}

#[test]
fn an_image_is_not_priced_as_text() {
    let ask = r#"{"model":"gpt-4o-mini","prompt":"A taxi"}"#;
    let reply = r#"{"created":1,"data":[{"b64_json":"iVBORw0KGgo="}],"usage":{"input_tokens":50,
        "input_tokens_details":{"image_tokens":40,"text_tokens":10},"output_tokens":272}}"#;
    let (_, _, record) = exchange(&post("/v1/images/generations", "", ask), &json_answer(reply));
    let modalities = usage(&record, "modalities");
    assert_eq!(modalities["image_input_tokens"], 40);
    assert_eq!(modalities["image_output_tokens"], 272);
    assert!(record["cost"].is_null(), "{record}");
}

#[test]
fn a_form_that_two_readers_could_read_differently_never_reaches_the_engine() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let send = |kind: &str, body: &str| gateway.ask(&typed("/v1/audio/transcriptions", kind, body));
    let (kind, twice) = form(&[("model", "a"), ("model", "b")]);
    let refused = send(kind, &twice);
    assert_eq!(
        (refused.status(), &refused.json()["error"]["code"]),
        (400, &"duplicate_key".into())
    );
    let (kind, whole) = form(&[("model", "a")]);
    let refused = send(kind, &whole[..whole.len() - 5]);
    assert_eq!(
        (refused.status(), &refused.json()["error"]["code"]),
        (400, &"invalid_value".into())
    );
    for kind in ["audio/wav", "multipart/form-data"] {
        assert_eq!(send(kind, &twice).status(), 415, "{kind}");
    }
    let (kind, body) = form(&[("model", "gpt-4o-mini")]);
    let refused = gateway.ask(&typed("/v1/chat/completions", kind, &body));
    assert_eq!(refused.status(), 415);
    engine.assert_untouched();
}

#[test]
fn subtitles_and_spoken_words_tell_no_usage() {
    let (kind, body) = form(&[("model", "whisper-1"), ("response_format", "vtt")]);
    let (_, _, record) = exchange(
        &typed("/v1/audio/transcriptions", kind, &body),
        &answer("200 OK", "text/vtt", "WEBVTT\n\n00:00.000 --> 00:01.000\nTo the station\n"),
    );
    assert_eq!((&record["end"], usage(&record, "source")), (&"complete".into(), &"unknown".into()));
    assert!(usage(&record, "output_tokens").is_null(), "{record}");

    let ask = r#"{"model":"gpt-4o-mini-tts","input":"To the station","voice":"alloy"}"#;
    let (_, _, record) =
        exchange(&post("/v1/audio/speech", "", ask), &answer("200 OK", "audio/mpeg", "ID3"));
    // Charged by its text, whose length we know; its tokens nobody does.
    assert_eq!(usage(&record, "units")["characters"], "14");
    assert!(usage(&record, "input_tokens").is_null(), "{record}");
    assert!(usage(&record, "output_tokens").is_null(), "{record}");
    assert!(record["cost"].is_null(), "{record}");
}

/// A request on a route, the type of the answer and the answer; how it is charged.
type Charged<'a> = (&'a str, &'a str, (&'a str, &'a str), [&'a str; 4]);

#[test]
fn images_speech_films_and_pages_are_charged_by_their_number() {
    let prices = tempfile::tempdir().expect("a temporary folder");
    let book = prices.path().join("book.yaml");
    let text = "models:\n- {model: dall-e-3, rates: {images: 0.04}}\n\
                - {model: tts-1, rates: {characters: 0.000015}}\n\
                - {model: sora-2, rates: {video_seconds: 0.1}}\n\
                - {model: mistral-ocr-latest, rates: {pages: 0.001}}\n\
                - {model: own-images, rates: {input: 0, output: 0}}\n";
    std::fs::write(&book, text).expect("write the prices");
    let engine = Engine::start();
    let overrides = format!("prices: {{overrides: \"{}\"}}", book.display());
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(&overrides).start();
    let json = "application/json";
    let (images, film, pages) = (
        r#"{"created":1,"data":[{"url":"https://e.org/1"},{"url":"https://e.org/2"}]}"#,
        r#"{"id":"video_1","object":"video","model":"sora-2","status":"queued","seconds":"8"}"#,
        r#"{"pages":[{},{},{}],"model":"mistral-ocr-latest","usage_info":{"pages_processed":3}}"#,
    );
    let charged: [Charged<'_>; 4] = [
        (
            "/v1/images/generations",
            r#"{"model":"dall-e-3","prompt":"A taxi","n":2}"#,
            (json, images),
            ["images", "2", "0.08", "counted"],
        ),
        (
            "/v1/audio/speech",
            r#"{"model":"tts-1","input":"To the caf\u00e9 \ud83d\ude95","voice":"alloy"}"#,
            ("audio/mpeg", "ID3"),
            ["characters", "13", "0.000195", "counted"],
        ),
        (
            "/v1/videos",
            r#"{"model":"sora-2","prompt":"A taxi","seconds":"8"}"#,
            (json, film),
            ["video_seconds", "8", "0.8", "reported"],
        ),
        (
            "/v1/ocr",
            r#"{"model":"mistral-ocr-latest","document":{"document_url":"https://e.org/a.pdf"}}"#,
            (json, pages),
            ["pages", "3", "0.003", "reported"],
        ),
    ];
    for (route, ask, (kind, reply), [meter, quantity, amount, source]) in charged {
        let mut client = Client::saying(gateway.address(), &post(route, "", ask));
        engine.answer_once(&answer("200 OK", kind, reply));
        client.answer();
        let record = gateway.records().pop().expect("a record");
        assert_eq!(usage(&record, "units"), &json!({ meter: quantity }), "{record}");
        assert_eq!(usage(&record, "source"), source, "{record}");
        assert_eq!(usage(&record, "flags"), &json!([]), "{record}");
        let line = &record["cost"]["lines"][0];
        assert_eq!((&line["meter"], &line["quantity"]), (&meter.into(), &quantity.into()));
        assert_eq!(record["cost"]["amount"], amount, "{record}");
    }
    // Free by its tokens is free, whatever else was counted.
    let ask = r#"{"model":"own-images","prompt":"A taxi"}"#;
    let mut client = Client::saying(gateway.address(), &post("/v1/images/generations", "", ask));
    engine.answer_once(&json_answer(images));
    client.answer();
    assert_eq!(gateway.records().pop().expect("a record")["cost"]["amount"], "0");

    let data_dir = gateway.data_dir();
    let data_dir = data_dir.to_str().expect("UTF-8");
    let rows = taximeter(["bill", "--data-dir", data_dir, "--format", "focus"]);
    let rows = String::from_utf8(rows.stdout).expect("UTF-8");
    for meter in [",Images,", ",Characters,", ",Video Seconds,", ",Pages,"] {
        assert!(rows.contains(meter), "{meter} in {rows}");
    }
}

#[test]
fn a_moderation_generates_nothing_and_its_input_is_counted() {
    let ask = r#"{"input":["Where to?","Station"]}"#;
    let reply = r#"{"id":"modr-1","model":"omni-moderation-latest","results":[{"flagged":false}]}"#;
    let (_, _, record) = exchange(&post("/v1/moderations", "", ask), &json_answer(reply));
    assert_eq!(usage(&record, "source"), "counted");
    assert!(usage(&record, "output_tokens").is_null(), "{record}");
    assert!(usage(&record, "input_tokens").as_u64() > Some(0), "{record}");
    // Free on purpose.
    assert_eq!(record["cost"]["amount"], "0");
}

#[test]
fn only_a_status_that_has_no_body_makes_an_empty_answer_whole() {
    let ask = post("/v1/chat/completions", "Connection: close\r\n", crate::fixtures::CHAT);
    let bare = |head: &str| format!("HTTP/1.1 {head}\r\n\r\n").into_bytes();
    for (reply, end) in [
        (bare("204 No Content"), "complete"),
        (bare("200 OK\r\nContent-Length: 0"), "truncated"),
        (answer("200 OK", "application/json", ""), "truncated"),
        (answer("200 OK", "text/event-stream", ""), "truncated"),
    ] {
        let (_, _, record) = exchange(&ask, &reply);
        assert_eq!(record["end"], end, "{}", String::from_utf8_lossy(&reply));
        assert!(usage(&record, "input_tokens").as_u64() > Some(0), "{record}");
    }
}
