//! Tests that every failure does what its setting says, and that the engine notices every client
//! that leaves.

use tokio::io::AsyncReadExt;

use super::{CHAT, CHAT_BODY, CHAT_STREAM, ask, engine, read, send, served, write};
use crate::End;

#[tokio::test]
async fn a_client_that_leaves_mid_stream_is_noticed_with_what_it_was_sent() {
    let engine = engine().await;
    let mut stream = send(engine.addr(), CHAT, "gap_ms=1,output_tokens=1000000", CHAT_STREAM).await;
    stream.read_exact(&mut [0; 2048]).await.unwrap();
    drop(stream);
    let served = served(&engine, 1).await;
    assert_eq!(served[0].end, End::Cancelled);
    assert_eq!(served[0].status, Some(200));
    assert!((1..1_000_000).contains(&served[0].output_tokens), "{served:?}");
    assert!(served[0].ended_at > served[0].started_at);
}

#[tokio::test]
async fn a_client_that_leaves_before_the_head_is_noticed() {
    let engine = engine().await;
    let stream = send(engine.addr(), CHAT, "stall_after=0", CHAT_BODY).await;
    while !engine.metrics().contains(r#"num_requests_running{engine="0",model_name="m"} 1"#) {
        tokio::task::yield_now().await;
    }
    drop(stream);
    let served = served(&engine, 1).await;
    assert_eq!((served[0].end, served[0].status), (End::Cancelled, None));
}

#[tokio::test]
async fn a_status_comes_with_an_error_in_the_apis_own_shape() {
    let engine = engine().await;
    let chat = ask(&engine, CHAT, "status=429", CHAT_BODY).await;
    assert!(chat.head.starts_with("http/1.1 429"));
    assert!(chat.head.contains("retry-after: 1"));
    assert_eq!(chat.json()["error"]["code"], 429);
    let message = ask(&engine, "/v1/messages", "status=529", CHAT_BODY).await.json();
    assert_eq!(message["error"]["type"], "overloaded_error");
    assert!(engine.journal().iter().all(|served| served.end == End::Failed));
}

#[tokio::test]
async fn a_stream_that_dies_sends_its_chunks_and_no_end() {
    let engine = engine().await;
    for (path, content) in [(CHAT, r#"{"content":""#), ("/v1/messages", r#""text_delta""#)] {
        let answer = ask(&engine, path, "die_after=2", CHAT_STREAM).await;
        assert!(!answer.whole);
        assert_eq!(answer.body.matches(content).count(), 2, "{}", answer.body);
    }
    assert!(
        engine
            .journal()
            .iter()
            .all(|served| (served.end, served.output_tokens) == (End::Failed, 2))
    );
}

#[tokio::test]
async fn a_plain_answer_that_dies_breaks_in_its_middle() {
    let engine = engine().await;
    for settings in ["die_after=0", "wrong_length=7"] {
        let answer = ask(&engine, CHAT, settings, CHAT_BODY).await;
        assert!(answer.head.contains("content-length"), "{settings}");
        assert!(!answer.whole, "{settings}");
        assert!(!answer.body.is_empty(), "{settings}");
    }
}

#[tokio::test]
async fn a_connection_can_die_before_the_head() {
    let engine = engine().await;
    assert_eq!(ask(&engine, CHAT, "die_before_head", CHAT_BODY).await.head, "");
}

#[tokio::test]
async fn a_connection_can_die_only_when_it_is_used_again() {
    let engine = engine().await;
    let mut stream = send(engine.addr(), CHAT, "die_if_reused", CHAT_BODY).await;
    assert!(read(&mut stream).await.whole);
    write(&mut stream, CHAT, "die_if_reused", CHAT_BODY).await;
    assert_eq!(read(&mut stream).await.head, "");
}

#[tokio::test]
async fn a_connection_can_close_after_an_answer_that_did_not_say_so() {
    let engine = engine().await;
    for body in [CHAT_BODY, CHAT_STREAM] {
        let mut stream = send(engine.addr(), CHAT, "close_after_response", body).await;
        let answer = read(&mut stream).await;
        assert!(answer.whole);
        assert!(!answer.head.contains("connection: close"), "{}", answer.head);
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn an_error_event_comes_under_200_and_ends_the_stream() {
    let engine = engine().await;
    let chat = ask(&engine, CHAT, "error_event_after=2", CHAT_STREAM).await;
    let events = chat.events();
    assert!(events[events.len() - 2]["error"]["message"].is_string());
    let message = ask(&engine, "/v1/messages", "error_event_after=0", CHAT_STREAM).await;
    assert_eq!(message.event_names().last(), Some(&"error"));
    let response = ask(&engine, "/v1/responses", "error_event_after=1", CHAT_STREAM).await;
    assert_eq!(response.event_names().last(), Some(&"error"));
    assert!(chat.whole && message.whole && response.whole);
}

#[tokio::test]
async fn a_stream_can_end_cleanly_without_what_should_end_it() {
    let engine = engine().await;
    let cut = ask(&engine, CHAT, "end_after=2", CHAT_STREAM).await;
    assert!(cut.whole);
    assert!(cut.events().iter().all(|event| event["choices"][0]["finish_reason"].is_null()));
    for (path, mark) in [
        (CHAT, "[DONE]"),
        ("/v1/messages", "message_stop"),
        ("/v1/responses", "response.completed"),
    ] {
        let with = ask(&engine, path, "", CHAT_STREAM).await;
        assert!(with.whole && with.body.contains(mark), "{path}");
        let without = ask(&engine, path, "no_done", CHAT_STREAM).await;
        assert!(without.whole && !without.body.contains(mark), "{path}");
    }
}

#[tokio::test]
async fn usage_can_be_left_out_everywhere() {
    let engine = engine().await;
    for path in [CHAT, "/v1/completions", "/v1/messages", "/v1/embeddings"] {
        for body in [CHAT_BODY, CHAT_STREAM] {
            let answer = ask(&engine, path, "no_usage", body).await;
            assert!(!answer.body.contains("\"usage\""), "{path}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_setting_that_does_not_exist_is_refused() {
    let engine = engine().await;
    let answer = ask(&engine, CHAT, "speed=9", CHAT_BODY).await;
    assert!(answer.head.starts_with("http/1.1 400"));
    assert!(answer.body.contains("speed"), "{}", answer.body);
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused_in_the_apis_own_shape() {
    let engine = engine().await;
    let answer = ask(&engine, "/v1/messages", "", "{").await;
    assert!(answer.head.starts_with("http/1.1 400"));
    assert_eq!(answer.json()["error"]["type"], "invalid_request_error");
}

#[tokio::test(start_paused = true)]
async fn times_are_those_that_were_set() {
    let engine = engine().await;
    let settings = "prefill_ms=100,gap_ms=20,output_tokens=6";
    for body in [CHAT_BODY, CHAT_STREAM] {
        assert!(ask(&engine, CHAT, settings, body).await.whole);
    }
    for served in engine.journal() {
        let first = served.time_to_first_token.unwrap();
        assert!((first - 0.1).abs() < 0.005, "{served:?}");
        let took = served.ended_at - served.started_at;
        assert!((took - 0.2).abs() < 0.005, "{served:?}");
    }
}

#[tokio::test]
async fn dropping_the_simulator_ends_its_connections() {
    let engine = engine().await;
    let mut stream = send(engine.addr(), CHAT, "stall_after=1", CHAT_STREAM).await;
    stream.read_exact(&mut [0; 64]).await.unwrap();
    drop(engine);
    assert!(!read(&mut stream).await.whole);
}
