//! One question for metrics, and what may go wrong with it.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, HOST, LOCATION};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::BodyExt as _;
use taximeter_config::{ScrapeUrl, Secret};
use taximeter_framing::{DecodeFault, Decoder, RATIO_MAX};
use taximeter_net::upstream::{DialFault, Dialer, Exchange, ExchangeBody, Link, RequestBody};
use taximeter_net::visible::is_visible;
use tokio::sync::Semaphore;

use crate::exposition::Form;
use crate::schedule::Outcome;

/// Time for a question and its whole answer.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer that is read, in bytes, once it is decoded. What is behind is not read.
pub(crate) const ANSWER_BYTES_MAX: usize = 8 << 20;
/// From so many bytes on an answer is large: few are read at once.
const LARGE_BYTES: usize = 256 << 10;
/// Longest part that is shown of where a redirect leads, in characters.
const SHOWN_CHARS_MAX: usize = 100;
/// Text that is preferred to Prometheus' messages in binary form.
const TEXT: HeaderValue = HeaderValue::from_static(
    "text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1",
);

/// An answer of a source.
#[derive(Debug)]
pub(crate) struct Answer {
    /// As much of it as is read.
    pub(crate) text: Vec<u8>,
    /// Whether there is more.
    pub(crate) cut: bool,
}

/// Why a source has told no metrics.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScrapeFault {
    #[error(transparent)]
    Dial(#[from] DialFault),
    #[error("no whole answer in {} s", ANSWER_TIMEOUT.as_secs())]
    Timeout,
    #[error("the connection broke, or what came is not HTTP")]
    Broken,
    #[error("the answer breaks off")]
    BrokeOff,
    #[error("it answers {0}")]
    Status(StatusCode),
    #[error("it answers {0} with a redirect to {1}, which is not followed")]
    Redirect(StatusCode, String),
    #[error("its content encoding cannot be read, or the answer is not what it says")]
    Encoding,
    #[error("the answer becomes too large once it is decoded")]
    Bomb,
    #[error("the answer is {0}, and not metrics")]
    Form(Form),
    #[error("the answer has no metrics of a program that is read")]
    NoProgram,
    #[error("it answers gRPC status {code}: {said}")]
    Grpc { code: String, said: String },
    #[error("the answer is no list of podresources")]
    NoList,
    #[error("the answer has more than {0} bytes")]
    TooLong(usize),
    #[error("a fault of Taximeter has ended the question")]
    Panicked,
}

impl ScrapeFault {
    /// One of a few words.
    pub(crate) const fn cause(&self) -> &'static str {
        match self {
            Self::Dial(fault) => fault.cause(),
            Self::Timeout => "timeout",
            Self::Broken | Self::BrokeOff | Self::TooLong(_) => "broken",
            Self::Status(_) | Self::Grpc { .. } => "status",
            Self::NoList => "no_podresources",
            Self::Redirect(..) => "redirect",
            Self::Encoding | Self::Bomb => "encoding",
            Self::Form(_) => "not_metrics",
            Self::NoProgram => "no_program",
            Self::Panicked => "internal",
        }
    }

    /// Whether asking again soon may help.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Status(status) if status.is_client_error() => Outcome::Useless,
            // llama.cpp says so where its metrics are off.
            Self::Status(StatusCode::NOT_IMPLEMENTED) => Outcome::Useless,
            Self::Redirect(..) | Self::Form(_) | Self::NoProgram | Self::Encoding | Self::Bomb => {
                Outcome::Useless
            }
            Self::Dial(DialFault::Public(_)) => Outcome::Useless,
            _ => Outcome::Failed,
        }
    }
}

/// Asks once. Redirects are not followed, because they may lead to somewhere inside. `large` has a
/// place for each large answer that is read at the same time.
pub(crate) async fn ask(
    dialer: &Dialer,
    url: &ScrapeUrl,
    credential: Option<&Secret>,
    large: &Semaphore,
) -> Result<Answer, ScrapeFault> {
    let asked = exchange(dialer, url, credential, large);
    tokio::time::timeout(ANSWER_TIMEOUT, asked).await.unwrap_or(Err(ScrapeFault::Timeout))
}

async fn exchange(
    dialer: &Dialer,
    url: &ScrapeUrl,
    credential: Option<&Secret>,
    large: &Semaphore,
) -> Result<Answer, ScrapeFault> {
    let origin = url.origin();
    let request = request(url, &origin.authority(), credential).ok_or(ScrapeFault::Broken)?;
    let mut link = Link::new(dialer.dial(&origin).await?).await?;
    let answer = link.send(request).await.map_err(|_| ScrapeFault::Broken)?;
    let status = answer.status();
    if let Some(to) = answer.headers().get(LOCATION).filter(|_| status.is_redirection()) {
        return Err(ScrapeFault::Redirect(status, shown(to)));
    }
    if status != StatusCode::OK {
        return Err(ScrapeFault::Status(status));
    }
    let mut text = Text::new(answer.headers())?;
    let mut body = ExchangeBody(Exchange::new(link, answer.into_body()));
    let mut _place = None;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| ScrapeFault::BrokeOff)?.into_data() else { continue };
        if text.is_full_with(&data)? {
            break;
        }
        if _place.is_none() && text.bytes.len() > LARGE_BYTES {
            _place = large.acquire().await.ok();
        }
    }
    text.finish()
}

