//! Providers and clouds that speak like nobody else: Gemini, Cohere, Bedrock, and the routes that
//! Vertex AI, SageMaker and callers in tokens ask engines on.

use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::{Connection, Engine};
use crate::gateway::{Gateway, Setup};
use crate::http::{Message, answer, bare, chunk, json_answer, post, stream_answer};
use crate::identity::ACME;
use crate::unused::assert_unused;

/// Answers, as the meter's own tests have them.
macro_rules! fixture {
    ($path:literal) => {
        include_bytes!(concat!("../fixtures/", $path))
    };
}

/// One exchange with an upstream so configured: what the engine got, what the client heard, what
/// the ledger has.
fn exchange(upstream: &str, request: &[u8], reply: &[u8]) -> (Message, Message, Value) {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream(upstream).start();
    let mut client = Client::saying(gateway.address(), request);
    let got = engine.answer_once(reply);
    (got, client.answer(), gateway.record())
}

fn tokens(record: &Value) -> [&Value; 2] {
    [&record["usage"]["input_tokens"], &record["usage"]["output_tokens"]]
}

const PROMPT: &str = r#"{"contents":[{"role":"user","parts":[{"text":"Where to?"}]}]}"#;

#[test]
fn gemini_is_metered_and_priced_on_its_own_routes() {
    let events = fixture!("gemini/content_thinking_tools.sse");
    let ask = post("/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", "", PROMPT);
    let (got, heard, record) =
        exchange("dialect: gemini", &ask, &answer("200 OK", "text/event-stream", events));
    assert_eq!((got.text(), heard.body.as_slice()), (PROMPT, events.as_slice()));
    assert_eq!(
        (&record["operation"], &record["stream"]),
        (&"generate_content".into(), &true.into())
    );
    assert_eq!(record["request_model"], "gemini-2.5-flash");
    assert_eq!(record["provider"], "gcp.gemini");
    assert_eq!(
        (&record["end"], &record["usage"]["source"]),
        (&"complete".into(), &"reported".into())
    );
    assert_eq!(tokens(&record), [916, 109]);
    assert_eq!(record["usage"]["reasoning_output_tokens"], 84);
    assert_eq!(record["usage"]["cache_read_input_tokens"], 512);
    assert_eq!(record["usage"]["modalities"]["audio_input_tokens"], 258);
    // 146 of text, 258 of sound, 512 cached, 109 of output, one search.
    assert_eq!(record["cost"]["amount"], "0.03558966", "{record}");
}

#[test]
fn a_stream_of_geminis_that_was_not_asked_for_as_events_is_one_all_the_same() {
    let list = fixture!("gemini/content_list.json");
    let ask = post("/v1/models/gemini-2.5-flash:streamGenerateContent", "", PROMPT);
    let (_, _, record) =
        exchange("dialect: gemini", &ask, &answer("200 OK", "application/json", list));
    assert_eq!(
        (&record["stream"], &record["finish_reasons"]),
        (&true.into(), &json!(["MAX_TOKENS"]))
    );
    assert_eq!(tokens(&record), [6, 4]);
}

/// The record of a stream that its client leaves once it has this much of it.
fn record_of_leaving(
    gateway: &Gateway,
    mut client: Client,
    mut connection: Connection,
    cut: &[u8],
) -> Value {
    connection.send(&chunk(cut));
    client.head();
    assert_eq!(client.next_chunk().as_deref(), Some(cut));
    drop(client);
    connection.assert_closed_by_gateway();
    gateway.await_records(1).remove(0)
}

#[test]
fn a_client_that_leaves_a_list_of_geminis_owes_what_it_was_sent() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: gemini").start();
    let ask = post("/v1beta/models/gemini-2.5-flash:streamGenerateContent", "", PROMPT);
    let client = Client::saying(gateway.address(), &ask);
    let (mut connection, _) = engine.request();
    connection.send(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    let cut = fixture!("gemini/content_list_cut.json");
    let record = &record_of_leaving(&gateway, client, connection, cut);
    assert_eq!(
        (&record["end"], &record["timing"]["output_chunks"]),
        (&"client_left".into(), &1.into())
    );
    assert!(record["timing"]["time_to_first_token"].is_number(), "{record}");
    // "To the ", whose last blank is a token too.
    assert_eq!(tokens(record), [6, 3]);
}

#[test]
fn output_that_gemini_has_not_told_when_its_stream_breaks_is_counted() {
    let events = fixture!("gemini/content_cut.sse");
    let ask = post("/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", "", PROMPT);
    let (_, _, record) =
        exchange("dialect: gemini", &ask, &answer("200 OK", "text/event-stream", events));
    assert_eq!(record["end"], "truncated");
    assert_eq!(tokens(&record), [15, 3]);
    assert_eq!(
        record["usage"]["sources"],
        json!({"input_tokens": "reported", "output_tokens": "counted"})
    );
}

