//! Detects requests for a WebSocket. The gateway serves none, and the answer says so.

use http::header::{SEC_WEBSOCKET_KEY, UPGRADE};
use http::request::Parts;
use http::{Method, Version};

/// Whether a request is the handshake of a WebSocket (RFC 6455 §4.1). Its key is enough, since a
/// proxy before this gateway may have removed `upgrade`.
///
/// `upgrade` means nothing on HTTP/1.0, and HTTP/2 has no such handshake.
pub(super) fn asks(head: &Parts) -> bool {
    head.method == Method::GET
        && head.version == Version::HTTP_11
        && (head.headers.contains_key(SEC_WEBSOCKET_KEY) || names_websocket(head))
}

fn names_websocket(head: &Parts) -> bool {
    let values = head.headers.get_all(UPGRADE).iter().filter_map(|value| value.to_str().ok());
    let protocols = values.flat_map(|value| value.split(','));
    // A version may stand behind the name.
    let mut names = protocols.filter_map(|protocol| protocol.split('/').next());
    names.any(|name| name.trim().eq_ignore_ascii_case("websocket"))
}

/// Whether a path belongs to an API that needs WebSockets: OpenAI's Realtime API, Gemini's Live API.
pub(super) fn need(path: &str) -> bool {
    path.split('/').any(|part| part == "realtime" || part.ends_with(".BidiGenerateContent"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks_with(method: &str, version: Version, headers: &[(&str, &str)]) -> bool {
        let request = http::Request::builder().method(method).version(version).uri("/v1/realtime");
        let request = headers.iter().fold(request, |r, (name, value)| r.header(*name, *value));
        asks(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn a_handshake_is_a_get_on_http_1_1_that_names_the_protocol_or_has_its_key() {
        let key = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        for (method, version, headers, expected) in [
            ("GET", Version::HTTP_11, &[("upgrade", "websocket")][..], true),
            ("GET", Version::HTTP_11, &[("upgrade", "h2c, WebSocket")], true),
            ("GET", Version::HTTP_11, &[("upgrade", "h2c"), ("upgrade", "websocket")], true),
            ("GET", Version::HTTP_11, &[("upgrade", "websocket/13")], true),
            ("GET", Version::HTTP_11, &[key], true),
            ("GET", Version::HTTP_11, &[("upgrade", "h2c")], false),
            ("GET", Version::HTTP_11, &[("upgrade", "websockets")], false),
            ("GET", Version::HTTP_11, &[("connection", "upgrade")], false),
            ("GET", Version::HTTP_11, &[], false),
            ("POST", Version::HTTP_11, &[("upgrade", "websocket")], false),
            ("HEAD", Version::HTTP_11, &[key], false),
            ("GET", Version::HTTP_10, &[("upgrade", "websocket")], false),
            ("GET", Version::HTTP_2, &[key], false),
        ] {
            assert_eq!(asks_with(method, version, headers), expected, "{method} {headers:?}");
        }
    }

    #[test]
    fn paths_of_apis_that_need_sockets_are_known_by_a_whole_segment() {
        for path in [
            "/v1/realtime",
            "/openai/v1/realtime",
            "/realtime/client_secrets",
            "/v1/realtime/calls/rtc_1/hangup",
            "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
        ] {
            assert!(need(path), "{path}");
        }
        for path in ["/v1/realtimes", "/v1/my-realtime", "/v1/responses", "/v1/models"] {
            assert!(!need(path), "{path}");
        }
    }
}
