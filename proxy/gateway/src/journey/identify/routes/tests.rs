use taximeter_meter::Wire;

use super::route::Operation;
use super::*;

#[test]
fn a_path_is_the_route_that_a_server_may_take_it_for() {
    for path in [
        "/v1/chat/completions",
        "/v1/chat/completions/",
        "//v1//chat/completions",
        "/v1/chat%2fcompletions",
        "/v1/%63hat/completions",
        "/v1/./chat/completions",
        "/v1/x/../chat/completions",
        "/v1/x/%2e%2e/chat/completions",
        // What is free by one reading is on the ledger by another.
        "/v1/models/../chat/completions",
        "/v1/responses/..%2fchat%2fcompletions%2f",
        "/v1/batches/..%2f..%2fv1%2fchat%2fcompletions%2fx%2f../.",
    ] {
        for passthrough in [false, true] {
            let (route, _) = find(&Method::POST, path, passthrough).unwrap();
            assert_eq!(route.template, "/v1/chat/completions", "{path}");
            assert_eq!((route.operation, route.wire), (Operation::Chat, Wire::ChatCompletions));
        }
    }
    for path in [
        "/V1/chat/completions",
        "/v1/Chat/Completions",
        "/v1/chat/completions;a=b",
        "/v1/chat/completions%20",
        "/v1/chat/completions%00",
        "/v1/chat/completions%3fa=b",
        "/v1/%2563hat/completions",
        "/v1/chat",
        "",
    ] {
        let refusal = find(&Method::POST, path, false).unwrap_err();
        assert_eq!(refusal.code(), "unknown_route", "{path}");
    }
}

#[test]
fn a_path_that_is_two_metered_routes_or_leads_above_the_root_is_none() {
    for path in [
        "/v1/chat//../completions",
        "/openai/v1//../responses",
        "/openai/deployments/x%2f../../v1//../responses",
        // What leads above the root may lead out of an upstream's prefix.
        "/../v1/chat/completions",
        "/v1/..%2f../chat/completions",
        "/openai/deployments/..%2f..%2f..%2fv1/chat/completions",
    ] {
        for passthrough in [false, true] {
            let refusal = find(&Method::POST, path, passthrough).unwrap_err();
            assert_eq!(refusal.code(), "unknown_route", "{path}");
        }
    }
}

#[test]
fn engines_serve_openai_s_api_without_v1_too() {
    for (path, operation, wire) in [
        ("/chat/completions", Operation::Chat, Wire::ChatCompletions),
        ("/completions", Operation::TextCompletion, Wire::Completions),
        ("/responses", Operation::Chat, Wire::Responses),
        ("/messages", Operation::Chat, Wire::Messages),
        ("/embeddings", Operation::Embeddings, Wire::Embeddings),
        ("/reranking", Operation::Rerank, Wire::Embeddings),
        ("/audio/transcriptions", Operation::Transcription, Wire::Transcriptions),
        ("/images/generations", Operation::ImageGeneration, Wire::Images),
    ] {
        for path in [path.to_owned(), format!("/v1{path}"), format!("/openai/v1{path}")] {
            let (route, _) = find(&Method::POST, &path, false).unwrap();
            assert_eq!(route.template, path);
            assert_eq!((route.operation, route.wire), (operation, wire), "{path}");
            assert_eq!(route.billing, Billing::Ledger, "{path}");
        }
    }
    for path in ["/models", "/models/org/m", "/v1/models/", "//models"] {
        let (route, _) = find(&Method::GET, path, false).unwrap();
        assert_eq!(route.billing, Billing::Free, "{path}");
    }
}