#[test]
fn googles_clients_show_their_key_in_googles_header_and_so_is_ours() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: gemini, credential: sk-ours")
        .with(&format!("tenants:\n  unknown: refuse\n  keys: [{ACME}]"))
        .start();
    let route = "/v1beta/models/gemini-2.5-flash:generateContent";
    for (target, shown) in [
        (route, ("x-goog-api-key", "sk-ours")),
        ("/v1beta/openai/chat/completions", ("authorization", "Bearer sk-ours")),
    ] {
        let body = if target == route { PROMPT } else { crate::fixtures::CHAT };
        let ask = post(target, "x-goog-api-key: sk-acme\r\n", body);
        let mut client = Client::saying(gateway.address(), &ask);
        let got = engine.answer_once(&json_answer("{}"));
        assert_eq!(client.answer().status(), 200);
        let keys: Vec<_> = got.headers.iter().filter(|(_, value)| value.contains("sk-")).collect();
        assert_eq!(keys.len(), 1, "{got:?}");
        assert_eq!(got.header(shown.0), Some(shown.1), "{target}");
    }
    assert_eq!(gateway.records().len(), 2);
    let refused = gateway.ask(&post(route, "x-goog-api-key: sk-other\r\n", PROMPT));
    assert_eq!(refused.status(), 401);
}

#[test]
fn googles_clients_may_show_their_key_in_the_query_and_no_engine_sees_it_there() {
    let engine = Engine::start();
    let mut gateway = Setup::before(&engine)
        .upstream("dialect: gemini, credential: sk-ours")
        .with(&format!("tenants:\n  unknown: refuse\n  keys: [{ACME}]"))
        .start();
    let route = "/v1beta/models/gemini-2.5-flash:streamGenerateContent";
    for (query, seen) in [
        ("key=sk-acme", ""),
        ("alt=sse&key=sk-acme&prettyPrint=false", "?alt=sse&prettyPrint=false"),
    ] {
        let ask = post(&format!("{route}?{query}"), "Connection: close\r\n", PROMPT);
        let mut client = Client::saying(gateway.address(), &ask);
        let got = engine.answer_once(&json_answer("{}"));
        assert_eq!(client.answer().status(), 200);
        assert_eq!(got.first_line, format!("POST {route}{seen} HTTP/1.1"));
        assert_eq!(got.header("x-goog-api-key"), Some("sk-ours"));
    }
    assert!(gateway.records().iter().all(|record| record["key_id"] == "acme-prod"));
    for (query, header, status) in [
        ("key=sk-other", "", 401),
        ("key=sk-acme&key=sk-other", "", 400),
        ("key=sk-acme", "x-goog-api-key: sk-other\r\n", 400),
    ] {
        let refused = gateway.ask(&post(&format!("{route}?{query}"), header, PROMPT));
        assert_eq!(refused.status(), status, "{query}");
    }
    engine.assert_untouched();
    gateway.terminate();
    let log = gateway.exit().1;
    assert!(!log.is_empty() && !log.iter().any(|line| line.contains("sk-")), "{log:#?}");
}

#[test]
fn counting_tokens_at_a_provider_is_recorded_and_free() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for target in ["/v1beta/models/m:countTokens", "/model/m/count-tokens"] {
        let mut client = Client::saying(gateway.address(), &post(target, "", PROMPT));
        engine.answer_once(&json_answer(r#"{"totalTokens":31}"#));
        assert_eq!(client.answer().status(), 200);
    }
    let mut client = Client::saying(gateway.address(), &bare("GET", "/v1beta/models", ""));
    engine.answer_once(&json_answer("{}"));
    assert_eq!(client.answer().status(), 200);
    let models: Vec<_> = gateway
        .await_records(2)
        .iter()
        .map(|record| {
            assert_unused(record);
            record["request_model"].clone()
        })
        .collect();
    assert_eq!(models, ["m", "m"]);
}

#[test]
fn cohere_is_charged_by_what_it_bills() {
    let ask = r#"{"model":"command-a-03-2025","stream":true,
        "messages":[{"role":"user","content":"Where to?"}]}"#;
    let events = fixture!("cohere/chat_tool_use.sse");
    let (got, heard, record) = exchange(
        "dialect: cohere",
        &post("/v2/chat", "", ask),
        &answer("200 OK", "text/event-stream", events),
    );
    assert_eq!((got.text(), heard.body.as_slice()), (ask, events.as_slice()));
    assert_eq!((&record["operation"], &record["end"]), (&"chat".into(), &"complete".into()));
    assert_eq!(tokens(&record), [25, 38]);
    assert_eq!(record["cost"]["amount"], "0.0004425", "{record}");

    let ask =
        r#"{"model":"embed-v4.0","input_type":"image","images":["data:image/png;base64,AA"]}"#;
    let reply = answer("200 OK", "application/json", fixture!("cohere/embeddings_images.json"));
    let (_, _, record) = exchange("dialect: cohere", &post("/v2/embed", "", ask), &reply);
    assert_eq!(record["operation"], "embeddings");
    assert_eq!(record["usage"]["modalities"]["image_input_tokens"], 1082);
    // 6 of text, 1082 of pictures.
    assert_eq!(record["cost"]["amount"], "0.00050926", "{record}");

    let ask = r#"{"model":"rerank-v3.5","query":"taxi","documents":["cab","car"]}"#;
    let reply = answer("200 OK", "application/json", fixture!("cohere/rerank.json"));
    let (_, _, record) = exchange("dialect: cohere", &post("/v2/rerank", "", ask), &reply);
    assert_eq!(record["cost"]["amount"], "0.002", "{record}");
}

