//! Tests the format of every route over a real socket, with a client that knows only HTTP.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{Behaviour, Served, Simulator};

mod faults;

/// What came back: the head, the body without its framing, and whether the message was whole.
struct Answer {
    head: String,
    body: String,
    whole: bool,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// `data` of every event; `[DONE]` as a string.
    fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| data.into())).collect()
    }

    fn event_names(&self) -> Vec<&str> {
        self.body.lines().filter_map(|line| line.strip_prefix("event: ")).collect()
    }
}

async fn engine() -> Simulator {
    let quick = Behaviour { prefill: Duration::ZERO, gap: Duration::ZERO, ..Behaviour::default() };
    Simulator::bind("127.0.0.1:0", quick).await.unwrap()
}

async fn send(address: SocketAddr, path: &str, simulate: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    write(&mut stream, path, simulate, body).await;
    stream
}

async fn write(stream: &mut TcpStream, path: &str, simulate: &str, body: &str) {
    let method = if body.is_empty() { "GET" } else { "POST" };
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: engine\r\nx-request-id: r-1\r\n\
         x-simulate: {simulate}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
}

/// Reads one answer, or as much as comes of it.
async fn read(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    loop {
        if let Some(answer) = parse(&bytes).filter(|answer| answer.whole) {
            return answer;
        }
        let mut more = [0; 4096];
        let count = stream.read(&mut more).await.unwrap_or(0);
        if count == 0 {
            let nothing = Answer { head: String::new(), body: String::new(), whole: false };
            return parse(&bytes).unwrap_or(nothing);
        }
        bytes.extend_from_slice(&more[..count]);
    }
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let text = std::str::from_utf8(bytes).unwrap();
    let (head, mut rest) = text.split_once("\r\n\r\n")?;
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    if let Some(length) = length {
        let whole = rest.len() == length.parse::<usize>().unwrap();
        return Some(Answer { body: rest.to_owned(), whole, head });
    }
    let mut answer = Answer { head, body: String::new(), whole: false };
    while let Some((size, tail)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        let Some(chunk) = tail.get(..size) else { break };
        answer.body.push_str(chunk);
        if size == 0 {
            answer.whole = true;
            break;
        }
        rest = tail.get(size + 2..).unwrap_or("");
    }
    Some(answer)
}

async fn ask(engine: &Simulator, path: &str, simulate: &str, body: &str) -> Answer {
    read(&mut send(engine.addr(), path, simulate, body).await).await
}

/// Waits until the journal has `count` entries; the harness ends a wait that is in vain.
async fn served(engine: &Simulator, count: usize) -> Vec<Served> {
    loop {
        let served = engine.journal();
        if served.len() >= count {
            return served;
        }
        tokio::task::yield_now().await;
    }
}

const CHAT: &str = "/v1/chat/completions";
const CHAT_BODY: &str = r#"{"model":"m","messages":[{"role":"user","content":"one two three"}]}"#;
const CHAT_STREAM: &str = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},
    "messages":[{"role":"user","content":"one two three"}]}"#;

#[tokio::test]
async fn chat_answers_with_usage_and_the_words_it_counts() {
    let engine = engine().await;
    let answer = ask(&engine, CHAT, "output_tokens=5,reasoning_tokens=2", CHAT_BODY).await;
    assert!(answer.head.starts_with("http/1.1 200"), "{}", answer.head);
    let body = answer.json();
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(body["id"], "chatcmpl-r-1");
    let choice = &body["choices"][0];
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(choice["message"]["content"].as_str().unwrap().split(' ').count(), 3);
    assert_eq!(choice["message"]["reasoning"].as_str().unwrap().split(' ').count(), 2);
    let usage = &body["usage"];
    assert_eq!(usage["prompt_tokens"], 3);
    assert_eq!(usage["completion_tokens"], 5);
    assert_eq!(usage["total_tokens"], 8);
    assert_eq!(usage["completion_tokens_details"]["reasoning_tokens"], 2);
}

