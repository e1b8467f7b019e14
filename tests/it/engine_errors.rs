//! Errors of engines in every dialect's form: what the record calls them, and what they owe.

use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, MESSAGE, STREAM_CHAT};
use crate::gateway::Setup;
use crate::http::{answer, post};
use crate::unused::{assert_unused, await_unused};

/// Stands in each message.
const SECRET: &str = "secret-prompt";

const CHATS: &str = "/v1/chat/completions";
const EMBEDDINGS: &str = "/v1/embeddings";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";
const GEMINI: &str = "/v1beta/models/gemini-2.5-flash:generateContent";
const CONVERSE: &str = "/model/anthropic.claude-haiku-4-5-20251001-v1%3A0/converse";
const AZURE: &str = "/openai/deployments/gpt-4o-mini/chat/completions?api-version=2024-10-21";
const COHERE: &str = "/v2/chat";
const OLLAMA: &str = "/api/chat";

const CONTENTS: &str = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#;
const CONVERSATION: &str = r#"{"messages":[{"role":"user","content":[{"text":"hi"}]}]}"#;
const INPUT: &str = r#"{"model":"gpt-4o-mini","input":"hi"}"#;

/// Dialect, path, body of the request, status, head and body of the answer, and what the record says.
type Case =
    (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str, Value);

fn cases_of_open_ai_s_form() -> Vec<Case> {
    vec![
        (
            "openai",
            CHATS,
            CHAT,
            "400 Bad Request",
            "",
            r#"{"error":{"message":"secret-prompt","type":"invalid_request_error","param":null,"code":"context_length_exceeded"}}"#,
            json!({"type": "invalid_request_error", "code": "context_length_exceeded"}),
        ),
        (
            "openai",
            CHATS,
            STREAM_CHAT,
            "429 Too Many Requests",
            "",
            r#"{"error":{"message":"secret-prompt","type":"tokens","code":"rate_limit_exceeded"}}"#,
            json!({"type": "tokens", "code": "rate_limit_exceeded"}),
        ),
        (
            "openai",
            RESPONSES,
            INPUT,
            "401 Unauthorized",
            "",
            r#"{"error":{"message":"secret-prompt","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
            json!({"type": "invalid_request_error", "code": "invalid_api_key"}),
        ),
        (
            "vllm",
            CHATS,
            CHAT,
            "400 Bad Request",
            "",
            r#"{"object":"error","message":"secret-prompt","type":"BadRequestError","param":null,"code":400}"#,
            json!({"type": "BadRequestError", "code": "400"}),
        ),
        (
            "azure",
            AZURE,
            CHAT,
            "404 Not Found",
            "",
            r#"{"error":{"code":"DeploymentNotFound","message":"secret-prompt"}}"#,
            json!({"code": "DeploymentNotFound"}),
        ),
        (
            "azure",
            AZURE,
            CHAT,
            "401 Unauthorized",
            "",
            r#"{"statusCode":401,"message":"secret-prompt"}"#,
            json!({"status": "401"}),
        ),
        (
            "azure",
            AZURE,
            CHAT,
            "429 Too Many Requests",
            "x-ms-error-code: RateLimited\r\n",
            "secret-prompt",
            json!({"code": "RateLimited"}),
        ),
        ("openai", CHATS, CHAT, "500 Internal Server Error", "", "secret-prompt", Value::Null),
    ]
}

