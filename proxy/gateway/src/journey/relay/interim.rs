//! Passes interim answers (1xx) of an engine to clients that accept them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Request, StatusCode, Version};
use taximeter_net::upstream::RequestBody;

use super::headers;
use crate::listen::Peer;

/// Interim answers passed on for one request; what comes beyond is dropped.
const INTERIM_ANSWERS_MAX: usize = 8;

/// Passes on what comes before the answer to `request`. HTTP/1.0 has nothing of the kind, and
/// hyper cannot send it on HTTP/2.
pub(super) fn pass_on(request: &mut Request<RequestBody>, version: Version, peer: &Arc<Peer>) {
    if version != Version::HTTP_11 {
        return;
    }
    let (peer, passed) = (peer.clone(), AtomicUsize::new(0));
    hyper::ext::on_informational(request, move |answer| {
        // The client's own wish for a 100 has been met: its body is here.
        let wanted = answer.status() != StatusCode::CONTINUE;
        if wanted && passed.fetch_add(1, Relaxed) < INTERIM_ANSWERS_MAX {
            peer.interim.push(&head(answer.status(), answer.headers().clone()));
        }
    });
}

fn head(status: StatusCode, mut headers: HeaderMap) -> Vec<u8> {
    headers::answer(&mut headers);
    headers.remove(CONTENT_LENGTH);
    let reason = status.canonical_reason().unwrap_or_default();
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    for (name, value) in &headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            head.extend_from_slice(part);
        }
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interim_answer_keeps_what_is_not_of_its_hop() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("link", "</a>"),
            ("link", "</b>"),
            ("connection", "x-private"),
            ("x-private", "1"),
            ("content-length", "5"),
        ] {
            headers.append(name, value.parse().unwrap());
        }
        let text = |status, headers| String::from_utf8(head(status, headers)).unwrap();
        assert_eq!(
            text(StatusCode::EARLY_HINTS, headers),
            "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nlink: </b>\r\n\r\n"
        );
        let odd = StatusCode::from_u16(199).unwrap();
        assert_eq!(text(odd, HeaderMap::new()), "HTTP/1.1 199 \r\n\r\n");
    }
}