#[tokio::test]
async fn a_chat_stream_says_the_same_as_the_whole_answer() {
    let engine = engine().await;
    let settings = "output_tokens=7,reasoning_tokens=3,chunk_tokens=2";
    let whole = ask(&engine, CHAT, settings, CHAT_BODY).await.json();
    let stream = ask(&engine, CHAT, settings, CHAT_STREAM).await;
    assert!(stream.whole);
    let events = stream.events();
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    let told = |field: &str| -> String {
        let deltas = events.iter().map(|event| &event["choices"][0]["delta"][field]);
        deltas.filter_map(Value::as_str).collect()
    };
    assert_eq!(told("content"), whole["choices"][0]["message"]["content"].as_str().unwrap());
    assert_eq!(told("reasoning"), whole["choices"][0]["message"]["reasoning"].as_str().unwrap());
    let [.., finish, usage, done] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(finish["choices"][0]["finish_reason"], "stop");
    assert_eq!(usage["choices"], Value::Array(Vec::new()));
    assert_eq!(usage["usage"], whole["usage"]);
    assert_eq!(done, "[DONE]");
}

#[tokio::test]
async fn usage_is_absent_from_a_stream_that_did_not_ask() {
    let engine = engine().await;
    let body = r#"{"stream":true,"messages":[]}"#;
    let stream = ask(&engine, CHAT, "", body).await;
    assert!(stream.events().iter().all(|event| event.get("usage").is_none()));
    assert!(stream.body.ends_with("data: [DONE]\n\n"));
}

#[tokio::test]
async fn running_totals_come_when_they_are_asked_for_beside_usage() {
    let engine = engine().await;
    for (options, runs) in [
        (r#"{"include_usage":true,"continuous_usage_stats":true}"#, true),
        (r#"{"continuous_usage_stats":true}"#, false),
    ] {
        let body = format!(r#"{{"stream":true,"stream_options":{options},"prompt":"a b"}}"#);
        let stream = ask(&engine, "/v1/completions", "output_tokens=5,chunk_tokens=2", &body).await;
        let events = stream.events();
        let totals: Vec<u64> = events
            .iter()
            .filter_map(|event| event["usage"]["completion_tokens"].as_u64())
            .collect();
        assert_eq!(totals, if runs { vec![2, 4, 5, 5, 5] } else { vec![] });
    }
}

#[tokio::test]
async fn ids_of_all_tokens_come_when_they_are_asked_for() {
    let engine = engine().await;
    let body = r#"{"stream":true,"return_token_ids":true,"messages":[{"content":"a b c"}]}"#;
    let stream = ask(&engine, CHAT, "output_tokens=5,chunk_tokens=2", body).await;
    let events = stream.events();
    let ids = |value: &Value| value.as_array().map_or(0, Vec::len);
    assert_eq!(ids(&events[0]["prompt_token_ids"]), 3);
    let generated = events.iter().map(|event| ids(&event["choices"][0]["token_ids"]));
    assert_eq!(generated.sum::<usize>(), 5);
}

#[tokio::test]
async fn several_choices_are_told_side_by_side_and_counted_together() {
    let engine = engine().await;
    let body = r#"{"n":2,"stream":true,"stream_options":{"include_usage":true},"prompt":"a b"}"#;
    let stream = ask(&engine, "/v1/completions", "output_tokens=3", body).await;
    let events = stream.events();
    let text = |index: u64| -> String {
        let choices = events.iter().map(|event| &event["choices"][0]);
        let mine = choices.filter(|choice| choice["index"] == index);
        mine.filter_map(|choice| choice["text"].as_str()).collect()
    };
    assert_eq!(text(0).split(' ').count(), 3);
    assert_ne!(text(0), text(1));
    assert_eq!(events[events.len() - 2]["usage"]["completion_tokens"], 6);
}

#[tokio::test]
async fn the_requests_maximum_bounds_the_answer() {
    let engine = engine().await;
    let body = r#"{"prompt":"a b","max_tokens":4}"#;
    let answer = ask(&engine, "/v1/completions", "", body).await.json();
    assert_eq!(answer["object"], "text_completion");
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(answer["usage"]["completion_tokens"], 4);
    for none in ["-1", "0", "null"] {
        let body = body.replace('4', none);
        let answer = ask(&engine, "/v1/completions", "output_tokens=9", &body).await.json();
        assert_eq!(answer["choices"][0]["finish_reason"], "stop", "{none}");
        assert_eq!(answer["usage"]["completion_tokens"], 9, "{none}");
    }
}

#[tokio::test]
async fn messages_stream_in_anthropics_events() {
    let engine = engine().await;
    let body = r#"{"model":"c","max_tokens":100,"stream":true,"messages":[{"role":"user",
        "content":"a b c"}]}"#;
    let stream = ask(&engine, "/v1/messages", "output_tokens=4,reasoning_tokens=1", body).await;
    let mut names = stream.event_names();
    names.dedup();
    assert_eq!(
        names,
        [
            "message_start",
            "content_block_start",
            "ping",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    let events = stream.events();
    assert!(events.iter().zip(stream.event_names()).all(|(event, name)| event["type"] == name));
    assert_eq!(events[0]["message"]["usage"]["input_tokens"], 3);
    let last = &events[events.len() - 2];
    assert_eq!(last["delta"]["stop_reason"], "end_turn");
    assert_eq!(last["usage"]["output_tokens"], 4);
    assert_eq!(last["usage"]["output_tokens_details"]["thinking_tokens"], 1);
}

#[tokio::test]
async fn a_marked_prompt_is_written_to_the_cache_once_and_read_from_then_on() {
    let engine = engine().await;
    let system = "word ".repeat(40);
    let body = format!(
        r#"{{"system":[{{"type":"text","text":"{system}",
           "cache_control":{{"type":"ephemeral"}}}}],"messages":[]}}"#
    );
    let first = ask(&engine, "/v1/messages", "prefix_cache", &body).await.json();
    assert_eq!(first["usage"]["input_tokens"], 8);
    assert_eq!(first["usage"]["cache_creation_input_tokens"], 32);
    assert_eq!(first["usage"]["cache_creation"]["ephemeral_5m_input_tokens"], 32);
    let second = ask(&engine, "/v1/messages", "prefix_cache", &body).await.json();
    assert_eq!(second["usage"]["cache_read_input_tokens"], 32);
    assert_eq!(second["usage"]["cache_creation_input_tokens"], 0);
    assert_eq!(engine.journal()[1].input_tokens, 40);
}

