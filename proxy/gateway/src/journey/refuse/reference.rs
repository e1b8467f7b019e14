//! When Taximeter answers each refusal, and what to do: makes the first part of
//! `docs/reference/errors.md`.

use std::fmt::Write as _;

use bytes::Bytes;
use http::Response;
use http::header::RETRY_AFTER;
use serde_json::Value;
use taximeter_framing::DecodeFault;
use taximeter_net::framing::FramingFault;
use taximeter_request::RequestFault;
use taximeter_tests::generated::is_fresh;

use super::{Refusal, Shape};

/// Names each refusal, with an example, when it happens, and what to do. A refusal that is not named
/// does not compile.
macro_rules! explained {
    ($($named:pat => $example:expr, $when:literal, $action:literal;)+) => {
        fn explained() -> Vec<(Refusal, &'static str, &'static str)> {
            let all = vec![$(($example, $when, $action)),+];
            for (refusal, ..) in &all {
                match refusal {
                    $($named => {})+
                    // The meter owns these faults, and may have more of them.
                    Refusal::Request(_) => {}
                }
            }
            all
        }
    };
}

explained! {
    Refusal::BadFraming { .. } => Refusal::BadFraming { cause: "host" },
        "Two HTTP readers could read the request in different ways: it has no `host` or two, a \
         `connection` header that names a credential, or a body that is framed wrongly.",
        "Fix the client, or the proxy in front of Taximeter. The message names the cause.";
    Refusal::Framing(FramingFault::HeadTooLarge | FramingFault::TooManyFields) =>
        Refusal::Framing(FramingFault::HeadTooLarge),
        "The request head is longer than `limits.header_bytes_max`, or has more header fields than \
         `limits.headers_max`.",
        "Send fewer or shorter headers, or raise the limit.";
    Refusal::Framing(FramingFault::TargetTooLong) | Refusal::UriTooLong { .. } =>
        Refusal::UriTooLong { bytes_max: 1 },
        "The path and query are longer than `limits.uri_bytes_max`.",
        "Send a shorter path, or raise the limit.";
    Refusal::Framing(FramingFault::Encoded) => Refusal::Framing(FramingFault::Encoded),
        "The body has another transfer coding than `chunked`.",
        "Compress bodies with `content-encoding`.";
    Refusal::Framing(_) => Refusal::Framing(FramingFault::LineEnd),
        "The request is not valid HTTP/1.1, with one of the causes below.",
        "Fix the client, or the proxy in front of Taximeter.";
    Refusal::LengthMissing => Refusal::LengthMissing,
        "A POST has neither `content-length` nor `transfer-encoding`.",
        "Send one of them.";
    Refusal::NotSupported => Refusal::NotSupported,
        "The method is CONNECT.",
        "Use Taximeter as the base URL of the client, not as its HTTP proxy.";
    Refusal::Expectation => Refusal::Expectation,
        "The header `expect` asks for something else than `100-continue`.",
        "Send `expect: 100-continue`, or no such header.";
    Refusal::CredentialsDiffer => Refusal::CredentialsDiffer,
        "The request carries two different credentials of which one is a key of this gateway, or one \
         header twice.",
        "Send one API key in one header. Beside a credential of the provider, send the key of this \
         gateway as `x-taximeter-key`.";
    Refusal::InvalidKey => Refusal::InvalidKey,
        "The API key is not one of `tenants.keys` and no trusted header names a tenant, or there are \
         no keys and `tenants.unknown` is `refuse`.",
        "Send a key that the operator made with `taximeter keys new`.";
    Refusal::WrongKey => Refusal::WrongKey,
        "`x-taximeter-key` is there and is not one of `tenants.keys`. No other credential is looked at \
         then.",
        "Send a valid key, or leave the header out.";
    Refusal::UntrustedPeer { .. } => Refusal::UntrustedPeer { header: "x-tenant-id".into() },
        "The request has the header of `tenants.header` and no API key, and the connection does not \
         come from one of `tenants.header.trusted_peers`.",
        "Add the address of your ingress to the trusted peers, or send an API key.";
    Refusal::TenantName { .. } => Refusal::TenantName { header: "x-tenant-id".into() },
        "A trusted peer sends the header of `tenants.header` twice, or with a value that is no name of \
         a tenant.",
        "Send one name. The message says which names are allowed.";
    Refusal::OtherOrigin => Refusal::OtherOrigin,
        "A web page of another origin sends a request without asking first, an upstream has a \
         `credential`, callers need no key, and `cors.origins` does not list the page.",
        "List the page in `cors.origins`, or set `tenants.unknown: refuse`.";
    Refusal::Misdirected { .. } => Refusal::Misdirected { host: "x".into() },
        "`listen` is loopback, callers need no key, and `host` is a name that may be anybody's. A web \
         page could otherwise reach the gateway under its own name (DNS rebinding).",
        "Use an IP address or `localhost`, or set `tenants.unknown: refuse`.";
    Refusal::MissingKey => Refusal::MissingKey,
        "The request carries no API key and no trusted tenant header, and `tenants.unknown` is \
         `refuse`.",
        "Send an API key.";
    Refusal::UnknownRoute { .. } => Refusal::UnknownRoute { path: "/x".into() },
        "No route has this path, and `passthrough` is `off`.",
        "Check the client's base URL against the [routes](routes.md).";
    Refusal::SocketRoute { .. } => Refusal::SocketRoute { path: "/x".into(), instead: "/y" },
        "The path belongs to an API that needs WebSockets.",
        "Send POST requests to the route that the message names.";
    Refusal::WebSocket { .. } => Refusal::WebSocket { instead: "/y" },
        "The request asks for a WebSocket.",
        "Send POST requests to the route that the message names, with `stream` set.";
    Refusal::MethodNotAllowed { .. } => Refusal::MethodNotAllowed { allow: "POST" },
        "The route has other methods, and `passthrough` is `off`. The header `allow` names them.",
        "Use one of these methods.";
    Refusal::ModelNotFound { .. } => Refusal::ModelNotFound { model: "m".into() },
        "The `models` of no upstream match the request's model.",
        "Check the model's name, or add it to an upstream.";
    Refusal::ModelRequired => Refusal::ModelRequired,
        "The request names no `model`, and `prices.unknown` is `refuse`: its price must be known.",
        "Send a `model`.";
    Refusal::Request(RequestFault::InvalidJson { .. }) =>
        Refusal::Request(RequestFault::InvalidJson { offset: 0, what: "x" }),
        "The body is not a JSON object in UTF-8. `param` is the byte where it fails.",
        "Send valid JSON.";
    Refusal::Request(RequestFault::TooDeep { .. }) =>
        Refusal::Request(RequestFault::TooDeep { offset: 0, depth_max: 1 }),
        "The JSON is nested deeper than `limits.json_depth_max`.",
        "Send a flatter body, or raise the limit.";
    Refusal::Request(RequestFault::DuplicateKey { .. }) =>
        Refusal::Request(RequestFault::DuplicateKey { key: "model" }),
        "A key that Taximeter reads is given twice in one object. `param` names it.",
        "Send the key once.";
    Refusal::Request(RequestFault::InvalidValue { .. }) =>
        Refusal::Request(RequestFault::InvalidValue { param: "model", what: "x" }),
        "A value that Taximeter reads has the wrong type or form. `param` names it.",
        "Send the value that the message asks for.";
    Refusal::Request(RequestFault::InvalidForm { .. }) =>
        Refusal::Request(RequestFault::InvalidForm { offset: 0, what: "x" }),
        "The multipart form cannot be read. `param` is the byte where it fails.",
        "Send a valid multipart form.";
    Refusal::Encoding(DecodeFault::Damaged) => Refusal::Encoding(DecodeFault::Damaged),
        "The compressed body is damaged or incomplete.",
        "Compress the body again.";
    Refusal::Encoding(DecodeFault::Unknown) => Refusal::Encoding(DecodeFault::Unknown),
        "The `content-encoding` is not gzip, deflate, br or zstd, or there are more than two.",
        "Use one of these, or none.";
    Refusal::Encoding(DecodeFault::TooLarge) => Refusal::Encoding(DecodeFault::TooLarge),
        "The decompressed body exceeds `limits.decode_bytes_max` or `limits.decode_ratio_max`.",
        "Send a smaller body, or raise the limit.";
    Refusal::MediaType => Refusal::MediaType,
        "The `content-type` is neither JSON nor, on a route with files, a multipart form.",
        "Send `content-type: application/json`.";
    Refusal::TooLarge { .. } => Refusal::TooLarge { bytes_max: 1 },
        "The body is larger than `limits.body_bytes_max`.",
        "Send a smaller body, or raise the limit.";
    Refusal::BodyTimeout => Refusal::BodyTimeout,
        "No part of the body came for `limits.body_read_timeout_seconds`, or the request took longer \
         than `limits.request_timeout_seconds`.",
        "Send the body faster, or raise the limit.";
    Refusal::ClientLeft => Refusal::ClientLeft,
        "The client closed the connection before its body was complete. Only logs and metrics show \
         the code.",
        "Nothing.";
    Refusal::UnknownPrice { .. } => Refusal::UnknownPrice { model: "m".into() },
        "The model has no price, and `prices.unknown` is `refuse`.",
        "Add a price in `prices.overrides`.";
    Refusal::ConcurrencyLimited { .. } => Refusal::ConcurrencyLimited { most: 1 },
        "The tenant has as many running requests as its `concurrency` or \
         `limits.requests_per_tenant_max` allows.",
        "Try again when a request has ended, or raise the limit.";
    Refusal::LedgerUnavailable => Refusal::LedgerUnavailable,
        "The ledger cannot be written: the disk is full or slow, or the room of the data \
         directory is nearly used: `ledger.dir_bytes_max`, or what its volume leaves.",
        "Check the volume and the metric `taximeter_ledger_healthy`.";
    Refusal::Overloaded { .. } => Refusal::Overloaded { limit: "memory" },
        "Memory or file descriptors are nearly used up, or request bodies take \
         `limits.bodies_total_bytes_max`.",
        "Try again. Give the gateway more memory, or add a gateway.";
    Refusal::Draining => Refusal::Draining,
        "The gateway is shutting down.",
        "Try again. A load balancer sends the request to another gateway.";
    Refusal::UpstreamConnect { .. } => Refusal::UpstreamConnect { cause: "connect" },
        "Taximeter could not connect to the upstream.",
        "Check the upstream's `url`, its TLS certificate and whether it runs.";
    Refusal::NoUpstream => Refusal::NoUpstream,
        "Taximeter could not connect to the upstream, and earlier requests failed there too.",
        "Check whether the upstream runs.";
    Refusal::UpstreamTimeout => Refusal::UpstreamTimeout,
        "The upstream did not begin its answer within `limits.upstream_head_timeout_seconds`, or \
         within the rest of `limits.request_timeout_seconds`.",
        "Check the upstream's load, or raise the limit.";
    Refusal::UpstreamAuth => Refusal::UpstreamAuth,
        "The upstream answered 401 to the `credential` in the configuration.",
        "Check the upstream's `credential`. Clients cannot fix this.";
    Refusal::UpstreamReset => Refusal::UpstreamReset,
        "The upstream closed the connection before it answered.",
        "Check the upstream's log.";
    Refusal::UpstreamProtocol => Refusal::UpstreamProtocol,
        "The upstream's answer is not valid HTTP, or switches the protocol.",
        "Check that `url` is an HTTP engine.";
    Refusal::Internal => Refusal::Internal,
        "Taximeter has a bug.",
        "Look for the request id in the log, and report the bug.";
}