fn cases_of_other_forms() -> Vec<Case> {
    vec![
        (
            "anthropic",
            MESSAGES,
            MESSAGE,
            "529 Overloaded",
            "",
            r#"{"type":"error","error":{"type":"overloaded_error","message":"secret-prompt"},"request_id":"req_1"}"#,
            json!({"type": "overloaded_error"}),
        ),
        (
            "gemini",
            GEMINI,
            CONTENTS,
            "503 Service Unavailable",
            "",
            r#"{"error":{"code":503,"message":"secret-prompt","status":"UNAVAILABLE"}}"#,
            json!({"status": "UNAVAILABLE", "code": "503"}),
        ),
        (
            "gemini",
            GEMINI,
            CONTENTS,
            "429 Too Many Requests",
            "",
            r#"[{"error":{"code":429,"message":"secret-prompt","status":"RESOURCE_EXHAUSTED","details":[{"reason":"secret-prompt"}]}}]"#,
            json!({"status": "RESOURCE_EXHAUSTED", "code": "429"}),
        ),
        (
            "bedrock",
            CONVERSE,
            CONVERSATION,
            "429 Too Many Requests",
            "x-amzn-ErrorType: ThrottlingException:http://internal.amazon.com/coral/\r\n",
            r#"{"message":"secret-prompt"}"#,
            json!({"type": "ThrottlingException"}),
        ),
        (
            "bedrock",
            CONVERSE,
            CONVERSATION,
            "400 Bad Request",
            "x-amzn-ErrorType: com.amazon.coral.validate#ValidationException\r\n",
            "",
            json!({"type": "ValidationException"}),
        ),
        (
            "bedrock",
            CONVERSE,
            CONVERSATION,
            "403 Forbidden",
            "",
            r#"{"__type":"com.amazon.coral.service#AccessDeniedException","message":"secret-prompt"}"#,
            json!({"type": "AccessDeniedException"}),
        ),
        (
            "bedrock",
            CONVERSE,
            CONVERSATION,
            "500 Internal Server Error",
            "x-amzn-ErrorType: secret prompt\r\n",
            r#"{"Message":"secret-prompt"}"#,
            Value::Null,
        ),
        ("ollama", OLLAMA, CHAT, "404 Not Found", "", r#"{"error":"secret-prompt"}"#, Value::Null),
    ]
}

#[test]
fn every_dialect_s_error_is_on_the_record_by_its_names_and_never_by_its_message() {
    for case in cases_of_open_ai_s_form().into_iter().chain(cases_of_other_forms()) {
        let (dialect, path, body, status, head, error, names) = case;
        let engine = Engine::start();
        let gateway = Setup::before(&engine).upstream(&format!("dialect: {dialect}")).start();
        let mut client = Client::saying(gateway.address(), &post(path, "", body));
        let said = answer(status, "application/json", error);
        let said = String::from_utf8(said).expect("UTF-8");
        engine.answer_once(said.replacen("\r\n", &format!("\r\n{head}"), 1).as_bytes());
        assert_eq!(client.answer().text(), error, "{path}");
        let code = status.split(' ').next().expect("a code");
        let record = &await_unused(&gateway, 1, "upstream_refused", code)[0];
        assert_eq!(record["error"], names, "{path} {error}: {record}");
        assert_eq!(record["status"].to_string(), code, "{record}");
        assert_eq!((&record["upstream"], &record["attempt"]), (&"engine".into(), &1.into()));
        assert!(!record.to_string().contains(SECRET), "{record}");
    }
}

/// Each dialect's own words for an error that says that nothing was used, and for the same with
/// tokens.
#[test]
fn zeros_that_an_error_reports_owe_nothing_and_tokens_are_owed_in_every_dialect() {
    let cases = [
        (
            "cohere",
            COHERE,
            CHAT,
            r#"{"message":"no","usage":{"billed_units":{"input_tokens":#,"output_tokens":0},"tokens":{"input_tokens":#,"output_tokens":0}}}"#,
        ),
        (
            "openai",
            CHATS,
            CHAT,
            r#"{"error":{"code":"c"},"usage":{"prompt_tokens":#,"completion_tokens":0,"total_tokens":#,"prompt_tokens_details":{"cached_tokens":0}}}"#,
        ),
        (
            "openai",
            RESPONSES,
            INPUT,
            r#"{"id":"resp_1","object":"response","status":"failed","error":{"code":"c"},"usage":{"input_tokens":#,"output_tokens":0,"total_tokens":#}}"#,
        ),
        (
            "openai",
            EMBEDDINGS,
            r#"{"model":"text-embedding-3-small","input":"hi"}"#,
            r#"{"error":{"code":"c"},"usage":{"prompt_tokens":#,"total_tokens":#}}"#,
        ),
        (
            "anthropic",
            MESSAGES,
            MESSAGE,
            r#"{"type":"error","error":{"type":"overloaded_error"},"usage":{"input_tokens":#,"output_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"service_tier":"standard"}}"#,
        ),
        (
            "gemini",
            GEMINI,
            CONTENTS,
            r#"{"error":{"code":503,"status":"UNAVAILABLE"},"usageMetadata":{"promptTokenCount":#,"totalTokenCount":#}}"#,
        ),
        (
            "bedrock",
            CONVERSE,
            CONVERSATION,
            r#"{"__type":"ThrottlingException","usage":{"inputTokens":#,"outputTokens":0,"totalTokens":#}}"#,
        ),
        (
            "ollama",
            OLLAMA,
            CHAT,
            r#"{"error":"no","prompt_eval_count":#,"eval_count":0,"done":true}"#,
        ),
    ];
    for (dialect, path, body, error) in cases {
        for status in ["400 Bad Request", "429 Too Many Requests", "500 Internal Server Error"] {
            let engine = Engine::start();
            let gateway = Setup::before(&engine).upstream(&format!("dialect: {dialect}")).start();
            for (count, tokens) in [(1, "0"), (2, "7")] {
                let said = error.replace('#', tokens);
                let mut client = Client::saying(gateway.address(), &post(path, "", body));
                engine.answer_once(&answer(status, "application/json", &said));
                assert_eq!(client.answer().text(), said);
                let record = gateway.await_records(count).pop().expect("a record");
                assert_eq!(record["end"], "upstream_refused", "{record}");
                if tokens == "0" {
                    assert_unused(&record);
                } else {
                    assert_eq!(record["usage"]["input_tokens"], 7, "{path}: {record}");
                }
            }
        }
    }
}