#[tokio::test]
async fn responses_stream_in_numbered_events_and_end_with_usage() {
    let engine = engine().await;
    let body = r#"{"model":"o","stream":true,"input":"a b"}"#;
    let settings = "output_tokens=5,reasoning_tokens=2,cached_tokens=1";
    let stream = ask(&engine, "/v1/responses", settings, body).await;
    let events = stream.events();
    for (index, (event, name)) in events.iter().zip(stream.event_names()).enumerate() {
        assert_eq!(event["type"], name);
        assert_eq!(event["sequence_number"], index);
    }
    assert_eq!(events[0]["type"], "response.created");
    let completed = events.last().unwrap();
    assert_eq!(completed["type"], "response.completed");
    let usage = &completed["response"]["usage"];
    assert_eq!(usage["input_tokens"], 2);
    assert_eq!(usage["input_tokens_details"]["cached_tokens"], 1);
    assert_eq!(usage["output_tokens"], 5);
    assert_eq!(usage["output_tokens_details"]["reasoning_tokens"], 2);
    let plain = r#"{"model":"o","input":"a b"}"#;
    let whole = ask(&engine, "/v1/responses", settings, plain).await.json();
    assert_eq!(whole["usage"], *usage);
    assert_eq!(whole["output"], completed["response"]["output"]);
}