/// Each refusal once.
pub(super) fn all() -> Vec<Refusal> {
    explained().into_iter().map(|(refusal, ..)| refusal).collect()
}

const HEAD: &str = "\
<!-- The first part is made by proxy/gateway/src/journey/refuse/reference.rs, the part on the admin address by
     proxy/admin/src/problem/reference.rs: change those, then run
     INSTA_UPDATE=always cargo test -p taximeter-gateway -p taximeter-admin reference -->
# Errors

This page lists every error that Taximeter itself answers: the code, the HTTP status, when it happens, and what to do.

An error of an engine or provider is not on this page. Taximeter passes it on unchanged: status, headers and body.

## How an error looks

On most routes an error is a JSON object in the form of OpenAI's API. `code` is one of the codes below. `param` names the member
or header at fault, or is null.

```json
{\"error\": {\"message\": \"no upstream serves the model \\\"gpt-9\\\"\", \"type\": \"invalid_request_error\",
           \"param\": \"model\", \"code\": \"model_not_found\"}}
```

On `/v1/messages` it is in the form of Anthropic's API, with the same codes:

```json
{\"type\": \"error\", \"error\": {\"type\": \"not_found_error\", \"code\": \"model_not_found\",
                             \"message\": \"no upstream serves the model \\\"gpt-9\\\"\"},
 \"request_id\": \"01a210c8-5bd4-7c32-9d0f-1c9b7a1d2e30\"}
```

