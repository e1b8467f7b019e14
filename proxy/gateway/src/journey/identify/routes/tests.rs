use super::*;

#[test]
fn a_path_matches_byte_for_byte_or_not_at_all() {
    let (route, _) = find(&Method::POST, "/v1/chat/completions", false).unwrap();
    assert_eq!((route.operation, route.wire), (Operation::Chat, Wire::ChatCompletions));
    for path in [
        "/v1/chat/completions/",
        "/V1/chat/completions",
        "//v1/chat/completions",
        "/v1/chat%2fcompletions",
        "/v1/./chat/completions",
        "",
    ] {
        let refusal = find(&Method::POST, path, false).unwrap_err();
        assert_eq!(refusal.code(), "unknown_route", "{path}");
    }
}

#[test]
fn the_wrong_method_is_told_the_right_one() {
    let refusal = find(&Method::GET, "/v1/chat/completions", false).unwrap_err();
    assert!(matches!(refusal, Refusal::MethodNotAllowed { allow: "POST, OPTIONS" }));
    assert_eq!(allowed("/v1/chat/completions"), Some("POST, OPTIONS"));
    assert_eq!(allowed("/v1/chat"), None);
    assert_eq!(allowed("/v1/responses/resp_1"), Some("GET, HEAD, DELETE, OPTIONS"));
    assert_eq!(allowed("/v1/batches"), Some("GET, HEAD, POST, OPTIONS"));
    assert_eq!(allowed("/v1/models"), Some("GET, HEAD, OPTIONS"));
    assert_eq!(find(&Method::PUT, "/v1/batches", true).unwrap_err().code(), "method_not_allowed");
}

#[test]
fn azure_names_the_model_in_the_path() {
    let path = "/openai/deployments/my-gpt/chat/completions";
    let (route, model) = find(&Method::POST, path, false).unwrap();
    assert_eq!((route.template, model.as_deref()), (AZURE_CHAT, Some("my-gpt")));
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
    ] {
        let (route, named) = find(&Method::POST, path, false).unwrap();
        assert_eq!((route.operation, route.wire), (operation, wire), "{path}");
        assert_eq!((named.as_deref(), route.streams()), (Some(model), streams), "{path}");
        assert_eq!(route.billing, Billing::Ledger, "{path}");
    }
    let counts = "/v1beta/models/gemini-2.5-flash:countTokens";
    let (route, model) = find(&Method::POST, counts, false).unwrap();
    assert_eq!((route.billing, model.as_deref()), (Billing::Free, Some("gemini-2.5-flash")));
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
    for (at, row) in ROUTES.iter().enumerate() {
        let same = |other: &&Route| other.template == row.template && other.method == row.method;
        assert_eq!(ROUTES.iter().filter(same).count(), 1, "{}", row.template);
        assert_eq!(ROUTES.iter().position(|other| other == row), Some(at));
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
fn unknown_paths_pass_only_when_configured() {
    let (route, _) = find(&Method::PUT, "/v1/anything", true).unwrap();
    assert_eq!((route.template, route.billing), ("other", Billing::Ledger));
    assert!(find(&Method::TRACE, "/v1/anything", true).is_err());
    assert!(find(&Method::GET, "*", true).is_err(), "all routes are none");
}
