//! An HTTP client for the admin address. It keeps its connections open.

use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use taximeter_config::UpstreamUrl;
use taximeter_net::upstream::{
    Dialer, Exchange, ExchangeBody, HTTP_1, Link, Pair, Pool, RequestBody, SendFault,
};
use taximeter_system::clock;

use super::sample::{Live, METRICS, Sample, Status};
use super::snapshot::Month;

/// Longest time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time for one answer. The gateway itself gives up after ten seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(12);
/// How long an idle connection stays open.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// Longest answer, in bytes. It is enough for a hundred thousand series.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Most running requests in an answer: the limit of the gateway.
const RUNNING_MAX: usize = 1000;
/// Longest part of an error answer that is shown, in characters.
const REASON_CHARS_MAX: usize = 200;
/// The `user-agent` header.
const AGENT: &str = concat!("taximeter-top/", env!("CARGO_PKG_VERSION"));

/// Why the admin address gives no answer. The text says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminFault {
    /// A certificate file cannot be used.
    #[error("cannot use {0}")]
    Files(io::Error),
    /// The token has characters that a header cannot have.
    #[error("the token has characters that an HTTP header cannot have")]
    Token,
    /// There is no connection, or it broke.
    #[error("{cause}")]
    Silent {
        /// What happened.
        cause: String,
    },
    /// The gateway wants another token, or a certificate.
    #[error(
        "the gateway refuses the token, or needs one; set TAXIMETER_ADMIN_TOKEN to its admin_token, \
         or use --cert and --key"
    )]
    Unauthorised,
    /// The gateway answers with an error.
    #[error("{path} answers {status}: {reason}")]
    Refused {
        /// The path of the request.
        path: &'static str,
        /// The status of the answer.
        status: StatusCode,
        /// The text of the answer.
        reason: String,
    },
    /// The answer is not that of an admin address.
    #[error("{path} does not answer as the admin address of a gateway does: {source}")]
    Unfit {
        /// The path of the request.
        path: &'static str,
        /// Why the answer cannot be read.
        source: serde_json::Error,
    },
}

/// What `top` shows the gateway: a token, or a client certificate.
#[derive(Clone, Copy)]
pub(super) struct Credentials<'a> {
    pub(super) token: Option<&'a str>,
    pub(super) pair: Option<Pair<'a>>,
}

/// A client for one admin address. Clones share its connections.
#[derive(Clone)]
pub(super) struct Client(Arc<Inner>);

struct Inner {
    url: UpstreamUrl,
    headers: HeaderMap,
    dialer: Dialer,
    pool: Pool,
}

