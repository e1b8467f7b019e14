//! `/api/v1/live`: the requests that run now, once or every second.

use std::cmp::Reverse;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::sse::{Event, Sse};
use futures_util::stream::{self, Stream};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taximeter_gateway::gateway::Gateway;
use taximeter_gateway::live::RunningRequest;
use taximeter_system::clock;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use utoipa::{IntoParams, ToSchema};

use super::problem::ApiError;
use super::query::{self, Params};

/// Default number of requests in an answer.
const REQUESTS: u32 = 100;
/// Most requests in an answer.
const REQUESTS_MAX: u32 = 1000;
/// Time between two snapshots.
const SNAPSHOT_PERIOD: Duration = Duration::from_secs(1);
/// Longest time that a client may read nothing. Its stream ends then.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The query parameters.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct LiveParams {
    /// Only requests of this tenant
    pub(super) tenant: Option<String>,
    /// Most requests in the answer, from 1 to 1000. Default: 100
    pub(super) limit: Option<String>,
}

/// The requests that run now.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LiveAnswer {
    /// The time of the snapshot.
    pub(super) at: Timestamp,
    /// The number of all running requests of all tenants.
    pub(super) open: usize,
    /// Running requests. The one that runs longest comes first.
    pub(super) requests: Vec<LiveRequest>,
}

/// A running request. Times are seconds from its start.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LiveRequest {
    /// The id of the request. Its record has the same id.
    pub(super) id: String,
    /// The client's `x-request-id`, or the one that the gateway made.
    pub(super) request_id: String,
    /// The tenant that pays.
    pub(super) tenant: String,
    /// The `model` in the request.
    pub(super) request_model: Option<String>,
    /// The name of the upstream.
    pub(super) upstream: String,
    /// The route, such as `/v1/chat/completions`.
    pub(super) route: String,
    /// Whether the request asks for a stream.
    pub(super) stream: bool,
    /// The start of the request.
    pub(super) started_at: Timestamp,
    /// Time since the start.
    pub(super) duration: f64,
    /// `reserved`, `sent` to the engine, `answered` (the answer has begun), `generating`, or
    /// `settling`.
    pub(super) stage: &'static str,
    /// Time to the first token. Null before it.
    pub(super) time_to_first_token: Option<f64>,
    /// Time to the latest token. Null before the first one.
    pub(super) time_to_latest_token: Option<f64>,
    /// The longest gap between two tokens. Null before the second one.
    pub(super) longest_stall: Option<f64>,
    /// Events with generated content.
    pub(super) output_chunks: u64,
    /// Input tokens of a stream. At most one second old; null before they are known.
    pub(super) input_tokens: Option<u64>,
    /// Output tokens of a stream. At most one second old; null before they are known.
    pub(super) output_tokens: Option<u64>,
}

/// Which requests a snapshot has.
#[derive(Debug)]
struct LiveQuery {
    tenant: Option<String>,
    limit: usize,
}

/// The requests that run now
#[utoipa::path(get, path = "/api/v1/live", tag = "live", params(LiveParams), responses(
    (status = 200, description = "A snapshot", body = LiveAnswer),
    ApiError,
))]
pub(super) async fn live(
    State(gateway): State<Arc<Gateway>>,
    Params(asked): Params<LiveParams>,
) -> Result<Json<LiveAnswer>, ApiError> {
    Ok(Json(asked.query()?.snapshot(&gateway)))
}

/// The requests that run, every second, as server-sent events
///
/// Each event has the name `live`. Its data is one snapshot in JSON.
#[utoipa::path(get, path = "/api/v1/live/events", tag = "live", params(LiveParams), responses(
    (status = 200, description = "Snapshots", body = String, content_type = "text/event-stream"),
    ApiError,
))]
pub(super) async fn events(
    State(gateway): State<Arc<Gateway>>,
    Params(asked): Params<LiveParams>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let query = asked.query()?;
    let permits = &gateway.admin.listeners;
    let permit = permits
        .take()
        .ok_or_else(|| ApiError::Busy(format!("{} event streams run already", permits.most)))?;
    let (sender, mut receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut ticks = interval(SNAPSHOT_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The stream ends when the client leaves, when it reads nothing, and when the gateway stops.
        while !gateway.is_draining() {
            ticks.tick().await;
            let snapshot = query.snapshot(&gateway);
            let Ok(event) = Event::default().event("live").json_data(snapshot) else { break };
            if sender.send_timeout(Ok(event), STALL_TIMEOUT).await.is_err() {
                break;
            }
        }
        drop(permit);
    });
    Ok(Sse::new(stream::poll_fn(move |cx| receiver.poll_recv(cx))))
}

impl LiveParams {
    fn query(self) -> Result<LiveQuery, ApiError> {
        let limit = query::number("limit", self.limit.as_deref(), REQUESTS_MAX)?;
        Ok(LiveQuery { tenant: self.tenant, limit: limit.unwrap_or(REQUESTS) as usize })
    }
}

impl LiveQuery {
    fn snapshot(&self, gateway: &Gateway) -> LiveAnswer {
        let mut running = gateway.live.requests();
        let open = running.len();
        if let Some(tenant) = &self.tenant {
            running.retain(|request| request.info.tenant.as_str() == tenant);
        }
        let now = clock::now();
        taximeter_collections::sort_by_key(&mut running, |request| {
            Reverse(now.saturating_duration_since(request.info.started))
        });
        running.truncate(self.limit);
        let requests = running.iter().map(|request| row(request)).collect();
        LiveAnswer { at: clock::wall(), open, requests }
    }
}

fn row(request: &RunningRequest) -> LiveRequest {
    let (info, seen) = (&request.info, request.seen());
    let duration = clock::now().saturating_duration_since(info.started);
    LiveRequest {
        id: info.id.to_string(),
        request_id: info.request_id.to_string(),
        tenant: info.tenant.to_string(),
        request_model: info.request_model.clone(),
        upstream: info.upstream.to_string(),
        route: info.route.to_owned(),
        stream: info.stream,
        started_at: info.started_at,
        duration: duration.as_secs_f64(),
        stage: seen.stage.as_str(),
        time_to_first_token: seen.time_to_first_token.map(|time| time.as_secs_f64()),
        time_to_latest_token: seen.time_to_latest_token.map(|time| time.as_secs_f64()),
        longest_stall: seen.longest_stall.map(|time| time.as_secs_f64()),
        output_chunks: seen.output_chunks,
        input_tokens: seen.input_tokens,
        output_tokens: seen.output_tokens,
    }
}