#[tokio::test]
async fn a_tool_call_is_json_in_every_api() {
    let engine = engine().await;
    let pick = |body: &Value, path: &str| body.pointer(path).unwrap().as_str().unwrap().to_owned();
    let chat = ask(&engine, CHAT, "tool_call", CHAT_BODY).await.json();
    assert_eq!(chat["choices"][0]["finish_reason"], "tool_calls");
    let arguments = pick(&chat, "/choices/0/message/tool_calls/0/function/arguments");
    assert!(serde_json::from_str::<Value>(&arguments).unwrap()["text"].is_string());
    let streamed: String = ask(&engine, CHAT, "tool_call", CHAT_STREAM)
        .await
        .events()
        .iter()
        .filter_map(|event| {
            event.pointer("/choices/0/delta/tool_calls/0/function/arguments")?.as_str()
        })
        .map(str::to_owned)
        .collect();
    assert_eq!(streamed, arguments);
    let message = ask(&engine, "/v1/messages", "tool_call", CHAT_BODY).await.json();
    assert_eq!(message["stop_reason"], "tool_use");
    assert!(message["content"][0]["input"]["text"].is_string());
    let response = ask(&engine, "/v1/responses", "tool_call", r#"{"input":"a"}"#).await.json();
    let arguments = pick(&response, "/output/0/arguments");
    assert!(serde_json::from_str::<Value>(&arguments).unwrap()["text"].is_string());
    for (route, body, name) in [
        (CHAT, CHAT_BODY, "/choices/0/message/tool_calls/0/function/name"),
        ("/v1/messages", CHAT_BODY, "/content/0/name"),
        ("/v1/responses", r#"{"input":"a"}"#, "/output/0/name"),
    ] {
        for (settings, tool) in [("tool_call", "look_up"), ("tool=apply_patch", "apply_patch")] {
            let answer = ask(&engine, route, settings, body).await.json();
            assert_eq!(pick(&answer, name), tool, "{route}");
        }
    }
}

#[tokio::test]
async fn embeddings_come_one_for_each_input_in_the_encoding_asked_for() {
    let engine = engine().await;
    let body = r#"{"model":"e","input":["a b","c"],"dimensions":3}"#;
    let answer = ask(&engine, "/v1/embeddings", "", body).await.json();
    assert_eq!(answer["data"][1]["embedding"].as_array().unwrap().len(), 3);
    assert_eq!(answer["usage"]["prompt_tokens"], 3);
    let body = r#"{"input":"a","dimensions":3,"encoding_format":"base64"}"#;
    let answer = ask(&engine, "/v1/embeddings", "", body).await.json();
    assert_eq!(answer["data"][0]["embedding"].as_str().unwrap().len(), 16);
}

#[tokio::test]
async fn the_engine_says_who_it_is() {
    let engine = engine().await;
    let models = ask(&engine, "/v1/models", "owned_by=llamacpp,model=m", "").await.json();
    assert_eq!(models["data"][0]["owned_by"], "llamacpp");
    assert_eq!(models["data"][0]["id"], "m");
    assert!(ask(&engine, "/health", "", "").await.head.starts_with("http/1.1 200"));
    assert!(ask(&engine, "/v1/nothing", "", "").await.head.starts_with("http/1.1 404"));
}

#[tokio::test]
async fn metrics_and_served_agree_with_what_was_answered() {
    let engine = engine().await;
    ask(&engine, CHAT, "output_tokens=5", CHAT_BODY).await;
    let metrics = ask(&engine, "/metrics", "", "").await.body;
    for line in [
        r#"vllm:prompt_tokens_total{engine="0",model_name="m"} 3"#,
        r#"vllm:generation_tokens_total{engine="0",model_name="m"} 5"#,
        r#"vllm:request_success_total{engine="0",model_name="m",finished_reason="stop"} 1"#,
        r#"vllm:num_requests_running{engine="0",model_name="m"} 0"#,
        r#"vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 1"#,
    ] {
        assert!(metrics.lines().any(|other| other == line), "{line} is not in\n{metrics}");
    }
    let served = ask(&engine, "/simulate/served", "", "").await.json();
    assert_eq!(served["request_id"], "r-1");
    assert_eq!(served["output_tokens"], 5);
    assert_eq!(served["end"], "finished");
}