impl Client {
    /// A client for `url`. If `ca` is given, it trusts only the certificates in that file.
    ///
    /// Errors: the token or a certificate file cannot be used.
    pub(super) fn new(
        url: UpstreamUrl,
        Credentials { token, pair }: Credentials<'_>,
        ca: Option<&Path>,
    ) -> Result<Self, AdminFault> {
        let dialer = match pair {
            Some(pair) if url.tls => Dialer::certified(ca, pair, HTTP_1, CONNECT_TIMEOUT),
            _ if url.tls => Dialer::trusting(ca, HTTP_1, CONNECT_TIMEOUT),
            _ => Ok(Dialer::new(false, CONNECT_TIMEOUT)),
        };
        let dialer = dialer.map_err(AdminFault::Files)?;
        let header = |text: &str| HeaderValue::from_str(text).map_err(|_| AdminFault::Token);
        let mut headers = HeaderMap::new();
        headers.insert(HOST, header(&url.authority())?);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if let Some(token) = token {
            let mut value = header(&format!("Bearer {token}"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Self(Arc::new(Inner { url, headers, dialer, pool: Pool::new(1, KEEP_ALIVE) })))
    }

    /// Polls the state of the gateway.
    ///
    /// Errors: as [`AdminFault`] says.
    pub(super) async fn poll(&self) -> Result<Sample, AdminFault> {
        let names: Vec<_> = METRICS.iter().map(|name| format!("name%5B%5D={name}")).collect();
        // Metrics come first, so that a request that ends in between is not counted twice.
        let metrics = self.get("/metrics", &names.join("&")).await?;
        let live: Live = self.json("/api/v1/live", &format!("limit={RUNNING_MAX}")).await?;
        let status: Status = self.json("/api/v1/status", "").await?;
        Ok(Sample::of(&String::from_utf8_lossy(&metrics), live, status))
    }

    /// Queries the month's cost so far. The gateway reads its store for it, so call it rarely.
    ///
    /// Errors: as [`AdminFault`] says.
    pub(super) async fn month(&self) -> Result<Month, AdminFault> {
        let usage: Usage = self.json("/api/v1/usage", "by=month").await?;
        let from = usage.period.from;
        // If this machine does not know the time zone, the month of UTC is at most one day off.
        let name = from.in_tz(&usage.period.zone).map_or_else(
            |_| from.strftime("%Y-%m").to_string(),
            |from| from.strftime("%Y-%m").to_string(),
        );
        Ok(Month {
            name,
            billed: usage.total.billed_cost,
            currency: usage.currency,
            more: usage.total.requests.unknown_cost > 0,
        })
    }

    async fn json<T: DeserializeOwned>(
        &self,
        path: &'static str,
        query: &str,
    ) -> Result<T, AdminFault> {
        let answer = self.get(path, query).await?;
        serde_json::from_slice(&answer).map_err(|source| AdminFault::Unfit { path, source })
    }

    /// The body of the answer to a question.
    ///
    /// Errors: as [`AdminFault`] says.
    pub(super) async fn get(&self, path: &'static str, query: &str) -> Result<Bytes, AdminFault> {
        let exchanged = tokio::time::timeout(ANSWER_TIMEOUT, self.exchange(path, query)).await;
        let (status, body) = match exchanged {
            Ok(answer) => {
                answer.map_err(|cause| AdminFault::Silent { cause: cause.to_string() })?
            }
            Err(_) => {
                let cause = format!("no answer within {} s", ANSWER_TIMEOUT.as_secs());
                return Err(AdminFault::Silent { cause });
            }
        };
        match status {
            StatusCode::OK => Ok(body),
            StatusCode::UNAUTHORIZED => Err(AdminFault::Unauthorised),
            _ => Err(AdminFault::Refused { path, status, reason: reason(&body) }),
        }
    }

    async fn exchange(
        &self,
        path: &str,
        query: &str,
    ) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
        let Inner { url, headers, dialer, pool } = &*self.0;
        let mut request = Request::new(RequestBody::default());
        *request.uri_mut() = format!("{}{path}?{query}", url.prefix).parse()?;
        request.headers_mut().clone_from(headers);
        let kept = poll_fn(|cx| Poll::Ready(pool.take(0, clock::now(), cx))).await;
        let mut link = match kept {
            Some(link) => link,
            None => Link::new(dialer.dial(url).await?).await?,
        };
        let head = match link.send(request).await {
            // The gateway closed the idle connection.
            Err(SendFault::NotSent(request)) => {
                link = Link::new(dialer.dial(url).await?).await?;
                link.send(*request).await
            }
            sent => sent,
        };
        let head = head.map_err(|fault| match fault {
            SendFault::NotSent(_) => "the gateway closed the connection".into(),
            SendFault::Broken(fault) => Box::<dyn std::error::Error + Send + Sync>::from(fault),
        })?;
        let (head, body) = head.into_parts();
        let mut body = ExchangeBody(Exchange::new(link, body));
        let text = Limited::new(&mut body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
        if let Some(link) = poll_fn(|cx| Poll::Ready(body.0.take_link(cx))).await {
            pool.put(0, clock::now(), link);
        }
        Ok((head.status, text))
    }
}

/// The members of `/api/v1/usage` that are shown.
#[derive(Deserialize)]
struct Usage {
    period: Period,
    currency: Option<String>,
    total: Total,
}

#[derive(Deserialize)]
struct Period {
    from: Timestamp,
    zone: String,
}

#[derive(Deserialize)]
struct Total {
    requests: RequestCounts,
    billed_cost: Option<Decimal>,
}

#[derive(Deserialize)]
struct RequestCounts {
    unknown_cost: u64,
}

/// The text of an error answer: the `detail` of a problem, or the whole body.
fn reason(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Problem {
        detail: String,
    }
    let text = serde_json::from_slice::<Problem>(body)
        .map_or_else(|_| String::from_utf8_lossy(body).into_owned(), |problem| problem.detail);
    text.chars().take(REASON_CHARS_MAX).collect()
}