const CONVERSE: &str = r#"{"messages":[{"role":"user","content":[{"text":"Where to?"}]}]}"#;

#[test]
fn bedrocks_streams_are_read_in_awss_framing() {
    let messages = fixture!("bedrock/converse_stream.eventstream");
    let target = "/model/anthropic.claude-haiku-4-5-20251001-v1%3A0/converse-stream";
    let reply = answer("200 OK", "application/vnd.amazon.eventstream", messages);
    let (got, heard, record) = exchange("dialect: bedrock", &post(target, "", CONVERSE), &reply);
    assert_eq!(
        (got.first_line.as_str(), got.text()),
        (&*format!("POST {target} HTTP/1.1"), CONVERSE)
    );
    assert_eq!(heard.body, messages);
    assert_eq!((&record["stream"], &record["end"]), (&true.into(), &"complete".into()));
    assert_eq!(record["provider"], "aws.bedrock");
    assert_eq!(record["request_model"], "anthropic.claude-haiku-4-5-20251001-v1:0");
    assert_eq!(tokens(&record), [2600, 31]);
    assert_eq!(record["usage"]["cache_write_long_input_tokens"], 384);
    assert!(record["timing"]["time_to_first_token"].is_number(), "{record}");

    let cut = answer(
        "200 OK",
        "application/vnd.amazon.eventstream",
        fixture!("bedrock/converse_cut.eventstream"),
    );
    let (_, _, record) = exchange("dialect: bedrock", &post(target, "", CONVERSE), &cut);
    assert_eq!(
        (&record["end"], &record["usage"]["source"]),
        (&"truncated".into(), &"counted".into())
    );
    assert!(record["usage"]["output_tokens"].as_u64() > Some(0), "{record}");
}

/// Asks for a stream in AWS's framing, which the engine begins.
fn converse(engine: &Engine, gateway: &Gateway) -> (Client, Connection) {
    let ask = post("/model/anthropic.claude-haiku-4-5/converse-stream", "", CONVERSE);
    let client = Client::saying(gateway.address(), &ask);
    let (mut connection, _) = engine.request();
    connection.send(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\n\
          Transfer-Encoding: chunked\r\n\r\n",
    );
    (client, connection)
}

#[test]
fn a_client_that_leaves_a_stream_in_awss_framing_owes_what_it_was_sent() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: bedrock").start();
    let (client, connection) = converse(&engine, &gateway);
    // All of it but for the last bytes of a message.
    let cut = fixture!("bedrock/converse_cut.eventstream");
    let record = &record_of_leaving(&gateway, client, connection, cut);
    assert_eq!(
        (&record["end"], &record["usage"]["source"]),
        (&"client_left".into(), &"counted".into())
    );
    // "A short way.To the station.": what was thought is output too.
    assert_eq!(record["usage"]["output_tokens"], 7, "{record}");
    assert_eq!(record["timing"]["output_chunks"], 3);
}

