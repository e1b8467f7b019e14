//! Limits the size of request heads on the admin address and the webhook, with the same limits as
//! for requests to engines.

use http::{HeaderName, HeaderValue, Request, StatusCode};
use taximeter_config::Limits;

/// The limits of the request line and the fields of a request.
#[derive(Debug, Clone, Copy)]
pub struct HeadBounds {
    /// Bytes of the whole head.
    pub(super) bytes_max: usize,
    /// Number of fields.
    pub(super) fields_max: usize,
    /// Bytes of the target.
    pub(super) target_bytes_max: usize,
}

impl HeadBounds {
    /// The limits of the configuration.
    pub const fn of(limits: &Limits) -> Self {
        Self {
            bytes_max: limits.header_bytes_max,
            fields_max: limits.headers_max,
            target_bytes_max: limits.uri_bytes_max,
        }
    }

    /// What is said of a head that is larger. hyper bounds what it reads for one, but takes what it
    /// has read beyond that when the head is whole by then.
    pub(super) fn refuse<B>(&self, request: &Request<B>) -> Option<(StatusCode, &'static str)> {
        let target = request.uri().to_string().len();
        let fields = request.headers();
        if target > self.target_bytes_max {
            Some((StatusCode::URI_TOO_LONG, "the path is longer than it may be\n"))
        } else if fields.len() > self.fields_max {
            let text = "the request has more header fields than it may\n";
            Some((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, text))
        } else if bytes(request, target) > self.bytes_max {
            let text = "the head of the request is larger than it may be\n";
            Some((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, text))
        } else {
            None
        }
    }
}

/// What a head takes as HTTP/1 writes it, without blanks that mean nothing.
fn bytes<B>(request: &Request<B>, target: usize) -> usize {
    const REST_OF_LINE: usize = "  HTTP/1.1\r\n".len();
    const REST_OF_FIELD: usize = ": \r\n".len();
    const END: usize = "\r\n".len();
    let field = |(name, value): (&HeaderName, &HeaderValue)| {
        name.as_str().len() + value.len() + REST_OF_FIELD
    };
    let fields: usize = request.headers().iter().map(field).sum();
    request.method().as_str().len() + target + REST_OF_LINE + fields + END
}
