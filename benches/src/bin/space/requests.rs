//! Requests as clients and engines make them.

use std::time::Duration;

use anyhow::{Result, anyhow};
use jiff::{SignedDuration, Timestamp};
use taximeter_ledger::{
    Dimensions, Record, RecordCost, RequestId, SessionSource, Stages, TenantId,
};
use uuid::Builder;

/// Between two requests.
const INTERVAL: SignedDuration = SignedDuration::from_micros(500);
/// As many as `benches/taximeter.yaml` has.
const TENANTS: [&str; 4] = ["acme", "blue", "city", "dock"];
/// Sessions that run at the same time, requests of each of them, and requests of a turn.
const SESSIONS: usize = 400;
const OF_SESSION: usize = 20;
const OF_TURN: usize = 5;
/// Letters and digits of a response id, behind its prefix.
const RESPONSE_ID_LENGTH: usize = 29;

/// What the bench's engine answers: `benches/run` asks for a model without a price.
const RECORD: &str = r#"{
    "id": "0193e9a0-0000-7000-8000-000000000000", "request_id": "", "attempt": 1,
    "gateway": "bench/0", "started_at": "2026-11-01T00:00:00Z", "ended_at": "2026-11-01T00:00:00Z",
    "tenant": "acme", "key_id": "acme", "identity": "api_key", "operation": "chat",
    "route": "/v1/chat/completions", "stream": false, "upstream": "engine", "provider": "vllm",
    "request_model": "bench-model", "response_model": "bench-model",
    "response_id": "chatcmpl-7b0cf4e1a2d94c55b1f6a3c8d0e94712", "status": 200, "end": "complete",
    "finish_reasons": ["stop"],
    "usage": {
        "source": "reported", "sources": {"input_tokens": "reported", "output_tokens": "reported"},
        "input_tokens": 42, "output_tokens": 6
    },
    "timing": {"output_chunks": 0, "duration": 0.0, "gateway": 0.0},
    "cost_unknown": [{"reason": "no_price", "of": "bench-model"}]
}"#;

const COST: &str = r#"{
    "currency": "USD", "amount": "0.000012", "list_amount": "0.000012",
    "price_id": "overrides@2026-11-01#vllm/bench-model", "price_match": "exact",
    "lines": [
        {"meter": "input", "tokens": 42, "unit_price": "0.0000002", "amount": "0.0000084"},
        {"meter": "output", "tokens": 6, "unit_price": "0.0000006", "amount": "0.0000036"}
    ]
}"#;

/// Makes requests. The same ones each time.
pub(crate) struct Load {
    pattern: Record,
    /// Whether client and engine make ids of their own.
    has_random_ids: bool,
    /// Whether each request is of a session of an agent.
    pub(crate) has_session: bool,
    cost: Option<RecordCost>,
    at: Timestamp,
    made: usize,
    random: u64,
    /// Of each session that runs: its name and that of its sub-agent, and the name of its turn.
    sessions: Vec<[String; 3]>,
}

impl Load {
    pub(crate) fn new(has_random_ids: bool, has_price: bool) -> Result<Self> {
        let cost = if has_price { Some(serde_json::from_str(COST)?) } else { None };
        let pattern: Record = serde_json::from_str(RECORD)?;
        Ok(Self {
            at: pattern.started_at,
            pattern,
            has_random_ids,
            has_session: false,
            cost,
            made: 0,
            random: 0,
            sessions: vec![<[String; 3]>::default(); SESSIONS],
        })
    }

    /// The same, where each request is of a session of an agent, or none is.
    pub(crate) fn with_sessions(mut self, has_session: bool) -> Self {
        self.has_session = has_session;
        self
    }

    pub(crate) fn request(&mut self) -> Result<Record> {
        let mut record = self.pattern.clone();
        let tenant = TENANTS.get(self.made % TENANTS.len()).copied().unwrap_or_default();
        (record.tenant, record.key_id) = (TenantId::new(tenant)?, Some(tenant.to_owned()));
        record.dimensions = self.told()?.if_any();
        self.made += 1;
        let late = self.below(100);
        self.at += INTERVAL + SignedDuration::from_micros(late.into());
        record.started_at = self.at;
        let [a, b] = [self.next(), self.next()];
        let random = u128::from(a) << 64 | u128::from(b);
        let [random_bytes @ .., _, _, _, _, _, _] = random.to_be_bytes();
        let millis = self.at.as_millisecond().unsigned_abs();
        let id = Builder::from_unix_timestamp_millis(millis, &random_bytes).into_uuid();
        record.id = RequestId(id);
        record.request_id = id.to_string();
        if self.has_random_ids {
            record.request_id = self.random_id();
            record.response_id = Some(format!("chatcmpl-{}", self.word()));
        }
        self.time(&mut record);
        if let Some(cost) = &self.cost {
            (record.cost, record.cost_unknown) = (Some(cost.clone()), Vec::new());
        }
        Ok(record)
    }

    /// What the next request is part of. Sessions have a request each in turn, and every fourth one is by
    /// a sub-agent.
    fn told(&mut self) -> Result<Dimensions> {
        if !self.has_session {
            return Ok(Dimensions::default());
        }
        let (at, of_session) = (self.made % SESSIONS, self.made / SESSIONS % OF_SESSION);
        let [session, agent, turn] = [(); 3].map(|()| self.random_id());
        let names = self.sessions.get_mut(at).ok_or_else(|| anyhow!("no session {at}"))?;
        if of_session == 0 {
            *names = [session, agent, turn];
        } else if of_session.is_multiple_of(OF_TURN) {
            names[2] = turn;
        }
        let [session, agent, turn] = names.clone();
        let is_sub_agent = of_session % 4 == 3;
        let root = || "root".to_owned();
        Ok(Dimensions {
            session: Some(session),
            session_source: Some(SessionSource::Header),
            agent: Some(if is_sub_agent { agent } else { root() }),
            parent_agent: is_sub_agent.then(root),
            client: Some("codex/0.169".to_owned()),
            turn: Some(turn),
            ..Dimensions::default()
        })
    }

    /// As clients make them.
    fn random_id(&mut self) -> String {
        let random = u128::from(self.next()) << 64 | u128::from(self.next());
        Builder::from_random_bytes(random.to_be_bytes()).into_uuid().to_string()
    }

    fn time(&mut self, record: &mut Record) {
        // Identified, read, routed, reserved, sent, answered, settled.
        let mut ended = 0;
        let ends = [20, 25, 15, 200, 15, 900, 60].map(|most| {
            ended += most / 2 + self.below(most);
            Some(Duration::from_micros(ended.into()))
        });
        let [identify, body, route, admit, connect, answer, settle] = ends;
        let seconds = |end: Option<Duration>| end.unwrap_or_default().as_secs_f64();
        record.timing.duration = seconds(answer);
        record.timing.gateway = seconds(connect);
        record.timing.stages = Some(Stages::ending([
            identify, body, route, admit, connect, None, None, answer, settle,
        ]));
        record.ended_at = record.started_at + SignedDuration::from_micros(ended.into());
    }

    /// Random letters and digits.
    fn word(&mut self) -> String {
        const LETTERS: &[u8; 62] =
            b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let letter = |at: u32| LETTERS.get(at as usize).copied();
        (0..RESPONSE_ID_LENGTH).filter_map(|_| letter(self.below(62))).map(char::from).collect()
    }

    fn below(&mut self, limit: u32) -> u32 {
        u32::try_from(self.next() % u64::from(limit)).unwrap_or(0)
    }

    /// SplitMix64.
    const fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
