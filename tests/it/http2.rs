//! Clients that speak HTTP/2 without TLS (h2c, prior knowledge).

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, ROLE, STOP, STREAM_CHAT, USAGE};
use crate::gateway::{Gateway, Setup};
use crate::http::{LAST_CHUNK, STREAM_HEAD, chunk, chunks, json_answer};
use crate::patience::PATIENCE;

pub(crate) type Sender = SendRequest<Full<Bytes>>;

/// A runtime, so that the engine's side can go on in plain sequence on this thread.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().expect("a runtime")
}

pub(crate) async fn connect(gateway: std::net::SocketAddr) -> Sender {
    let stream = tokio::net::TcpStream::connect(gateway).await.expect("connect");
    let (sender, connection) =
        handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("an HTTP/2 handshake");
    tokio::spawn(connection);
    sender
}

pub(crate) fn request(body: &'static str) -> hyper::Request<Full<Bytes>> {
    hyper::Request::post("http://localhost/v1/chat/completions")
        .header("content-type", "application/json")
        .header("x-custom", "kept")
        .body(Full::from(body))
        .expect("a request")
}

#[test]
fn an_http2_client_is_served_by_an_http1_engine() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let runtime = runtime();
    let mut sender = runtime.block_on(connect(gateway.address()));
    let answer = runtime.spawn(async move {
        let answer = sender.send_request(request(CHAT)).await.expect("an answer");
        let head = answer.headers().clone();
        (answer.status(), head, answer.into_body().collect().await.expect("a body").to_bytes())
    });
    let got = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(got.text(), CHAT);
    assert_eq!(got.header("x-custom"), Some("kept"));
    let answer = runtime.block_on(async { tokio::time::timeout(PATIENCE, answer).await });
    let (status, head, body) = answer.expect("in time").expect("the client");
    assert_eq!(status, 200);
    assert_eq!(body, CHAT_ANSWER.as_bytes());
    assert!(head.contains_key("x-taximeter-request-id"));
    for name in ["connection", "transfer-encoding", "keep-alive"] {
        assert!(!head.contains_key(name), "{head:?}");
    }
}

#[test]
fn an_http2_connection_is_asked_to_end_with_its_last_request() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {requests_per_connection_max: 2}")
        .start();
    let runtime = runtime();
    let (mut sender, connection) = runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(gateway.address()).await.expect("connect");
        handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("a handshake")
    });
    let connection = runtime.spawn(connection);
    for _ in 0..2 {
        assert!(!connection.is_finished(), "it has a request left");
        let answer = runtime.spawn(sender.send_request(request(CHAT)));
        engine.answer_once(&json_answer(CHAT_ANSWER));
        let answer = runtime.block_on(answer).expect("the client").expect("an answer");
        let body = runtime.block_on(answer.into_body().collect()).expect("a body").to_bytes();
        assert_eq!(body, CHAT_ANSWER.as_bytes());
    }
    // GOAWAY without an error: hyper's client ends as if of its own accord.
    let end = runtime.block_on(async { tokio::time::timeout(PATIENCE, connection).await });
    assert!(matches!(end, Ok(Ok(Ok(())))), "{end:?}");
    assert!(sender.is_closed());
}

#[test]
fn an_http2_head_has_no_more_fields_and_no_longer_path_than_it_may() {
    const PATH: &str = "/v1/chat/completions";
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {headers_max: 10, uri_bytes_max: 100}")
        .start();
    let runtime = runtime();
    let mut sender = runtime.block_on(connect(gateway.address()));
    let of = |fields: usize, path_bytes: usize| {
        let path = format!("{PATH}?{}", "x".repeat(path_bytes - PATH.len() - 1));
        let mut request = request(CHAT);
        *request.uri_mut() = format!("http://localhost{path}").parse().expect("a URI");
        // Its type and its length are two, of which the second is the client's own doing.
        let headers = request.headers_mut();
        headers.clear();
        headers.insert("content-type", "application/json".parse().expect("a type"));
        for nth in 2..fields {
            let name = hyper::header::HeaderName::try_from(format!("x-{nth}")).expect("a name");
            headers.insert(name, "1".parse().expect("a value"));
        }
        request
    };
    for (request, expected) in [
        (of(10, 100), (200, Value::Null)),
        (of(11, 100), (431, "headers_too_large".into())),
        (of(10, 101), (414, "uri_too_long".into())),
    ] {
        let answer = sender.send_request(request);
        let answer = runtime.spawn(async move {
            let answer = answer.await.expect("an answer");
            let status = answer.status().as_u16();
            (status, answer.into_body().collect().await.expect("a body").to_bytes())
        });
        if expected.0 == 200 {
            engine.answer_once(&json_answer(CHAT_ANSWER));
        }
        let answer = runtime.block_on(async { tokio::time::timeout(PATIENCE, answer).await });
        let (status, body) = answer.expect("in time").expect("the client");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!((status, body["error"]["code"].clone()), expected);
    }
    gateway.await_metric("taximeter_bad_framing_total{taximeter_cause=\"too_many_headers\"} 1");
    engine.assert_untouched();
    assert_eq!(gateway.records().len(), 1);
}