#[test]
fn conversations_are_served_and_never_billed() {
    for prefix in ["", "/v1", "/openai/v1"] {
        for (method, path, changes) in [
            (Method::POST, "/conversations", None),
            (Method::GET, "/conversations/conv_1", Some(false)),
            (Method::POST, "/conversations/conv_1", Some(false)),
            (Method::DELETE, "/conversations/conv_1", Some(true)),
            (Method::GET, "/conversations/conv_1/items", Some(false)),
            (Method::HEAD, "/conversations/conv_1/items", Some(false)),
            (Method::POST, "/conversations/conv_1/items", Some(true)),
            (Method::GET, "/conversations/conv_1/items/msg_1", Some(false)),
            (Method::DELETE, "/conversations/conv_1/items/msg_1", Some(true)),
        ] {
            let path = format!("{prefix}{path}");
            let (route, model) = find(&method, &path, false).unwrap();
            assert_eq!((route.billing, model), (Billing::Free, None), "{method} {path}");
            let id = changes.map_or("", |_| "conv_1");
            assert_eq!(route.parameter(&path), Some(id), "{method} {path}");
            assert_eq!(Some(route.changes_conversation()), changes.or(Some(false)), "{path}");
        }
    }
    for path in [
        "/v1/conversations/",
        "/v1/conversations/c/items/",
        "/v1/conversations/c/items/m/n",
        "/v1/conversations/c/things/m",
        "/v1/conversations//items/m",
    ] {
        let found = find(&Method::GET, path, false).map(|(route, _)| route.template);
        let is_item = found.is_ok_and(|template| template.ends_with("{item}"));
        assert!(!is_item, "{path}");
    }
}

#[test]
fn every_way_to_count_tokens_is_recorded_and_free() {
    for path in [
        "/v1/messages/count_tokens",
        "/v1/responses/input_tokens",
        "/v1/chat/completions/input_tokens",
        "/v1/chat/completions/render",
        "/v1/completions/render",
        "/v1/tokenize",
        "/v1/detokenize",
        "/v1/tokenize-text",
        "/v1/tokenizers/estimate-token-count",
        "/tokenize",
        "/chat_tokenize",
        "/apply-template",
        "/openai/responses/input_tokens",
        "/v1beta/models/gemini-2.5-flash:countTokens",
        "/model/anthropic.claude-haiku-4-5/count-tokens",
    ] {
        let (route, _) = find(&Method::POST, path, false).unwrap();
        assert_eq!(
            (route.operation, route.billing, route.uses_nothing()),
            (Operation::CountTokens, Billing::Ledger, true),
            "{path}"
        );
    }
}

#[test]
fn what_a_client_asks_at_its_start_is_a_probe_or_a_list() {
    for passthrough in [false, true] {
        for (method, path, billing) in [
            (Method::HEAD, "/", Billing::Probe),
            (Method::HEAD, "/api/hello", Billing::Probe),
            (Method::GET, "/api/hello", Billing::Probe),
            (Method::POST, "/", Billing::Ledger),
            (Method::GET, "/v1/models", Billing::Free),
            (Method::GET, "/inference-profiles", Billing::Free),
        ] {
            let (route, _) = find(&method, path, passthrough).unwrap();
            assert_eq!(route.billing, billing, "{method} {path}");
        }
    }
    let refusal = find(&Method::GET, "/", false).unwrap_err();
    assert!(matches!(refusal, Refusal::MethodNotAllowed { allow: "HEAD, POST, OPTIONS" }));
}

#[test]
fn what_counts_or_compacts_beside_responses_is_no_id_of_one() {
    for prefix in ["", "/v1", "/openai", "/openai/v1"] {
        let find = |method, name| {
            let path = format!("{prefix}/responses/{name}");
            find(&method, &path, false).unwrap().0
        };
        let counts = find(Method::POST, "input_tokens");
        assert_eq!((counts.operation, counts.billing), (Operation::CountTokens, Billing::Ledger));
        let compacts = find(Method::POST, "compact");
        assert_eq!((compacts.wire, compacts.billing), (Wire::Responses, Billing::Ledger));
        assert_eq!(find(Method::GET, "resp_1").operation, Operation::FetchResponse);
    }
}

#[test]
fn probes_are_read_and_asked_of_nobody() {
    for path in ["/health", "/ping", "/version", "/v1/health", "/v2/health/ready", "//health/"] {
        for method in [Method::GET, Method::HEAD] {
            let (route, _) = find(&method, path, false).unwrap();
            assert_eq!(route.billing, Billing::Probe, "{path}");
        }
        let refusal = find(&Method::POST, path, false).unwrap_err();
        assert!(matches!(refusal, Refusal::MethodNotAllowed { allow: "GET, HEAD, OPTIONS" }));
    }
    assert_eq!(find(&Method::GET, "/healthz", false).unwrap_err().code(), "unknown_route");
}

