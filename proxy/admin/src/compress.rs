//! Compresses answers with gzip for clients that ask for it. Metrics of many tenants are a
//! hundredth of their length then.
//!
//! The work is done piece by piece as the client reads, on the background runtime, so that no request
//! of a client waits for it.

use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::{Body as _, Frame, SizeHint};

/// Bodies that are known to be shorter are sent as they are, in bytes.
const PLAIN_BYTES_MAX: u64 = 1024;
/// What is compressed at once, in bytes; in between, others have their turn.
const PIECE_BYTES: usize = 64 << 10;
/// Effort. Metrics repeat themselves: more effort makes them hardly shorter.
const LEVEL: u32 = 1;

/// The coding that a client prefers.
const GZIP: &str = "gzip";

/// Compresses the answer if the client asks for it and the answer may be.
pub(super) async fn compressed(request: Request, next: Next) -> Response {
    let is_asked = prefers_gzip(request.headers());
    let is_head = request.method() == Method::HEAD;
    let mut answer = next.run(request).await;
    if !may_be_compressed(&answer) {
        return answer;
    }
    answer.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
    if !is_asked || is_head {
        return answer;
    }
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(GZIP));
    headers.remove(header::CONTENT_LENGTH);
    answer.map(|body| Body::new(Gzip::new(body)))
}

/// Whether a client takes gzip, and rather than what is not compressed (RFC 9110 §12.5.3).
fn prefers_gzip(headers: &HeaderMap) -> bool {
    let (mut gzip, mut identity, mut any) = (None, None, None);
    let lines = headers.get_all(header::ACCEPT_ENCODING).iter();
    for item in lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(',')) {
        let mut parts = item.split(';').map(str::trim);
        let coding = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(weight).unwrap_or(1000);
        match coding.as_str() {
            GZIP | "x-gzip" => gzip = gzip.max(Some(weight)),
            "identity" => identity = Some(weight),
            "*" => any = Some(weight),
            _ => {}
        }
    }
    let gzip = gzip.or(any).unwrap_or(0);
    gzip > 0 && gzip >= identity.unwrap_or(0)
}

/// A weight in thousandths; one that cannot be read is none.
fn weight(parameter: &str) -> Option<u32> {
    let (name, value) = parameter.split_once('=')?;
    let is_weight = name.trim().eq_ignore_ascii_case("q");
    let weight = value.trim().parse::<f64>().ok().filter(|weight| (0.0..=1.0).contains(weight));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1000")]
    let thousandths = |weight: f64| (weight * 1000.0).round() as u32;
    is_weight.then(|| weight.map_or(0, thousandths))
}

/// Whether an answer has a body that is worth it. The events of a stream are read one by one.
fn may_be_compressed(answer: &Response) -> bool {
    let headers = answer.headers();
    let kind = headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let has_whole_body = !matches!(
        answer.status(),
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED | StatusCode::PARTIAL_CONTENT
    );
    let is_short = answer.body().size_hint().exact().is_some_and(|size| size < PLAIN_BYTES_MAX);
    has_whole_body
        && !is_short
        && !headers.contains_key(header::CONTENT_ENCODING)
        && !kind.starts_with(b"text/event-stream")
}

/// A body that is compressed as it is read.
struct Gzip {
    body: Body,
    /// Read and not compressed yet.
    unread: Bytes,
    /// `None` once the end is written.
    encoder: Option<GzEncoder<Vec<u8>>>,
    /// Whether the encoder keeps something back.
    keeps: bool,
}

impl Gzip {
    fn new(body: Body) -> Self {
        let encoder = GzEncoder::new(Vec::new(), Compression::new(LEVEL));
        Self { body, unread: Bytes::new(), encoder: Some(encoder), keeps: false }
    }
}

