//! The requests that are running. The thread that carries a request writes its row without a lock.
//! Readers copy the rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use dashmap::DashMap;
use jiff::Timestamp;
use taximeter_ledger::{RequestId, TenantId};

/// In place of a number that is not known yet.
const UNKNOWN: u64 = u64::MAX;

/// The requests that are running now, by id.
#[derive(Debug, Default)]
pub struct Live {
    requests: Arc<DashMap<RequestId, Arc<RunningRequest>>>,
}

/// What is known of a request from its reservation on.
#[derive(Debug)]
pub struct RequestInfo {
    /// The id.
    pub id: RequestId,
    /// The client's `x-request-id`, or ours in its place.
    pub request_id: Arc<str>,
    /// The tenant.
    pub tenant: TenantId,
    /// The model that the client asked for.
    pub request_model: Option<String>,
    /// The upstream's name.
    pub upstream: Arc<str>,
    /// Route template.
    pub route: &'static str,
    /// Whether the client asked for a stream.
    pub stream: bool,
    /// When it came, by the monotonic clock.
    pub started: Instant,
    /// When it came, by the wall clock.
    pub started_at: Timestamp,
}

/// One request that is running.
#[derive(Debug)]
pub struct RunningRequest {
    /// What is known of the request since it was admitted.
    pub info: RequestInfo,
    stage: AtomicU8,
    /// Microseconds from the start to the first generated content.
    first_token: AtomicU64,
    /// Microseconds from the start to the latest.
    latest_token: AtomicU64,
    /// Microseconds between two of them that came one after the other, at most.
    longest_stall: AtomicU64,
    chunks: AtomicU64,
    input_tokens: AtomicU64,
    output_tokens: AtomicU64,
}

/// How far a request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Reserved; nothing is sent yet.
    Reserved,
    /// The engine has it, and has not answered.
    Sent,
    /// The engine's head has come.
    Answered,
    /// Generated content has come.
    Generating,
    /// Its last bytes have come; what it owes is being found.
    Settling,
}

/// A row of `Live`, gone with this.
#[derive(Debug)]
pub(crate) struct LiveHandle {
    requests: Arc<DashMap<RequestId, Arc<RunningRequest>>>,
    request: Arc<RunningRequest>,
    /// Those that run at its upstream.
    running: Arc<AtomicUsize>,
}

/// What a running request looks like now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The stage it has reached.
    pub stage: Stage,
    /// From the start.
    pub time_to_first_token: Option<Duration>,
    /// From the start to the latest generated content.
    pub time_to_latest_token: Option<Duration>,
    /// The longest between two reads with generated content; `None` before the second.
    pub longest_stall: Option<Duration>,
    /// Events with generated content.
    pub output_chunks: u64,
    /// As the ledger was last told, at most a second ago; streams only.
    pub input_tokens: Option<u64>,
    /// Output tokens so far; `None` where nobody knows.
    pub output_tokens: Option<u64>,
}

impl Stage {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Sent => "sent",
            Self::Answered => "answered",
            Self::Generating => "generating",
            Self::Settling => "settling",
        }
    }
}

impl Live {
    /// A request begins, and is one of those that are `running` at its upstream.
    pub(crate) fn begin(&self, info: RequestInfo, running: Arc<AtomicUsize>) -> LiveHandle {
        running.fetch_add(1, Relaxed);
        let id = info.id;
        let request = Arc::new(RunningRequest {
            info,
            stage: AtomicU8::new(Stage::Reserved as u8),
            first_token: AtomicU64::new(UNKNOWN),
            latest_token: AtomicU64::new(UNKNOWN),
            longest_stall: AtomicU64::new(UNKNOWN),
            chunks: AtomicU64::new(0),
            input_tokens: AtomicU64::new(UNKNOWN),
            output_tokens: AtomicU64::new(UNKNOWN),
        });
        self.requests.insert(id, request.clone());
        LiveHandle { requests: self.requests.clone(), request, running }
    }

    /// All that are running, in no order.
    pub fn requests(&self) -> Vec<Arc<RunningRequest>> {
        self.requests.iter().map(|request| request.value().clone()).collect()
    }

    /// How long the oldest one has run. Zero without one.
    pub fn oldest_age(&self, now: Instant) -> Duration {
        let began = self.requests.iter().map(|request| request.value().info.started).min();
        began.map_or(Duration::ZERO, |began| now.saturating_duration_since(began))
    }
}

impl LiveHandle {
    /// It has come so far.
    pub(crate) fn reached(&self, stage: Stage) {
        self.request.stage.store(stage as u8, Relaxed);
    }