#[test]
fn the_wrong_method_is_told_the_right_one() {
    let refusal = find(&Method::GET, "/v1/chat/completions", false).unwrap_err();
    assert!(matches!(refusal, Refusal::MethodNotAllowed { allow: "POST, OPTIONS" }));
    assert_eq!(allowed("/v1/chat/completions", false), Some("POST, OPTIONS"));
    assert_eq!(allowed("/v1/chat", false), None);
    assert_eq!(allowed("/v1/responses/resp_1", false), Some("GET, HEAD, DELETE, OPTIONS"));
    assert_eq!(allowed("/v1/batches", false), Some("GET, HEAD, POST, OPTIONS"));
    assert_eq!(allowed("/v1//models/", false), Some("GET, HEAD, OPTIONS"));
    assert_eq!(allowed("*", false), Some("GET, HEAD, POST, DELETE, OPTIONS"));
    assert_eq!(allowed("/v1/models", true), Some(ANY_METHODS));
}

#[test]
fn azure_names_the_model_in_the_path() {
    let template = "/openai/deployments/{model}/chat/completions";
    for path in [
        "/openai/deployments/my-gpt/chat/completions",
        "//openai/deployments/my%2Dgpt/chat%2fcompletions/",
    ] {
        let (route, model) = find(&Method::POST, path, false).unwrap();
        assert_eq!((route.template, model.as_deref()), (template, Some("my-gpt")), "{path}");
    }
}

#[test]
fn providers_that_name_the_model_in_the_path_say_with_the_path_whether_it_streams() {
    for (path, operation, wire, model, streams) in [
        (
            "/v1beta/models/gemini-2.5-flash:generateContent",
            Operation::GenerateContent,
            Wire::GenerateContent,
            "gemini-2.5-flash",
            false,
        ),
        (
            "/v1/models/gemini-2.5-flash:streamGenerateContent",
            Operation::GenerateContent,
            Wire::GenerateContent,
            "gemini-2.5-flash",
            true,
        ),
        (
            "/v1beta/models/gemini-embedding-001:embedContent",
            Operation::Embeddings,
            Wire::Embeddings,
            "gemini-embedding-001",
            false,
        ),
        (
            "/model/anthropic.claude-haiku-4-5-20251001-v1%3A0/converse-stream",
            Operation::Chat,
            Wire::Converse,
            "anthropic.claude-haiku-4-5-20251001-v1:0",
            true,
        ),
        ("/model/a%2Fb%c3%A9%/converse", Operation::Chat, Wire::Converse, "a/bé%", false),
        ("/model/a%2541%2Fb/converse/", Operation::Chat, Wire::Converse, "a%41/b", false),
        (
            "/v1beta/models/gemini-2.5-flash%3AgenerateContent",
            Operation::GenerateContent,
            Wire::GenerateContent,
            "gemini-2.5-flash",
            false,
        ),
    ] {
        let (route, named) = find(&Method::POST, path, false).unwrap();
        assert_eq!((route.operation, route.wire), (operation, wire), "{path}");
        assert_eq!((named.as_deref(), route.streams()), (Some(model), streams), "{path}");
        assert_eq!(route.billing, Billing::Ledger, "{path}");
    }
    let counts = "/v1beta/models/gemini-2.5-flash:countTokens";
    let (route, model) = find(&Method::POST, counts, false).unwrap();
    assert_eq!((route.billing, model.as_deref()), (Billing::Ledger, Some("gemini-2.5-flash")));
    let (route, model) = find(&Method::GET, "/v1beta/models/gemini-2.5-flash", false).unwrap();
    assert_eq!((route.billing, model), (Billing::Free, None));
}

#[test]
fn a_model_in_a_path_is_a_name_as_one_in_a_body_is() {
    let long = "m".repeat(257);
    for name in ["%0a", "%ff", "a%00b", &long] {
        let refusal = find(&Method::POST, &format!("/model/{name}/converse"), false);
        assert_eq!(refusal.unwrap_err().code(), "invalid_value", "{name}");
    }
}

