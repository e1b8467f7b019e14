//! A collector of OTLP: what it is sent, decoded by OpenTelemetry's own messages. Over gRPC it is a
//! server of its own; over HTTP a scripted engine will do.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use flate2::read::GzDecoder;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric, number_data_point};
use prost::Message as _;
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::patience::PATIENCE;

/// What a collector was sent at once.
pub(crate) struct Pushed {
    pub(crate) resource: BTreeMap<String, String>,
    pub(crate) metrics: Vec<Metric>,
}

/// A body as it was before it was compressed.
pub(crate) fn unpacked(body: &[u8], gzip: bool) -> Vec<u8> {
    if !gzip {
        return body.to_vec();
    }
    let mut message = Vec::new();
    GzDecoder::new(body).read_to_end(&mut message).expect("gzip");
    message
}

impl Pushed {
    /// Of a request's body, as it came.
    pub(crate) fn of(body: &[u8], gzip: bool) -> Self {
        let request = ExportMetricsServiceRequest::decode(&*unpacked(body, gzip)).expect("OTLP");
        let mut resources = request.resource_metrics.into_iter();
        let resource = resources.next().expect("a resource");
        assert!(resources.next().is_none(), "one resource");
        let [scope] = &resource.scope_metrics[..] else { panic!("one scope") };
        assert_eq!(scope.scope.as_ref().expect("a scope").name, "taximeter");
        Self {
            resource: attributes(&resource.resource.expect("attributes").attributes),
            metrics: scope.metrics.clone(),
        }
    }

    /// The metric of this name.
    pub(crate) fn metric(&self, name: &str) -> Option<&Metric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }

    /// The whole of a counter, over all its series.
    pub(crate) fn count(&self, name: &str) -> Option<i64> {
        let Some(metric::Data::Sum(sum)) = &self.metric(name)?.data else { return None };
        let values = sum.data_points.iter().map(|point| match point.value {
            Some(number_data_point::Value::AsInt(value)) => value,
            _ => 0,
        });
        Some(values.sum())
    }

    /// The samples of a histogram, over all its series.
    pub(crate) fn samples(&self, name: &str) -> Option<u64> {
        let Some(metric::Data::Histogram(histogram)) = &self.metric(name)?.data else {
            return None;
        };
        Some(histogram.data_points.iter().map(|point| point.count).sum())
    }
}

/// Attributes by their keys; all values as text.
pub(crate) fn attributes(pairs: &[KeyValue]) -> BTreeMap<String, String> {
    let value = |pair: &KeyValue| pair.value.as_ref().and_then(text).expect("a value");
    pairs.iter().map(|pair| (pair.key.clone(), value(pair))).collect()
}

fn text(value: &AnyValue) -> Option<String> {
    match value.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(text.clone()),
        any_value::Value::IntValue(number) => Some(number.to_string()),
        any_value::Value::DoubleValue(number) => Some(number.to_string()),
        any_value::Value::BoolValue(is) => Some(is.to_string()),
        any_value::Value::ArrayValue(array) => {
            Some(array.values.iter().map(text).collect::<Option<Vec<_>>>()?.join(","))
        }
        _ => None,
    }
}

/// What a call looked like.
pub(crate) struct Call {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) message: Vec<u8>,
}

impl Call {
    /// The metrics in it.
    pub(crate) fn pushed(&self) -> Pushed {
        Pushed::of(&self.message, false)
    }
}

/// A gRPC server that answers each call as it was told to, or well.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    calls: Receiver<Call>,
    answers: Sender<HeaderMap>,
    /// The certificate to trust.
    pub(crate) certificate: PathBuf,
    _folder: TempDir,
    _runtime: tokio::runtime::Runtime,
}

impl Collector {
    /// On loopback, with a certificate for `localhost` where `tls` is on.
    pub(crate) fn start(tls: bool) -> Self {
        Self::start_with(tls.then_some(false))
    }

    /// One with a certificate, for those alone who show the same, whose key lies beside it.
    pub(crate) fn start_for_the_certified() -> Self {
        Self::start_with(Some(true))
    }

