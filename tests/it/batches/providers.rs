//! Batches and deferred answers in the words of each provider.

use super::*;

#[test]
fn batches_of_anthropics_are_completed_by_their_results() {
    let engine = Engine::start();
    let gateway = setup(&engine, "anthropic").start();
    let object = |state: &str| {
        format!(
            r#"{{"id":"msgbatch_1","type":"message_batch","processing_status":"{state}","request_counts":{{"processing":0,"succeeded":1,"errored":1,"canceled":0,"expired":0}},"ended_at":null,"results_url":null}}"#
        )
    };
    let ask = r#"{"requests":[{"custom_id":"a","params":{"model":"claude-haiku-4-5","max_tokens":9,"messages":[]}}]}"#;
    let base = "/v1/messages/batches";
    exchange(&gateway, &engine, &post(base, "", ask), &json_answer(object("in_progress")));
    assert_eq!(gateway.record()["route"], base);
    let one = format!("{base}/msgbatch_1");
    exchange(&gateway, &engine, &bare("GET", &one, ""), &json_answer(object("ended")));
    exchange(&gateway, &engine, &bare("DELETE", &one, ""), &json_answer(object("ended")));
    assert_eq!(billed(&gateway), unknown());
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant",
        "model": "claude-haiku-4-5-20251001", "content": [{"type": "text", "text": "Left"}],
        "stop_reason": "end_turn", "usage": {"input_tokens": 1000, "output_tokens": 100,
        "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "service_tier": "batch"}});
    let lines = [
        json!({"custom_id": "a", "result": {"type": "succeeded", "message": message}}),
        json!({"custom_id": "b", "result": {"type": "errored", "error": {"type": "error"}}}),
    ];
    let lines = lines.map(|line| format!("{line}\n")).concat();
    for _ in 0..2 {
        super::results(&gateway, &engine, &format!("{one}/results"), &lines);
        // 1,000 × 0.50 + 100 × 2.50 USD a million.
        assert_eq!(billed(&gateway), costs("0.00075", 1000, 100));
    }
}

#[test]
fn a_deferred_chat_completion_is_billed_when_it_is_fetched() {
    let engine = Engine::start();
    let gateway = setup(&engine, "xai").start();
    let ask = r#"{"model":"grok-4.5","messages":[{"role":"user","content":"Where to?"}],"deferred":true}"#;
    let ticket = r#"{"request_id":"f15c114e"}"#;
    exchange(&gateway, &engine, &post("/v1/chat/completions", "", ask), &json_answer(ticket));
    assert_eq!(billed(&gateway), unknown());
    let look = |headers: &str| bare("GET", "/v1/chat/deferred-completion/f15c114e", headers);
    let not_yet = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
    exchange(&gateway, &engine, &look(""), not_yet);
    let done = r#"{"id":"335b92e4","object":"chat.completion","model":"grok-4.5","choices":[{"index":0,"message":{"role":"assistant","content":"Left"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}}"#;
    exchange(&gateway, &engine, &look(BETA), &json_answer(done));
    assert_eq!(billed(&gateway), unknown());
    for _ in 0..2 {
        exchange(&gateway, &engine, &look(""), &json_answer(done));
        // 1,000 × 2 + 100 × 6 USD a million.
        assert_eq!(billed(&gateway), costs("0.0026", 1000, 100));
    }
}

/// A chat completion, as batches of others than OpenAI have it in their results too.
fn completion(model: &str) -> Value {
    let line: Value = serde_json::from_str(&chat(model, 1000, 100)).expect("JSON");
    line["response"]["body"].clone()
}

#[test]
fn azures_paths_are_the_same() {
    for (base, query) in [("/openai/v1", ""), ("/openai", "?api-version=2025-04-01-preview")] {
        let engine = Engine::start();
        let gateway = setup(&engine, "openai").start();
        let make = post(&format!("{base}/batches{query}"), "", ASK);
        exchange(&gateway, &engine, &make, &json_answer(batch("validating", "null")));
        let ask = bare("GET", &format!("{base}/batches/batch_1{query}"), "");
        exchange(&gateway, &engine, &ask, &json_answer(batch("completed", "null")));
        assert_eq!(billed(&gateway), unknown(), "{base}");
        let lines = [chat("gpt-4o-mini", 600, 60), chat("gpt-4o-mini", 400, 40)].concat();
        super::results(&gateway, &engine, &format!("{base}/files/file-2/content{query}"), &lines);
        assert_eq!(billed(&gateway), costs(COST, 1000, 100), "{base}");
    }
}

#[test]
fn togethers_batch_is_made_in_a_wrapper_and_speaks_in_capitals() {
    let engine = Engine::start();
    let gateway = setup(&engine, "openai").start();
    let job = |status: &str| {
        json!({"id": "batch-1", "status": status, "output_file_id": "file-2", "progress": 100,
               "model_id": "gpt-4o-mini"})
    };
    let made = json!({"job": job("VALIDATING"), "warning": ""}).to_string();
    exchange(&gateway, &engine, &post("/v1/batches", "", ASK), &json_answer(made));
    let ask = bare("GET", "/v1/batches/batch-1", "");
    for (status, expected) in [("IN_PROGRESS", unknown()), ("COMPLETED", costs(COST, 1000, 100))] {
        exchange(&gateway, &engine, &ask, &json_answer(job(status).to_string()));
        super::results(
            &gateway,
            &engine,
            "/v1/files/file-2/content",
            &chat("gpt-4o-mini", 1000, 100),
        );
        assert_eq!(billed(&gateway), expected, "{status}");
    }
}

#[test]
fn batches_of_mistrals_have_their_results_in_a_file_or_in_their_object() {
    let line = |input: u64| chat("mistral-small-latest", input, 50);
    let job = |status: &str, more: Value| {
        let mut job = json!({"id": "7c9e", "object": "batch", "input_files": ["f1"], "errors": [],
            "endpoint": "/v1/chat/completions", "model": "mistral-small-latest", "status": status,
            "total_requests": 2, "completed_requests": 2, "succeeded_requests": 2,
            "failed_requests": 0, "created_at": 1});
        let (Value::Object(members), Value::Object(more)) = (&mut job, more) else { panic!() };
        members.extend(more);
        json_answer(job.to_string())
    };
    let outputs = [line(400), line(600)].map(|line| -> Value { line.parse().expect("JSON") });
    let ask = r#"{"input_files":["f1"],"endpoint":"/v1/chat/completions","model":"mistral-small-latest"}"#;
    let (base, one) = ("/v1/batch/jobs", bare("GET", "/v1/batch/jobs/7c9e?inline=true", ""));
    for inline in [false, true] {
        let engine = Engine::start();
        let gateway = setup(&engine, "mistral").start();
        exchange(&gateway, &engine, &post(base, "", ask), &job("QUEUED", json!({})));
        assert_eq!(gateway.record()["request_model"], "mistral-small-latest");
        exchange(&gateway, &engine, &one, &job("RUNNING", json!({"outputs": outputs})));
        assert_eq!(billed(&gateway), unknown());
        if inline {
            // The page has one of two.
            let part = json!({"outputs": [outputs[0]]});
            exchange(&gateway, &engine, &one, &job("SUCCESS", part));
            assert_eq!(billed(&gateway), unknown());
            exchange(&gateway, &engine, &one, &job("SUCCESS", json!({"outputs": outputs})));
        } else {
            exchange(&gateway, &engine, &one, &job("SUCCESS", json!({"output_file": "f2"})));
            let lines = [line(400), line(600)].concat();
            super::results(&gateway, &engine, "/v1/files/f2/content", &lines);
        }
        // 1,000 × 0.075 + 100 × 0.30 USD a million.
        assert_eq!(billed(&gateway), costs("0.000105", 1000, 100), "{inline}");
    }
}

#[test]
fn batches_of_geminis_have_their_results_in_a_file_or_in_their_object() {
    let answer = json!({"candidates": [{"content": {"parts": [{"text": "Left"}]},
        "finishReason": "STOP"}], "modelVersion": "gemini-2.5-flash",
        "usageMetadata": {"promptTokenCount": 500, "candidatesTokenCount": 50,
                          "totalTokenCount": 550}});
    let operation = |state: &str, response: Value| {
        json_answer(
            json!({"name": "batches/x1", "done": !response.is_null(),
            "metadata": {"@type": "type.googleapis.com/…GenerateContentBatch",
                "model": "models/gemini-2.5-flash", "name": "batches/x1", "state": state,
                "batchStats": {"requestCount": "3", "successfulRequestCount": "2",
                               "failedRequestCount": "1"}},
            "response": response})
            .to_string(),
        )
    };
    let make = post(
        "/v1beta/models/gemini-2.5-flash:batchGenerateContent",
        "",
        r#"{"batch":{"displayName":"mine","inputConfig":{"requests":{"requests":[]}}}}"#,
    );
    let ask = bare("GET", "/v1beta/batches/x1", "");
    let refused = json!({"error": {"code": 3, "message": "no"}});
    for inline in [false, true] {
        let engine = Engine::start();
        let gateway = setup(&engine, "gemini").start();
        exchange(&gateway, &engine, &make, &operation("BATCH_STATE_PENDING", Value::Null));
        assert_eq!(gateway.record()["request_model"], "gemini-2.5-flash");
        exchange(&gateway, &engine, &ask, &operation("BATCH_STATE_RUNNING", Value::Null));
        assert_eq!(billed(&gateway), unknown());
        if inline {
            let one = json!({"response": answer, "metadata": {"key": "a"}});
            let all = json!({"inlinedResponses": {"inlinedResponses": [one, one, refused]}});
            exchange(&gateway, &engine, &ask, &operation("BATCH_STATE_SUCCEEDED", all));
        } else {
            let file = json!({"responsesFile": "files/batch-x1"});
            exchange(&gateway, &engine, &ask, &operation("BATCH_STATE_SUCCEEDED", file));
            assert_eq!(billed(&gateway), unknown());
            let one = json!({"key": "a", "response": answer}).to_string();
            let lines = [one.clone(), one, refused.to_string()].join("\n");
            let target = "/download/v1beta/files/batch-x1:download?alt=media";
            super::results(&gateway, &engine, target, &lines);
        }
        // 1,000 × 0.15 + 100 × 1.25 USD a million.
        assert_eq!(billed(&gateway), costs("0.000275", 1000, 100), "{inline}");
    }
}

#[test]
fn openrouters_object_has_the_results_and_their_usage() {
    let engine = Engine::start();
    let gateway = setup(&engine, "openrouter").start();
    let object = |status: &str, results: Value| {
        json_answer(
            json!({"id": "batch_1", "object": "batch", "status": status, "error": null,
            "endpoint": "/v1/chat/completions", "model": "openai/gpt-4o-mini",
            "request_counts": {"total": 2, "completed": 1, "failed": 1},
            "results": results, "usage": null})
            .to_string(),
        )
    };
    let ask = r#"{"model":"openai/gpt-4o-mini","endpoint":"/v1/chat/completions","requests":[]}"#;
    let made = object("validating", json!([]));
    exchange(&gateway, &engine, &post("/v1/batches", "", ask), &made);
    let mut answer = completion("openai/gpt-4o-mini");
    answer["usage"]["cost"] = json!(0.0001);
    let failed = json!({"custom_id": "b", "response": null, "error": {"message": "no"}});
    let one = json!({"custom_id": "a", "response": {"status_code": 200, "body": answer}});
    let results = json!([one, failed]);
    exchange(
        &gateway,
        &engine,
        &bare("GET", "/v1/batches/batch_1", ""),
        &object("completed", results),
    );
    let (_, input, output, _) = billed(&gateway);
    assert_eq!((input, output), (Some(1000), Some(100)));
    let id = gateway.record()["id"].as_str().expect("an id").to_owned();
    let found = gateway.admin(&format!("/api/v1/records/{id}")).json();
    let completion = &found["corrections"][0]["completion"];
    assert_eq!(
        (&completion["reported_cost"], &completion["requests"]),
        (&"0.0001".into(), &2.into())
    );
}

#[test]
fn a_batch_of_anthropics_whose_requests_all_failed_costs_nothing() {
    let object = |state: &str, succeeded: u8| {
        json_answer(
            json!({"id": "msgbatch_1", "type": "message_batch", "processing_status": state,
            "request_counts": {"processing": 0, "succeeded": succeeded, "errored": 2,
                               "canceled": 0, "expired": 0}})
            .to_string(),
        )
    };
    let failed = json!({"custom_id": "b", "result": {"type": "errored", "error": {}}});
    for by_results in [false, true] {
        let engine = Engine::start();
        let gateway = setup(&engine, "anthropic").start();
        let (base, one) = ("/v1/messages/batches", "/v1/messages/batches/msgbatch_1");
        let ask = r#"{"requests":[]}"#;
        exchange(&gateway, &engine, &post(base, "", ask), &object("in_progress", 0));
        exchange(&gateway, &engine, &bare("GET", one, ""), &object("in_progress", 0));
        assert_eq!(billed(&gateway), unknown());
        if by_results {
            super::results(&gateway, &engine, &format!("{one}/results"), &format!("{failed}\n"));
        } else {
            exchange(&gateway, &engine, &bare("GET", one, ""), &object("ended", 0));
        }
        let (cost, _, _, unknown) = billed(&gateway);
        assert_eq!((cost, unknown), (Some(Decimal::ZERO), 0.into()), "{by_results}");
    }
}