impl hyper::body::Body for Gzip {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        loop {
            let Some(encoder) = &mut this.encoder else { return Poll::Ready(None) };
            if !this.unread.is_empty() {
                let piece = this.unread.split_to(PIECE_BYTES.min(this.unread.len()));
                encoder.write_all(&piece).map_err(axum::Error::new)?;
                this.keeps = true;
                if let Some(frame) = written(encoder) {
                    return Poll::Ready(Some(Ok(frame)));
                }
                continue;
            }
            match Pin::new(&mut this.body).poll_frame(cx) {
                // What is there must not wait for what is not: a page begins with its frame.
                Poll::Pending if this.keeps => {
                    encoder.flush().map_err(axum::Error::new)?;
                    this.keeps = false;
                    return written(encoder)
                        .map_or(Poll::Pending, |frame| Poll::Ready(Some(Ok(frame))));
                }
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(frame)) => {
                    if let Ok(data) = frame?.into_data() {
                        this.unread = data;
                    }
                }
                Poll::Ready(None) => {
                    let end = this.encoder.take().map(GzEncoder::finish).transpose();
                    let end = end.map_err(axum::Error::new)?.unwrap_or_default();
                    return Poll::Ready(Some(Ok(Frame::data(end.into()))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.encoder.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// What the encoder has written since.
fn written(encoder: &mut GzEncoder<Vec<u8>>) -> Option<Frame<Bytes>> {
    let written = std::mem::take(encoder.get_mut());
    (!written.is_empty()).then(|| Frame::data(written.into()))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::io::Read as _;
    use std::time::Duration;

    use axum::Router;
    use axum::routing::get;
    use flate2::read::MultiGzDecoder;
    use futures_util::{StreamExt as _, stream};
    use tower::ServiceExt as _;

    use super::*;

    fn prefers(lines: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::ACCEPT_ENCODING, line.parse().unwrap());
        }
        prefers_gzip(&headers)
    }

    #[test]
    fn a_client_says_how_much_it_likes_each_coding() {
        for lines in [
            &["gzip"][..],
            &["GZIP"],
            &["x-gzip"],
            &["deflate, gzip;q=1.0, *;q=0.5"],
            &["br, zstd", "gzip;q=0.001"],
            &["*"],
            &["gzip; q=0.5, identity; Q=0.5"],
            &["identity;q=0, *;q=0.1"],
        ] {
            assert!(prefers(lines), "{lines:?}");
        }
        for lines in [
            &[][..],
            &[""],
            &["identity"],
            &["br"],
            &["gzip;q=0"],
            &["gzip;q=0.000, *"],
            &["*;q=0"],
            &["gzip;q=0.3, identity;q=0.7"],
            &["gzip;q=much"],
            &["gzip;q=2"],
            &["not-gzip, gzipped"],
        ] {
            assert!(!prefers(lines), "{lines:?}");
        }
    }

    /// What an answer with this body becomes for a client that takes gzip.
    async fn served(
        kind: &'static str,
        body: impl Fn() -> Body + Clone + Send + Sync + 'static,
    ) -> Response {
        let handler = move || async move { ([(header::CONTENT_TYPE, kind)], body()) };
        let router = Router::new().route("/", get(handler));
        let router = router.layer(axum::middleware::from_fn(compressed));
        let request = Request::get("/").header(header::ACCEPT_ENCODING, GZIP);
        router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    }

    fn plain(gzip: &[u8]) -> String {
        let mut text = String::new();
        MultiGzDecoder::new(gzip).read_to_string(&mut text).unwrap();
        text
    }

    #[tokio::test]
    async fn long_bodies_come_compressed_and_say_so() {
        let text: String = (0..100_000).map(|line| format!("metric{{a=\"{line}\"}} 1\n")).collect();
        for pieces in [1, 7] {
            let whole = Bytes::from(text.clone());
            let body = move || {
                let size = whole.len().div_ceil(pieces);
                let pieces: Vec<_> = whole.chunks(size).map(Bytes::copy_from_slice).collect();
                Body::from_stream(stream::iter(pieces.into_iter().map(Ok::<_, Infallible>)))
            };
            let answer = served("text/plain", body).await;
            let headers = answer.headers().clone();
            assert_eq!(headers[header::CONTENT_ENCODING], GZIP);
            assert_eq!(headers[header::VARY], "accept-encoding");
            assert!(!headers.contains_key(header::CONTENT_LENGTH));
            let sent = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
            assert!(sent.len() < text.len() / 4, "{} of {}", sent.len(), text.len());
            assert_eq!(plain(&sent), text);
        }
    }

    #[tokio::test]
    async fn short_bodies_and_streams_of_events_come_as_they_are() {
        let short = served("application/json", || Body::from("{}")).await;
        let events = served("text/event-stream", || Body::from("x".repeat(4096))).await;
        for answer in [short, events] {
            let headers = answer.headers();
            assert!(!headers.contains_key(header::CONTENT_ENCODING), "{headers:?}");
            assert!(!headers.contains_key(header::VARY), "{headers:?}");
        }
    }

    #[tokio::test]
    async fn what_is_there_does_not_wait_for_what_is_not() {
        let body = || {
            let first = stream::iter([Bytes::from("first ".repeat(1000))]);
            Body::from_stream(first.chain(stream::pending()).map(Ok::<_, Infallible>))
        };
        let mut body = served("text/html", body).await.into_body().into_data_stream();
        let mut sent = Vec::new();
        let mut shown = String::new();
        while !shown.ends_with("first ") || shown.len() < 6000 {
            let piece = tokio::time::timeout(Duration::from_secs(30), body.next()).await;
            sent.extend(piece.expect("it comes").unwrap().unwrap());
            shown.clear();
            // The end is missing, so the decoder fails after what there is.
            let _ = MultiGzDecoder::new(&*sent).read_to_string(&mut shown);
        }
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_has_no_end() {
        let body = || {
            let pieces = [Ok(Bytes::from("x".repeat(5000))), Err("broken")];
            Body::from_stream(stream::iter(pieces))
        };
        let answer = served("text/plain", body).await;
        assert!(axum::body::to_bytes(answer.into_body(), usize::MAX).await.is_err());
    }
}
