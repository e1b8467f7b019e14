//! `/metrics`: written piece by piece, as fast as it is read, so that a scrape of many series costs
//! no memory and one that is not read ends.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use taximeter_gateway::gateway::Gateway;
use taximeter_telemetry::events::ScrapeShed;
use taximeter_telemetry::{Exposition, ExpositionFormat};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use super::problem::Refused;

/// Scrapes at once; more are answered 503.
const SCRAPES_AT_ONCE_MAX: usize = 8;
/// Time for one scrape; what has not been read by then is cut off.
const SCRAPE_TIME_MAX: Duration = Duration::from_secs(30);

/// A place for each scrape.
#[derive(Debug, Clone)]
pub(super) struct Places(Arc<Semaphore>);

impl Places {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(SCRAPES_AT_ONCE_MAX)))
    }
}

/// What is left of a scrape, and its place; `None` once its time is over.
type Rest = Arc<Mutex<Option<(Exposition, OwnedSemaphorePermit)>>>;

/// Ends a scrape when its time is over, unless that has ended before.
struct Timer(JoinHandle<()>);

impl Timer {
    fn start(rest: Rest) -> Self {
        Self(tokio::spawn(async move {
            tokio::time::sleep(SCRAPE_TIME_MAX).await;
            rest.lock().unwrap_or_else(PoisonError::into_inner).take();
        }))
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// All metrics, as Prometheus reads them
///
/// As text, as OpenMetrics with exemplars, or with `telemetry.native_histograms` as protobuf with
/// native histograms, by what the scraper accepts.
#[utoipa::path(get, path = "/metrics", tag = "status", params(
    ("name[]" = Option<Vec<String>>, Query,
     description = "Only metrics of these names; other parameters are ignored"),
), responses(
    (status = 200, description = "The exposition", body = String, content_type = "text/plain"),
    Refused,
))]
pub(super) async fn scrape(
    places: Places,
    State(gateway): State<Arc<Gateway>>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let Ok(place) = places.0.try_acquire_owned() else {
        gateway.telemetry.emit(&ScrapeShed);
        return Refused::Busy(format!("{SCRAPES_AT_ONCE_MAX} scrapes are being answered"))
            .into_response();
    };
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let metrics = &gateway.telemetry.metrics;
    let format =
        ExpositionFormat::accepted(&accepts.collect::<Vec<_>>().join(","), metrics.scrapes_native);
    let exposition = metrics.exposition(&gateway.vitals(), format);
    // Scrapers may be configured with parameters that mean nothing here.
    let given = Query::<Vec<(String, String)>>::try_from_uri(&uri)
        .map_or_else(|_| Vec::new(), |query| query.0);
    let names = given.into_iter().filter(|(key, _)| key == "name[]").map(|(_, name)| name);
    let names: Vec<_> = names.collect();
    let exposition = if names.is_empty() { exposition } else { exposition.only(&names) };
    let rest: Rest = Arc::new(Mutex::new(Some((exposition, place))));
    let timer = Timer::start(rest.clone());
    let pieces = stream::poll_fn(move |_| {
        // It lives as long as the scrape is read.
        let _ = &timer;
        let mut rest = rest.lock().unwrap_or_else(PoisonError::into_inner);
        Poll::Ready(match &mut *rest {
            Some((exposition, _)) => exposition.next().map(Ok),
            None => Some(Err(io::Error::from(io::ErrorKind::TimedOut))),
        })
    });
    ([(header::CONTENT_TYPE, format.content_type())], Body::from_stream(pieces)).into_response()
}
