//! Asks a gateway's admin address, on connections that are kept.

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

use super::picture::Month;
use super::sample::{Live, METRICS, Sample, Status};

/// Time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for one answer: the gateway itself gives one up after ten seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(12);
/// How long a connection is kept between two questions.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// Longest answer that is read, in bytes: a hundred thousand series.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Running requests that are asked for: as many as the gateway tells.
const RUNNING_MAX: usize = 1000;
/// What is kept of an answer that refuses, in characters.
const REASON_CHARS_MAX: usize = 200;
/// What we are called in requests.
const AGENT: &str = concat!("taximeter-top/", env!("CARGO_PKG_VERSION"));

/// Why there is no answer; the text says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminFault {
    /// The files of certificates that were named.
    #[error("cannot use {0}")]
    Files(io::Error),
    /// A token that cannot stand in a header.
    #[error("the token has characters that no token has")]
    Token,
    /// No connection, or none that lasted.
    #[error("{cause}")]
    Silent {
        /// What happened.
        cause: String,
    },
    /// It wants a token, or another one.
    #[error(
        "it asks for its admin_token, or not for this one: set TAXIMETER_ADMIN_TOKEN, or give --token, \
         or --cert and --key where it knows their authority"
    )]
    Unauthorised,
    /// It answers, but not this.
    #[error("{path} answers {status}: {reason}")]
    Refused {
        /// What was asked.
        path: &'static str,
        /// Of the answer.
        status: StatusCode,
        /// What it said.
        reason: String,
    },
    /// It answers something else.
    #[error("{path} answers something else than a gateway's admin address: {source}")]
    Unfit {
        /// What was asked.
        path: &'static str,
        /// Why it cannot be read.
        source: serde_json::Error,
    },
}

/// What says that we may ask.
#[derive(Clone, Copy)]
pub(super) struct Proof<'a> {
    pub(super) token: Option<&'a str>,
    pub(super) pair: Option<Pair<'a>>,
}

/// A gateway's admin address; copies share its connections.
#[derive(Clone)]
pub(super) struct Client(Arc<Inner>);

struct Inner {
    url: UpstreamUrl,
    headers: HeaderMap,
    dialer: Dialer,
    pool: Pool,
}

impl Client {
    /// For `url`, where `proof` is shown, trusting only what is in `ca` where that is given.
    ///
    /// Errors: the proof or the file does not do.
    pub(super) fn new(
        url: UpstreamUrl,
        Proof { token, pair }: Proof<'_>,
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

    /// How the gateway does now.
    ///
    /// Errors: as [`AdminFault`] says.
    pub(super) async fn look(&self) -> Result<Sample, AdminFault> {
        let names: Vec<_> = METRICS.iter().map(|name| format!("name%5B%5D={name}")).collect();
        // Before what is running: of a request that ends in between nothing is counted twice.
        let metrics = self.get("/metrics", &names.join("&")).await?;
        let live: Live = self.json("/api/v1/live", &format!("limit={RUNNING_MAX}")).await?;
        let status: Status = self.json("/api/v1/status", "").await?;
        Ok(Sample::of(&String::from_utf8_lossy(&metrics), live, status))
    }

    /// What is owed for this month so far. Asks the gateway's store, so nothing for every second.
    ///
    /// Errors: as [`AdminFault`] says.
    pub(super) async fn month(&self) -> Result<Month, AdminFault> {
        let usage: Usage = self.json("/api/v1/usage", "by=month").await?;
        let from = usage.period.from;
        // An unknown zone is the gateway's to name; its month is at most a day off.
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

    async fn get(&self, path: &'static str, query: &str) -> Result<Bytes, AdminFault> {
        let exchanged = tokio::time::timeout(ANSWER_TIMEOUT, self.exchange(path, query)).await;
        let (status, body) = match exchanged {
            Ok(answer) => {
                answer.map_err(|cause| AdminFault::Silent { cause: cause.to_string() })?
            }
            Err(_) => {
                let cause = format!("nothing within {}s", ANSWER_TIMEOUT.as_secs());
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
            // The other side had closed it meanwhile.
            Err(SendFault::NotSent(request)) => {
                link = Link::new(dialer.dial(url).await?).await?;
                link.send(*request).await
            }
            sent => sent,
        };
        let head = head.map_err(|fault| match fault {
            SendFault::NotSent(_) => "the connection was closed at once".into(),
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

/// What `/api/v1/usage` answers, as far as it is shown.
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
    requests: Requests,
    billed_cost: Option<Decimal>,
}

#[derive(Deserialize)]
struct Requests {
    unknown_cost: u64,
}

/// What an answer that refuses says: a problem's `detail`, or its text.
fn reason(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Problem {
        detail: String,
    }
    let text = serde_json::from_slice::<Problem>(body)
        .map_or_else(|_| String::from_utf8_lossy(body).into_owned(), |problem| problem.detail);
    text.chars().take(REASON_CHARS_MAX).collect()
}