fn request(
    url: &ScrapeUrl,
    host: &str,
    credential: Option<&Secret>,
) -> Option<Request<RequestBody>> {
    let mut request = Request::new(RequestBody::default());
    *request.uri_mut() = url.path.parse().ok()?;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_str(host).ok()?);
    headers.insert(ACCEPT, TEXT);
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(credential) = credential {
        let mut value = HeaderValue::try_from(format!("Bearer {}", credential.expose())).ok()?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Some(request)
}

/// The text of an answer while it comes.
struct Text {
    decoder: Option<Decoder>,
    bytes: Vec<u8>,
    cut: bool,
}

/// Why no more is decoded.
enum Stop {
    Full,
    Fault(DecodeFault),
}

impl From<DecodeFault> for Stop {
    fn from(fault: DecodeFault) -> Self {
        Self::Fault(fault)
    }
}

impl Text {
    fn new(headers: &HeaderMap) -> Result<Self, ScrapeFault> {
        let decoder = match headers.get(CONTENT_ENCODING) {
            None => None,
            Some(coding) => {
                let coding = coding.to_str().map_err(|_| ScrapeFault::Encoding)?;
                Some(Decoder::new(coding, RATIO_MAX).map_err(|_| ScrapeFault::Encoding)?)
            }
        };
        Ok(Self { decoder, bytes: Vec::new(), cut: false })
    }

    /// More has come. Whether no more is read.
    fn is_full_with(&mut self, data: &Bytes) -> Result<bool, ScrapeFault> {
        let Self { decoder, bytes, cut } = self;
        let mut add = |piece: &[u8]| {
            let room = ANSWER_BYTES_MAX.saturating_sub(bytes.len());
            bytes.extend_from_slice(piece.get(..room).unwrap_or(piece));
            if piece.len() > room { Err(Stop::Full) } else { Ok(()) }
        };
        let added = match decoder {
            None => add(data),
            Some(decoder) => decoder.feed(data, &mut add),
        };
        match added {
            Ok(()) => {}
            Err(Stop::Full) => *cut = true,
            Err(Stop::Fault(DecodeFault::TooLarge)) => return Err(ScrapeFault::Bomb),
            Err(Stop::Fault(_)) => return Err(ScrapeFault::Encoding),
        }
        Ok(*cut)
    }

    fn finish(self) -> Result<Answer, ScrapeFault> {
        if !self.cut && self.decoder.is_some_and(|decoder| !decoder.is_whole()) {
            return Err(ScrapeFault::Encoding);
        }
        Ok(Answer { text: self.bytes, cut: self.cut })
    }
}

/// Text of others for people: it cannot move a cursor, and is short.
pub(crate) fn shown(value: &HeaderValue) -> String {
    let text = String::from_utf8_lossy(value.as_bytes());
    let visible = text.chars().map(|c| if is_visible(c) { c } else { '\u{fffd}' });
    visible.take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(dialer: &Dialer, port: u16, host: &str) -> ScrapeFault {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let path = "/metrics".to_owned();
        let url = ScrapeUrl { tls: false, host: host.to_owned(), port, path };
        runtime.block_on(ask(dialer, &url, None, &Semaphore::new(1))).unwrap_err()
    }

    #[test]
    fn a_public_address_is_left_alone_where_only_others_are_asked() {
        let dialer = Dialer::new(false, Duration::from_secs(1)).private();
        let fault = asked(&dialer, 9, "192.0.2.1");
        assert_eq!((fault.cause(), fault.outcome()), ("public_address", Outcome::Useless));
        // A port that was free a moment ago.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let fault = asked(&dialer, port, "127.0.0.1");
        assert_eq!((fault.cause(), fault.outcome()), ("connect", Outcome::Failed));
    }

    #[test]
    fn where_a_redirect_leads_cannot_move_a_cursor_and_is_short() {
        let to = HeaderValue::from_bytes(b"http://a/\xe2\x80\xae\xffb").unwrap();
        assert_eq!(shown(&to), "http://a/\u{fffd}\u{fffd}b");
        let long = HeaderValue::from_str(&"x".repeat(1_000)).unwrap();
        assert_eq!(shown(&long).len(), SHOWN_CHARS_MAX);
    }
}