#[test]
fn an_interim_answer_does_not_disturb_an_http2_stream() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let runtime = runtime();
    let mut sender = runtime.block_on(connect(gateway.address()));
    let answer = runtime.spawn(async move {
        let answer = sender.send_request(request(CHAT)).await.expect("an answer");
        (answer.status(), answer.into_body().collect().await.expect("a body").to_bytes())
    });
    let hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".as_slice();
    engine.answer_once(&[hints, &json_answer(CHAT_ANSWER)].concat());
    let answer = runtime.block_on(async { tokio::time::timeout(PATIENCE, answer).await });
    let (status, body) = answer.expect("in time").expect("the client");
    assert_eq!((status.as_u16(), &body[..]), (200, CHAT_ANSWER.as_bytes()));
}

#[test]
fn streams_of_one_http2_connection_run_side_by_side() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let runtime = runtime();
    let sender = runtime.block_on(connect(gateway.address()));
    let clients: Vec<_> = (0..3)
        .map(|_| {
            let mut sender = sender.clone();
            runtime.spawn(async move {
                let answer = sender.send_request(request(STREAM_CHAT)).await.expect("an answer");
                answer.into_body().collect().await.expect("a body").to_bytes()
            })
        })
        .collect();
    let mut connections: Vec<_> = (0..3).map(|_| engine.request().0).collect();
    for connection in &mut connections {
        connection.send(STREAM_HEAD);
    }
    for event in [ROLE, HELLO, STOP, USAGE, DONE] {
        for connection in &mut connections {
            connection.send(&chunk(event));
        }
    }
    for connection in &mut connections {
        connection.send(LAST_CHUNK);
    }
    for client in clients {
        let body = runtime.block_on(async { tokio::time::timeout(PATIENCE, client).await });
        let body = body.expect("in time").expect("the client");
        assert_eq!(body, [ROLE, HELLO, STOP, DONE].concat().as_bytes());
    }
    assert_eq!(gateway.records().len(), 3);
}

#[test]
fn an_http2_client_that_resets_its_stream_cancels_the_engines_work() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let runtime = runtime();
    let mut sender = runtime.block_on(connect(gateway.address()));
    let mut other = sender.clone();
    let answer = runtime.spawn(async move { sender.send_request(request(STREAM_CHAT)).await });
    let mut connection = engine.begin_stream();
    connection.send(&chunk(HELLO));
    let answer = runtime.block_on(answer).expect("the client").expect("an answer");
    let mut body = answer.into_body();
    let frame = runtime.block_on(body.frame()).expect("a frame").expect("a good one");
    assert_eq!(frame.into_data().expect("data"), HELLO.as_bytes());
    drop(body);
    connection.assert_closed_by_gateway();
    let records = gateway.await_records(1);
    assert_eq!(records[0]["end"], "client_left");

    // The connection itself lives on.
    let answer = runtime.spawn(async move { other.send_request(request(CHAT)).await });
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(runtime.block_on(answer).expect("the client").expect("an answer").status(), 200);
}

#[test]
fn trailers_reach_a_client_that_can_take_them() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let runtime = runtime();
    let mut sender = runtime.block_on(connect(gateway.address()));
    let answer = runtime.spawn(async move {
        let answer = sender.send_request(request(STREAM_CHAT)).await.expect("an answer");
        answer.into_body().collect().await.expect("a body")
    });
    let mut connection = engine.begin_stream();
    connection.send(&chunks(&[HELLO, STOP, USAGE, DONE]));
    connection.send(b"0\r\nX-Checksum: 1\r\nx-tenant-id: other\r\n\r\n");
    let answer = runtime.block_on(async { tokio::time::timeout(PATIENCE, answer).await });
    let answer = answer.expect("in time").expect("the client");
    assert_eq!(answer.trailers().expect("trailers")["x-checksum"], "1");
    assert_eq!(answer.to_bytes(), [HELLO, STOP, DONE].concat());
    let record = gateway.record();
    assert_eq!(record["usage"]["output_tokens"], 100);
    // Whatever they say, it is never read.
    assert_eq!(record["tenant"], "default");
}

#[test]
fn an_http2_stream_that_was_reset_is_drained_where_the_operator_says_so() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai, on_client_left: drain").start();
    let runtime = runtime();
    let mut sender = runtime.block_on(connect(gateway.address()));
    let answer = runtime.spawn(async move {
        let mut answer = sender.send_request(request(STREAM_CHAT)).await.expect("an answer");
        answer.body_mut().frame().await.expect("a frame").expect("data");
        // Dropping the answer resets its stream; the connection lives on.
        drop(answer);
        sender
    });
    let mut connection = engine.begin_stream();
    connection.send(&chunk(HELLO));
    let sender = runtime.block_on(async { tokio::time::timeout(PATIENCE, answer).await });
    gateway.await_metric("taximeter_answers_left_total{taximeter_kind=\"drained\"} 1");
    connection.send(&chunks(&[STOP, USAGE, DONE]));
    connection.send(LAST_CHUNK);
    let record = &gateway.await_records(1)[0];
    assert_eq!(record["end"], "client_left", "{record}");
    assert_eq!(record["usage"]["source"], "reported", "{record}");
    drop(sender);
}