    /// With a certificate where `tls` says whether clients must show one.
    fn start_with(tls: Option<bool>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let certificate = folder.path().join("ca.pem");
        let acceptor = tls.map(|asks| acceptor(&certificate, asks));
        let (to_test, calls) = channel();
        let (answers, told) = channel();
        let told = Arc::new(Mutex::new(told));
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("its address");
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, acceptor.clone(), to_test.clone(), told.clone()));
            }
        });
        Self { address, calls, answers, certificate, _folder: folder, _runtime: runtime }
    }

    /// The key of its certificate.
    pub(crate) fn key(&self) -> PathBuf {
        self.certificate.with_extension("key")
    }

    /// The next call.
    pub(crate) fn call(&self) -> Call {
        self.calls.recv_timeout(PATIENCE).expect("nothing was pushed in time")
    }

    /// What the next call that has no answer yet is told at its end.
    pub(crate) fn answer(&self, trailers: &[(&'static str, &str)]) {
        let pair = |(name, value): &(&'static str, &str)| {
            (name.parse().expect("a name"), HeaderValue::from_str(value).expect("a value"))
        };
        self.answers.send(trailers.iter().map(pair).collect()).expect("the collector runs");
    }
}

fn acceptor(certificate: &Path, asks: bool) -> TlsAcceptor {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()])
        .expect("a certificate for localhost");
    std::fs::write(certificate, signed.cert.pem()).expect("write the certificate");
    let key = certificate.with_extension("key");
    std::fs::write(key, signed.signing_key.serialize_pem()).expect("write the key");
    let key = PrivateKeyDer::Pkcs8(signed.signing_key.serialize_der().into());
    let mut roots = RootCertStore::empty();
    roots.add(signed.cert.der().clone()).expect("a certificate to trust");
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().expect("a verifier");
    let verifier = if asks { verifier } else { WebPkiClientVerifier::no_client_auth() };
    let mut config = rustls::ServerConfig::builder()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![signed.cert.der().clone()], key)
        .expect("a matching key");
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(
    socket: TcpStream,
    acceptor: Option<TlsAcceptor>,
    calls: Sender<Call>,
    told: Arc<Mutex<Receiver<HeaderMap>>>,
) {
    let service = service_fn(move |request| {
        let (calls, told) = (calls.clone(), told.clone());
        async move { Ok::<_, Infallible>(answered(request, &calls, &told).await) }
    });
    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    // A gateway that goes away ends it.
    let _ = match acceptor {
        Some(acceptor) => {
            let Ok(socket) = acceptor.accept(socket).await else { return };
            server.serve_connection(TokioIo::new(socket), service).await
        }
        None => server.serve_connection(TokioIo::new(socket), service).await,
    };
}

async fn answered(
    request: Request<Incoming>,
    calls: &Sender<Call>,
    told: &Mutex<Receiver<HeaderMap>>,
) -> Response<http_body_util::combinators::BoxBody<Bytes, Infallible>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    let (prefix, message) = body.split_at(5);
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    assert_eq!(message.len(), length as usize, "one message");
    let message = unpacked(message, prefix[0] == 1);
    let (path, headers) = (head.uri.path().to_owned(), head.headers);
    let _ = calls.send(Call { path, headers, message });
    let trailers = told.lock().expect("no panic").try_recv();
    let answer = Response::builder().header("content-type", "application/grpc");
    if let Ok(trailers) = trailers {
        // Without a message, gRPC's status may stand in the head.
        let mut answer = answer.body(Full::new(Bytes::new()).boxed()).expect("an answer");
        answer.headers_mut().extend(trailers);
        return answer;
    }
    let message = ExportMetricsServiceResponse::default().encode_to_vec();
    let mut framed = BytesMut::from(&[0][..]);
    framed.extend(u32::try_from(message.len()).expect("short").to_be_bytes());
    framed.extend(message);
    let ends = HeaderMap::from_iter([(
        "grpc-status".parse().expect("a name"),
        "0".parse().expect("a value"),
    )]);
    let frames = [Frame::data(framed.freeze()), Frame::trailers(ends)].map(Ok::<_, Infallible>);
    let body = StreamBody::new(futures_util::stream::iter(frames));
    answer.body(body.boxed()).expect("an answer")
}
