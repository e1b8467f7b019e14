//! `/metrics`: all metrics as text or protobuf. The answer is written in pieces, as fast as the
//! scraper reads them, so many series take little memory. A scrape that nobody reads ends.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Version, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use taximeter_gateway::gateway::Gateway;
use taximeter_net::serving::Caller;
use taximeter_telemetry::events::ScrapeShed;
use taximeter_telemetry::{Exposition, ExpositionFormat, Scraper, ScraperId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use super::problem::ApiError;

/// Scrapes at the same time. The admin address answers further ones with 503.
const SCRAPES_AT_ONCE_MAX: usize = 8;
/// By this header a scraper is known.
const SCRAPE_TIMEOUT: &str = "x-prometheus-scrape-timeout-seconds";
/// Longest time for one scrape. The gateway cuts off the part that is still unread then.
const SCRAPE_TIME_MAX: Duration = Duration::from_secs(30);

/// One permit for each scrape that runs.
#[derive(Debug, Clone)]
pub(super) struct ScrapePermits(Arc<Semaphore>);

impl ScrapePermits {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(SCRAPES_AT_ONCE_MAX)))
    }
}

/// The unread part of a scrape, with its permit. `None` once the time is over.
type Unread = Arc<Mutex<Option<(Exposition, OwnedSemaphorePermit)>>>;

/// PeriodParams a scrape when its time is over.
struct Timer(JoinHandle<()>);

impl Timer {
    fn start(unread: Unread) -> Self {
        Self(tokio::spawn(async move {
            tokio::time::sleep(SCRAPE_TIME_MAX).await;
            unread.lock().unwrap_or_else(PoisonError::into_inner).take();
        }))
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Who scrapes, where it is a scraper: Prometheus and those that follow it say how long they wait.
fn scraper(caller: &Caller, request: &Parts) -> Option<Scraper> {
    let timeout = request.headers.get(SCRAPE_TIMEOUT)?.as_bytes();
    let agent = request.headers.get(header::USER_AGENT).map_or(&b""[..], HeaderValue::as_bytes);
    let query = request.uri.query().unwrap_or_default();
    let id = ScraperId::new(caller.address.ip(), timeout, agent, query);
    let one_by_one = request.version < Version::HTTP_2;
    Some(Scraper { id, connection: one_by_one.then(|| caller.address.port()) })
}

/// All metrics for Prometheus
///
/// A scraper sends `x-prometheus-scrape-timeout-seconds`. It gets 0 once for a counter or a
/// histogram that is new to it, and its value with the next scrape. Without that header the answer has
/// every value.
///
/// The `accept` header chooses the format: Prometheus text, or OpenMetrics with exemplars. With
/// `telemetry.native_histograms`, protobuf with native histograms is a third format.
#[utoipa::path(get, path = "/metrics", tag = "status", params(
    ("name[]" = Option<Vec<String>>, Query,
     description = "Only the metrics with these names. The route ignores other parameters"),
), responses(
    (status = 200, description = "The metrics", body = String, content_type = "text/plain"),
    ApiError,
))]
pub(super) async fn scrape(
    permits: ScrapePermits,
    State(gateway): State<Arc<Gateway>>,
    Extension(caller): Extension<Caller>,
    request: Parts,
) -> Response {
    let Ok(permit) = permits.0.try_acquire_owned() else {
        gateway.telemetry.emit(&ScrapeShed);
        return ApiError::Busy(format!("{SCRAPES_AT_ONCE_MAX} scrapes run already"))
            .into_response();
    };
    let accepts =
        request.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let metrics = &gateway.telemetry.metrics;
    let format =
        ExpositionFormat::accepted(&accepts.collect::<Vec<_>>().join(","), metrics.scrapes_native);
    let scraper = scraper(&caller, &request);
    let exposition = metrics.exposition(&gateway.vitals(), format, scraper);
    // A scraper may be configured with parameters that are not ours.
    let given = Query::<Vec<(String, String)>>::try_from_uri(&request.uri)
        .map_or_else(|_| Vec::new(), |query| query.0);
    let names = given.into_iter().filter(|(key, _)| key == "name[]").map(|(_, name)| name);
    let names: Vec<_> = names.collect();
    let exposition = if names.is_empty() { exposition } else { exposition.only(&names) };
    let unread: Unread = Arc::new(Mutex::new(Some((exposition, permit))));
    let timer = Timer::start(unread.clone());
    let pieces = stream::poll_fn(move |_| {
        // The timer lives as long as the scraper reads.
        let _ = &timer;
        let mut unread = unread.lock().unwrap_or_else(PoisonError::into_inner);
        Poll::Ready(match &mut *unread {
            Some((exposition, _)) => exposition.next().map(Ok),
            None => Some(Err(io::Error::from(io::ErrorKind::TimedOut))),
        })
    });
    ([(header::CONTENT_TYPE, format.content_type())], Body::from_stream(pieces)).into_response()
}