#[test]
fn a_stream_in_awss_framing_that_falls_silent_ends_with_an_exception() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: bedrock")
        .with("limits: {upstream_idle_timeout_seconds: 0.2}")
        .start();
    let (mut client, mut connection) = converse(&engine, &gateway);
    let whole = fixture!("bedrock/converse_stream.eventstream");
    let length = u32::from_be_bytes(whole[..4].try_into().expect("four bytes"));
    let first = &whole[..usize::try_from(length).expect("a length")];
    connection.send(&chunk(first));
    let heard = client.answer();
    let exception = heard.body.strip_prefix(first).expect("what came before the silence");
    let said = String::from_utf8_lossy(exception);
    for part in ["modelStreamErrorException", "application/json", "upstream_timeout"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!((heard.complete, exception.len()), (false, usize::from(exception[3])));
    assert_eq!(gateway.record()["end"], "upstream_stalled");
}

#[test]
fn a_model_in_a_path_that_is_no_name_never_reaches_the_engine() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let refused = gateway.ask(&post("/model/a%0ab/converse", "", CONVERSE));
    let code = &refused.json()["error"]["code"];
    assert_eq!((refused.status(), code), (400, &"invalid_value".into()));
    engine.assert_untouched();
}

#[test]
fn several_chats_in_one_request_are_one_record() {
    let ask = r#"{"model":"qwen3","messages":[[{"role":"user","content":"Where to?"}],
        [{"role":"user","content":"And then?"}]]}"#;
    let reply = answer("200 OK", "application/json", fixture!("vllm/batch_two_chats.json"));
    let (_, _, record) =
        exchange("dialect: vllm", &post("/v1/chat/completions/batch", "", ask), &reply);
    assert_eq!(record["finish_reasons"], json!(["stop", "length"]));
    assert_eq!(tokens(&record), [24, 6]);
}

#[test]
fn tokens_that_go_in_and_come_out_as_ids_are_counted_by_their_number() {
    let ask = r#"{"model":"qwen3","token_ids":[1,2,3],"stream":true,"sampling_params":{}}"#;
    let request = post("/inference/v1/generate", "", ask);
    let events = fixture!("vllm/tokens_ids.sse");
    let reply = answer("200 OK", "text/event-stream", events);
    let (got, heard, record) = exchange("dialect: vllm", &request, &reply);
    // It may be asked for usage, and needs not be.
    assert_eq!((got.text(), heard.body.as_slice()), (ask, events.as_slice()));
    assert_eq!(tokens(&record), [3, 4]);
    assert_eq!(record["usage"]["flagged"]["output_tokens"], json!(["token_ids"]));
    assert_eq!(record["usage"]["flagged"]["input_tokens"], json!(["missing"]), "{record}");
    assert!(record["timing"]["time_to_first_token"].is_number(), "{record}");
}

#[test]
fn a_chat_that_sagemaker_asks_is_asked_for_its_usage_like_any_other() {
    let ask = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"Where to?"}]}"#;
    let events: Vec<_> = std::str::from_utf8(fixture!("sglang/invocations_chat.sse"))
        .expect("UTF-8")
        .split_inclusive("\n\n")
        .collect();
    let (got, heard, record) =
        exchange("dialect: sglang", &post("/invocations", "", ask), &stream_answer(&events));
    assert_eq!(got.json()["stream_options"], json!({"include_usage": true}));
    let [begin @ .., _usage, done] = events.as_slice() else { panic!("too few events") };
    let unasked = [begin, &[*done]].concat().concat().replace(",\"usage\":null", "");
    assert_eq!(heard.text(), unasked);
    assert_eq!(tokens(&record), [14, 2]);

    let embed = post("/invocations", "", r#"{"model":"bge","input":["Where to?"]}"#);
    let reply = answer("200 OK", "application/json", fixture!("vllm/invocations_embedding.json"));
    let (_, _, record) = exchange("dialect: vllm", &embed, &reply);
    assert_eq!(
        (tokens(&record), &record["usage"]["source"]),
        ([&5.into(), &0.into()], &"reported".into())
    );
}

#[test]
fn prompts_that_vertex_ai_asks_are_added_up() {
    let ask = r#"{"instances":[{"text":"Where to?"},{"text":"And then?"}],
        "parameters":{"sampling_params":{"max_new_tokens":4}}}"#;
    let reply = answer("200 OK", "application/json", fixture!("sglang/vertex_two_instances.json"));
    let (got, _, record) = exchange("dialect: sglang", &post("/vertex_generate", "", ask), &reply);
    assert_eq!(got.text(), ask);
    assert_eq!(tokens(&record), [13, 4]);

    // An answer that tells nothing is counted.
    let plain = answer("200 OK", "application/json", r#"{"predictions":[{"text":" Rome"}]}"#);
    let (_, _, record) = exchange("dialect: sglang", &post("/vertex_generate", "", ask), &plain);
    assert_eq!(record["usage"]["source"], "counted");
    assert!(record["usage"]["output_tokens"].as_u64() > Some(0), "{record}");
}