#[test]
fn a_batch_is_billed_once_and_asking_for_it_costs_nothing() {
    let (made, free) = ((Wire::Batches, Billing::Ledger), (Wire::Opaque, Billing::Free));
    for (method, path, is, shows) in [
        (Method::POST, "/v1/batches", made, None),
        (Method::GET, "/v1/batches", free, None),
        (Method::GET, "/v1/batches/b", free, Some(Shows::Batch)),
        (Method::GET, "/v1/batches/b/results", free, Some(Shows::Results)),
        (Method::POST, "/openai/v1/batches/b/cancel", free, Some(Shows::Batch)),
        (Method::POST, "/openai/batches", made, None),
        (Method::GET, "/openai/batches/b", free, Some(Shows::Batch)),
        (Method::POST, "/v1/files", free, None),
        (Method::GET, "/v1/files/f", free, None),
        (Method::GET, "/openai/v1/files/f/content", free, Some(Shows::File)),
        (Method::GET, "/openai/files/f/content", free, Some(Shows::File)),
        (Method::POST, "/v1/messages/batches", made, None),
        (Method::GET, "/v1/messages/batches/b", free, Some(Shows::Batch)),
        (Method::DELETE, "/v1/messages/batches/b", free, None),
        (Method::GET, "/v1/messages/batches/b/results", free, Some(Shows::Results)),
        (Method::POST, "/v1/batch/jobs", made, None),
        (Method::GET, "/v1/batch/jobs/b", free, Some(Shows::Batch)),
        (Method::POST, "/v1/batch/jobs/b/cancel", free, Some(Shows::Batch)),
        (Method::POST, "/v1beta/models/m:batchGenerateContent", made, None),
        (Method::GET, "/v1beta/batches/b", free, Some(Shows::Batch)),
        (Method::POST, "/v1beta/batches/b:cancel", free, Some(Shows::Batch)),
        (Method::GET, "/download/v1beta/files/f:download", free, Some(Shows::File)),
        (Method::GET, "/v1/chat/deferred-completion/c", free, Some(Shows::Deferred)),
    ] {
        let (route, _) = find(&method, path, false).unwrap();
        assert_eq!(((route.wire, route.billing), route.shows()), (is, shows), "{path}");
    }
    let (route, _) = find(&Method::GET, "/v1/messages/batches/b%20/results", false).unwrap();
    assert_eq!(route.parameter("/v1/messages/batches/b%20/results"), Some("b%20"));
}

#[test]
fn a_path_has_one_row_for_each_method() {
    let rows: Vec<_> = table::all().collect();
    for row in &rows {
        let same = |other: &&&Route| other.template == row.template && other.method == row.method;
        assert_eq!(rows.iter().filter(same).count(), 1, "{}", row.template);
        let path = row.template.replace("{id}", "x").replace("{model}", "x");
        let path = path.replace("{item}", "x");
        let found = table::rows(&path).find(|other| other == row);
        assert!(found.is_some(), "{path} is not looked for there");
    }
}

#[test]
fn a_response_is_fetched_by_id_and_never_billed() {
    let (route, _) = find(&Method::GET, "/v1/responses/resp_1", false).unwrap();
    assert_eq!((route.operation, route.billing), (Operation::FetchResponse, Billing::Free));
    assert!(find(&Method::GET, "/v1/responses/a/b", false).is_err());
    assert!(find(&Method::GET, "/v1/models/org/model", false).is_ok());
    assert!(find(&Method::GET, "/openai/v1/models/org/model", false).is_ok());
    let cancel = find(&Method::POST, "/openai/v1/responses/resp_1/cancel", false).unwrap().0;
    assert_eq!((cancel.operation, cancel.billing), (Operation::FetchResponse, Billing::Free));
}

#[test]
fn unknown_paths_and_other_methods_pass_only_when_configured() {
    for (method, path) in [
        (Method::PUT, "/v1/anything"),
        (Method::DELETE, "/v1/models/m"),
        (Method::GET, "/"),
        (Method::GET, "/v1/chat/completions"),
        (Method::PATCH, "/v1/batches"),
        (Method::POST, "/ping"),
        (Method::POST, "/V1/chat/completions"),
    ] {
        let (route, _) = find(&method, path, true).unwrap();
        assert_eq!((route.template, route.billing), ("other", Billing::Ledger), "{path}");
        assert!(find(&method, path, false).is_err(), "{path}");
    }
    for path in ["/v1/anything", "/v1/models"] {
        let refusal = find(&Method::TRACE, path, true).unwrap_err();
        assert!(matches!(refusal, Refusal::MethodNotAllowed { allow: ANY_METHODS }), "{path}");
    }
    assert!(find(&Method::GET, "*", true).is_err(), "all routes are none");
}