    /// So many events with generated content have come, the last of them `now`. Whether they are the
    /// first.
    pub(crate) fn generated(&self, now: Instant, chunks: u64) -> bool {
        let request = &*self.request;
        // One thread writes: what is read here is what it wrote.
        let before = request.chunks.load(Relaxed);
        if before == chunks {
            return false;
        }
        let elapsed = now.saturating_duration_since(request.info.started);
        let micros = elapsed.as_secs() * 1_000_000 + u64::from(elapsed.subsec_micros());
        if before == 0 {
            request.first_token.store(micros, Relaxed);
            self.reached(Stage::Generating);
        } else {
            let stall = micros.saturating_sub(request.latest_token.load(Relaxed));
            let longest = request.longest_stall.load(Relaxed);
            if longest == UNKNOWN || stall > longest {
                request.longest_stall.store(stall, Relaxed);
            }
        }
        request.latest_token.store(micros, Relaxed);
        request.chunks.store(chunks, Relaxed);
        before == 0
    }

    /// It has used so much.
    pub(crate) fn used(&self, input_tokens: Option<u64>, output_tokens: Option<u64>) {
        self.request.input_tokens.store(input_tokens.unwrap_or(UNKNOWN), Relaxed);
        self.request.output_tokens.store(output_tokens.unwrap_or(UNKNOWN), Relaxed);
    }
}

impl Drop for LiveHandle {
    fn drop(&mut self) {
        self.requests.remove(&self.request.info.id);
        self.running.fetch_sub(1, Relaxed);
    }
}

impl RunningRequest {
    /// How it looks now.
    pub fn seen(&self) -> Seen {
        let known = |number: &AtomicU64| Some(number.load(Relaxed)).filter(|n| *n != UNKNOWN);
        let stages = [Stage::Reserved, Stage::Sent, Stage::Answered, Stage::Generating];
        let stage = stages.get(usize::from(self.stage.load(Relaxed)));
        Seen {
            stage: stage.copied().unwrap_or(Stage::Settling),
            time_to_first_token: known(&self.first_token).map(Duration::from_micros),
            time_to_latest_token: known(&self.latest_token).map(Duration::from_micros),
            longest_stall: known(&self.longest_stall).map(Duration::from_micros),
            output_chunks: self.chunks.load(Relaxed),
            input_tokens: known(&self.input_tokens),
            output_tokens: known(&self.output_tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use taximeter_system::clock;

    #[test]
    fn a_request_is_seen_from_its_reservation_to_its_end() {
        let (live, started) = (Live::default(), clock::now());
        let running = Arc::<AtomicUsize>::default();
        let info = RequestInfo {
            id: RequestId(Uuid::from_u128(1)),
            request_id: "r".into(),
            tenant: TenantId("acme".into()),
            request_model: Some("m".to_owned()),
            upstream: "e".into(),
            route: "/v1/chat/completions",
            stream: true,
            started,
            started_at: clock::wall(),
        };
        let handle = live.begin(info, running.clone());
        assert_eq!(running.load(Relaxed), 1);
        let seen = || live.requests().first().map(|request| request.seen());
        let stage = || seen().map(|seen| seen.stage);
        assert_eq!(stage(), Some(Stage::Reserved));
        handle.reached(Stage::Sent);
        assert_eq!(stage(), Some(Stage::Sent));
        handle.reached(Stage::Answered);
        assert!(!handle.generated(started + Duration::from_millis(1), 0));
        assert_eq!(stage(), Some(Stage::Answered));
        for (millis, chunks) in [(5, 1), (9, 3), (10, 3), (12, 4)] {
            let is_first = handle.generated(started + Duration::from_millis(millis), chunks);
            assert_eq!(is_first, millis == 5);
        }
        handle.used(Some(12), None);
        let expected = Seen {
            stage: Stage::Generating,
            time_to_first_token: Some(Duration::from_millis(5)),
            time_to_latest_token: Some(Duration::from_millis(12)),
            longest_stall: Some(Duration::from_millis(4)),
            output_chunks: 4,
            input_tokens: Some(12),
            output_tokens: None,
        };
        assert_eq!(seen(), Some(expected));
        assert_eq!(live.oldest_age(started + Duration::from_secs(7)), Duration::from_secs(7));
        handle.reached(Stage::Settling);
        assert_eq!(stage(), Some(Stage::Settling));
        drop(handle);
        assert_eq!((seen(), running.load(Relaxed)), (None, 0));
        assert_eq!(live.oldest_age(started + Duration::from_secs(7)), Duration::ZERO);
    }
}
