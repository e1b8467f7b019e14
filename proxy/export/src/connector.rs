//! HTTP for object stores, with the same client as for engines.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt as _;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
    HttpResponse, HttpService,
};
use object_store::{ClientOptions, Result};
use taximeter_config::UpstreamUrl;
use taximeter_net::fetch::{FetchFault, fetch};
use taximeter_net::upstream::{Dialer, RequestBody};

/// Time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for one request, a part of a large file included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest answer that is read: what is asked for are receipts, never files.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Makes the client.
#[derive(Debug)]
pub(super) struct Connector;

struct Client {
    dialer: Dialer,
    plain: bool,
}

/// Why a request is not sent.
#[derive(Debug, thiserror::Error)]
enum Unsent {
    #[error("{0} is no address of an object store")]
    Address(http::Uri),
    #[error(
        "{0} would send credentials in plain text; allow it with AWS_ALLOW_HTTP=true (or GOOGLE_, AZURE_)"
    )]
    Plain(http::Uri),
    #[error("no answer within {}s", REQUEST_TIMEOUT.as_secs())]
    Timeout,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        let plain = options.get_config_value(&ClientConfigKey::AllowHttp);
        let plain = plain.is_some_and(|value| value == "true");
        Ok(HttpClient::new(Client { dialer: Dialer::new(true, CONNECT_TIMEOUT), plain }))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("plain", &self.plain).finish_non_exhaustive()
    }
}

/// Written out as the `async_trait` macro writes it.
impl HttpService for Client {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(self.send(request))
    }
}

impl Client {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (mut parts, body) = request.into_parts();
        let unsent = |fault| HttpError::new(HttpErrorKind::Unknown, fault);
        let url = url(&parts.uri).ok_or_else(|| unsent(Unsent::Address(parts.uri.clone())))?;
        if !url.tls && !self.plain {
            return Err(unsent(Unsent::Plain(parts.uri)));
        }
        let mut sent = RequestBody::default();
        sent.push(body.collect().await?.to_bytes());
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        parts.uri = path.parse().map_err(|_| unsent(Unsent::Address(parts.uri.clone())))?;
        let request = Request::from_parts(parts, sent);
        let answer = fetch(&self.dialer, &url, request, ANSWER_BYTES_MAX);
        match tokio::time::timeout(REQUEST_TIMEOUT, answer).await {
            Ok(answer) => answer.map(|answer| answer.map(Into::into)).map_err(fault),
            Err(_) => Err(HttpError::new(HttpErrorKind::Timeout, Unsent::Timeout)),
        }
    }
}

fn url(uri: &http::Uri) -> Option<UpstreamUrl> {
    let tls = match uri.scheme_str()? {
        "https" => true,
        "http" => false,
        _ => return None,
    };
    let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
    let host = uri.host()?.trim_matches(['[', ']']).to_owned();
    Some(UpstreamUrl { tls, host, port, prefix: String::new() })
}

fn fault(fault: FetchFault) -> HttpError {
    let kind = match &fault {
        FetchFault::Dial(_) => HttpErrorKind::Connect,
        FetchFault::Broken => HttpErrorKind::Request,
        FetchFault::Answer(_) => HttpErrorKind::Interrupted,
        FetchFault::Host => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, fault)
}
