//! Connects to the collector and sends batches to it.

use std::io::{self, Write as _};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use taximeter_config::{ClientCertificate, Exporter, OtlpProtocol, UpstreamUrl};
use taximeter_net::fetch::fetch;
use taximeter_net::grpc::{self, Reply};
use taximeter_net::upstream::{Dialer, HTTP_1, HTTP_2, Pair, RequestBody};
use tokio::time::timeout;

use super::answer::{Answer, of_grpc, of_http};
use super::fault::SendFault;
use super::signal::Signal;

/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// What we are called in requests.
const AGENT: &str = concat!("taximeter/", env!("CARGO_PKG_VERSION"));

/// Where one signal goes.
pub(super) struct Collector {
    url: UpstreamUrl,
    protocol: OtlpProtocol,
    signal: Signal,
    headers: HeaderMap,
    gzip: bool,
    timeout: Duration,
    dialer: Dialer,
}

impl Collector {
    /// Errors: the certificates to trust or to show cannot be read.
    pub(super) fn new(exporter: &Exporter, signal: Signal) -> io::Result<Self> {
        let Exporter { url, protocol, headers, gzip, timeout, ca, client } = exporter;
        let dialer = if url.tls {
            let spoken = if *protocol == OtlpProtocol::Grpc { HTTP_2 } else { HTTP_1 };
            match client {
                Some(ClientCertificate { cert, key }) => {
                    let pair = Pair { certificate: cert, key };
                    Dialer::certified(ca.as_deref(), pair, spoken, *timeout)?
                }
                None => Dialer::trusting(ca.as_deref(), spoken, *timeout)?,
            }
        } else {
            Dialer::new(false, *timeout)
        };
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            if let (Ok(name), Ok(mut value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value.expose()))
            {
                value.set_sensitive(true);
                sent.insert(name, value);
            }
        }
        sent.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
        Ok(Self {
            url: url.clone(),
            protocol: *protocol,
            signal,
            headers: sent,
            gzip: *gzip,
            timeout: *timeout,
            dialer,
        })
    }

    /// A message as it is sent.
    ///
    /// Errors: it cannot be compressed.
    pub(super) fn packed(&self, message: &Bytes) -> io::Result<Bytes> {
        if self.gzip { gzip(message).map(Bytes::from) } else { Ok(message.clone()) }
    }

    /// Sends a packed message once.
    pub(super) async fn send(&self, packed: &Bytes) -> Answer {
        let sent = async {
            match self.protocol {
                OtlpProtocol::HttpProtobuf => self.by_http(packed).await,
                OtlpProtocol::Grpc => self.by_grpc(packed).await,
            }
        };
        match timeout(self.timeout, sent).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(fault)) => Answer::none(fault.to_string()),
            Err(_) => Answer::none(format!("no answer within {}s", self.timeout.as_secs_f64())),
        }
    }

    async fn by_http(&self, packed: &Bytes) -> Result<Answer, SendFault> {
        let mut body = RequestBody::default();
        body.push(packed.clone());
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.prefix.parse()?;
        let headers = request.headers_mut();
        headers.clone_from(&self.headers);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        if self.gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let answer = fetch(&self.dialer, &self.url, request, ANSWER_BYTES_MAX).await?;
        Ok(of_http(answer.status(), answer.headers(), answer.body()))
    }

    async fn by_grpc(&self, packed: &Bytes) -> Result<Answer, SendFault> {
        let scheme = if self.url.tls { "https" } else { "http" };
        let uri = format!("{scheme}://{}{}", self.url.authority(), self.signal.method);
        // A message is preceded by whether it is compressed and by its length.
        let mut framed = BytesMut::with_capacity(packed.len() + 5);
        framed.put_u8(u8::from(self.gzip));
        framed.put_u32(packed.len().try_into()?);
        framed.put_slice(packed);
        let mut request = Request::post(uri).body(framed.freeze())?;
        let headers = request.headers_mut();
        headers.clone_from(&self.headers);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert("te", HeaderValue::from_static("trailers"));
        let millis = self.timeout.as_millis().min(99_999_999);
        headers.insert("grpc-timeout", HeaderValue::try_from(format!("{millis}m"))?);
        if self.gzip {
            headers.insert("grpc-encoding", HeaderValue::from_static("gzip"));
        }
        let socket = self.dialer.dial(&self.url).await?;
        let Reply { status, ends, body } = grpc::call(socket, request, ANSWER_BYTES_MAX).await?;
        Ok(of_grpc(status, &ends, &body))
    }
}

fn gzip(message: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(message)?;
    encoder.finish()
}
