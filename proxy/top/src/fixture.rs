//! A fake gateway for tests: the answers of an admin address.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taximeter_system::clock;

use super::history::History;
use super::sample::Sample;
use super::snapshot::{Month, Snapshot};

/// The answers.
pub(super) struct Gateway {
    metrics: String,
    live: Vec<Value>,
    pub(super) status: Value,
}

impl Gateway {
    /// A gateway without requests.
    pub(super) fn new() -> Self {
        let status = json!({
            "version": "0.1.0",
            "gateway": "edge-1",
            "started_at": "2026-11-20T16:00:00Z",
            "uptime_seconds": 11_520.0,
            "draining": false,
            "requests": {"open": 0, "open_streams": 0, "bodies_bytes": 0},
            "upstreams": [{
                "name": "local", "open_requests": 0, "health": "unknown", "answered_at": null,
                "failures": 0, "last_failure": null,
            }],
            "ledger": {"is_open": true, "is_healthy": true, "lost_entries": 0},
            "store": {"pending_entries": 0, "fault": null},
        });
        Self { metrics: String::new(), live: Vec::new(), status }
    }

    /// Adds finished requests of a tenant. Each is a stream of 100 + 50 tokens that costs 0.001 USD,
    /// and its first token comes within `bound`.
    pub(super) fn ended(mut self, tenant: &str, model: &str, requests: u32, bound: &str) -> Self {
        let quoted =
            |name: &str| name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels = format!(
            "gen_ai_request_model=\"{}\",taximeter_tenant=\"{}\"",
            quoted(model),
            quoted(tenant)
        );
        let cost = f64::from(requests) * 0.001;
        let (input, output) = (requests * 100, requests * 50);
        let name = "taximeter_first_token_wait_seconds_bucket";
        let _ = write!(
            self.metrics,
            "taximeter_requests_total{{{labels},taximeter_end=\"complete\"}} {requests}\n\
             taximeter_tokens_total{{gen_ai_token_type=\"input\",{labels}}} {input}\n\
             taximeter_tokens_total{{gen_ai_token_type=\"output\",{labels}}} {output}\n\
             taximeter_cost_total{{{labels},taximeter_currency=\"USD\"}} {cost}\n"
        );
        let bounds = ["0.1", "0.25", "0.5", "1", "+Inf"];
        let first = bounds.iter().position(|known| *known == bound).unwrap();
        for (at, le) in bounds.iter().enumerate() {
            let below = if at >= first { requests } else { 0 };
            let _ = writeln!(
                self.metrics,
                "{name}{{{labels},taximeter_stream=\"true\",le=\"{le}\"}} {below}\n\
                 {name}{{{labels},le=\"{le}\"}} 1000"
            );
        }
        self
    }

    /// Adds finished requests of unknown cost.
    pub(super) fn unpriced(mut self, tenant: &str, requests: u32) -> Self {
        let labels = format!("gen_ai_request_model=\"own\",taximeter_tenant=\"{tenant}\"");
        let _ = write!(
            self.metrics,
            "taximeter_requests_total{{{labels}}} {requests}\n\
             taximeter_unpriced_total{{{labels}}} {requests}\n"
        );
        self
    }

    /// Adds a running stream.
    pub(super) fn running(mut self, tenant: &str, model: Option<&str>, tokens: u64) -> Self {
        let open = self.live.len() + 1;
        self.status["requests"] = json!({"open": open, "open_streams": open});
        self.status["upstreams"][0]["open_requests"] = json!(open);
        let began = tokens > 0;
        self.live.push(json!({
            "id": format!("019aa2e4-0000-7000-8000-{open:012}"),
            "tenant": tenant,
            "request_model": model,
            "upstream": "local",
            "duration": 3.25 + open as f64,
            "stage": if began { "generating" } else { "sent" },
            "time_to_first_token": began.then_some(0.215),
            "longest_stall": began.then_some(0.043),
            "input_tokens": began.then_some(14),
            "output_tokens": began.then_some(tokens),
        }));
        self
    }

    /// One poll.
    pub(super) fn sample(&self) -> Sample {
        let live = json!({"at": "2026-11-20T19:12:00Z", "requests": self.live});
        Sample::of(
            &self.metrics,
            serde_json::from_value(live).unwrap(),
            serde_json::from_value(self.status.clone()).unwrap(),
        )
    }
}

/// What is shown after one poll every ten seconds, and a query of the month's cost.
pub(super) fn snapshot_of(looks: &[Gateway]) -> Snapshot {
    let start = clock::now();
    let (history, now) = history_of(start, looks);
    history.snapshot(now)
}

/// The same data before it is shown, and the time of the last poll.
pub(super) fn history_of(start: Instant, looks: &[Gateway]) -> (History, Instant) {
    let mut now = start;
    let mut looks = looks.iter().map(Gateway::sample);
    let mut history = History::new(now, looks.next().unwrap());
    for look in looks {
        now += Duration::from_secs(10);
        history.add(now, look);
    }
    history.set_month(Month {
        name: "2026-11".to_owned(),
        billed: Some("1234.5678".parse().unwrap()),
        currency: Some("USD".to_owned()),
        more: false,
    });
    (history, now)
}
