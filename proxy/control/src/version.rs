//! The version of an engine, which no engine prints among its metrics: asked for beside them.

use std::time::{Duration, Instant};

use serde_json::Value;
use taximeter_config::{ScrapeUrl, Secret};
use taximeter_net::upstream::Dialer;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::ask::ask;

/// Time between two questions for it.
const PERIOD: Duration = Duration::from_secs(600);
/// The same after one without an answer.
const AGAIN: Duration = Duration::from_secs(60);
/// Time for an answer: its metrics wait for it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// Longest answer that is read, in bytes. SGLang tells all its settings there.
const ANSWER_BYTES_MAX: usize = 512 << 10;
/// What metrics are usually called.
const METRICS: &str = "/metrics";

/// When an engine is asked for its version.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    due: Option<Instant>,
    resets: u64,
}

impl Asking {
    /// Whether it is time: it has come up, it has begun to count anew, or it was long ago.
    pub(crate) fn is_due(&mut self, now: Instant, has_come_up: bool, resets: u64) -> bool {
        let is_anew = std::mem::replace(&mut self.resets, resets) != resets;
        has_come_up || is_anew || self.due.is_none_or(|due| due <= now)
    }

    /// It was asked.
    pub(crate) fn end(&mut self, now: Instant, has_told: bool) {
        self.due = Some(now + if has_told { PERIOD } else { AGAIN });
    }
}

/// Asks for the version at each of these places beside the metrics, until one tells it.
pub(crate) async fn version(
    dialer: &Dialer,
    metrics: &ScrapeUrl,
    credential: Option<&Secret>,
    large: &Semaphore,
    places: &[(&str, &str)],
) -> Option<String> {
    for (path, member) in places {
        let url = beside(metrics, path);
        let asked = timeout(ANSWER_TIMEOUT, ask(dialer, &url, credential, large));
        let told = asked.await.ok().and_then(Result::ok);
        if let Some(version) = told.and_then(|answer| of(&answer.text, member)) {
            return Some(version);
        }
    }
    None
}

/// The place in the folder of the metrics. It is at the same address.
fn beside(metrics: &ScrapeUrl, path: &str) -> ScrapeUrl {
    let own = metrics.path.split('?').next().unwrap_or_default();
    let folder = own.strip_suffix(METRICS).or_else(|| own.rsplit_once('/').map(|(it, _)| it));
    ScrapeUrl { path: format!("{}{path}", folder.unwrap_or_default()), ..metrics.clone() }
}

fn of(text: &[u8], member: &str) -> Option<String> {
    if text.len() > ANSWER_BYTES_MAX {
        return None;
    }
    let told: Value = serde_json::from_slice(text).ok()?;
    told.get(member)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use taximeter_system::clock;

    use super::*;

    #[test]
    fn it_is_asked_for_in_the_folder_of_the_metrics() {
        let at = |path: &str| {
            let (host, path) = ("e".to_owned(), path.to_owned());
            beside(&ScrapeUrl { tls: true, host, port: 1, path }, "/version").to_string()
        };
        assert_eq!(at("/metrics"), "https://e:1/version");
        assert_eq!(at("/base/metrics?model=m"), "https://e:1/base/version");
        assert_eq!(at("/prometheus"), "https://e:1/version");
    }

    #[test]
    fn it_is_a_text_in_a_json_object() {
        assert_eq!(of(br#"{"a":[1],"version":"0.33.0"}"#, "version").as_deref(), Some("0.33.0"));
        for other in ["", "[]", "{}", r#"{"version":7}"#, "# TYPE a gauge\n", r#"{"version":"1""#] {
            assert_eq!(of(other.as_bytes(), "version"), None, "{other}");
        }
        let long = format!("{{\"version\":\"{}\"}}", "1".repeat(ANSWER_BYTES_MAX));
        assert_eq!(of(long.as_bytes(), "version"), None);
    }

    #[test]
    fn it_is_asked_for_when_an_engine_comes_up_or_begins_anew_and_now_and_then() {
        let (now, mut asking) = (clock::now(), Asking::default());
        assert!(asking.is_due(now, true, 0));
        asking.end(now, false);
        assert!(!asking.is_due(now, false, 0) && asking.is_due(now + AGAIN, false, 0));
        asking.end(now, true);
        assert!(!asking.is_due(now + AGAIN, false, 0) && asking.is_due(now + PERIOD, false, 0));
        assert!(asking.is_due(now, false, 3), "it has begun anew");
        assert!(!asking.is_due(now, false, 3) && asking.is_due(now, true, 3));
    }
}