The column *retry* says what a client should do:

- **no**: the answer has `x-should-retry: false`. The same request fails again.
- **after N s**: the answer has `retry-after: N`. The request may succeed then.
- **yes**: the request may succeed when it is sent again.

Every answer has `x-taximeter-request-id`. Give it to the operator, who finds the request in the log by it.

## Codes

";

fn page() -> String {
    let mut rows: Vec<_> = explained()
        .into_iter()
        .map(|(refusal, when, action)| {
            let (openai, anthropic) =
                (answer(&refusal, Shape::OpenAi), answer(&refusal, Shape::Anthropic));
            let status = openai.status().as_u16();
            let (kind, theirs) = (kind(&openai), kind(&anthropic));
            let (code, retry) = (refusal.code(), retry(&openai));
            let row = format!(
                "| {status} | `{code}` | `{kind}` | `{theirs}` | {when} | {action} | {retry} |\n"
            );
            ((status, code), row)
        })
        .collect();
    taximeter_collections::sort_by_key(&mut rows, |(order, _)| *order);
    let mut page = HEAD.to_owned();
    page.push_str("| status | code | `type` | Anthropic's `type` | when | what to do | retry |\n");
    page.push_str("|---|---|---|---|---|---|---|\n");
    rows.iter().for_each(|(_, row)| page.push_str(row));
    page.push_str(STREAMS);
    page.push_str("| cause | code | what is wrong with the request |\n|---|---|---|\n");
    for fault in FramingFault::OF_REQUESTS {
        let (cause, code) = (fault.cause(), Refusal::Framing(fault).code());
        // Writing to a string cannot fail.
        let _ = writeln!(page, "| `{cause}` | `{code}` | {fault} |");
    }
    page
}

const STREAMS: &str = "
## Errors within a stream

Once a stream has begun, its status is 200. Taximeter then sends one last event with an error, and closes the connection without
`[DONE]`. The event has the same `code` and `message`: `data: {\"error\": …}` for chat and completions, `event: error` for
responses and messages, one JSON line without a code for Ollama's routes, an exception message for Bedrock's. An answer that is
not a stream ends without an event.

| code | when | the record's `end` |
|---|---|---|
| `upstream_timeout` | The upstream was silent for `limits.upstream_idle_timeout_seconds`. | `upstream_stalled` |
| `request_timeout` | The request took longer than `limits.request_timeout_seconds`. | `deadline` |
| `draining` | The gateway is shutting down, and `limits.drain_seconds` are over. | `shutdown` |

A stream that ends without `[DONE]` and without such an event broke at the upstream. The record's `end` is `upstream_error` where
the connection broke, and `truncated` where the upstream left out the end.

## Causes of framing errors

Taximeter reads HTTP/1.1 strictly, so that the engine behind it cannot read a request in another way. It closes the connection
after each of these errors. The cause is in the log and in the metric `taximeter_bad_framing_total`.

";

fn answer(refusal: &Refusal, shape: Shape) -> Response<Bytes> {
    refusal.answer(shape, "r")
}

fn kind(answer: &Response<Bytes>) -> String {
    let body: Value = serde_json::from_slice(answer.body()).unwrap();
    body["error"]["type"].as_str().unwrap().to_owned()
}

fn retry(answer: &Response<Bytes>) -> String {
    match (answer.headers().get(RETRY_AFTER), answer.headers().get("x-should-retry")) {
        (Some(seconds), _) => format!("after {} s", seconds.to_str().unwrap()),
        (None, Some(_)) => "no".to_owned(),
        (None, None) => "yes".to_owned(),
    }
}

#[test]
fn the_reference_of_errors_is_fresh() {
    // The part on the admin address is made by that crate.
    let with_part = |stands: &str| {
        let at = stands.find("\n## The admin address\n").unwrap_or(stands.len());
        page() + &stands[at..]
    };
    assert_eq!(is_fresh("docs/reference/errors.md", with_part), Ok(()));
}
