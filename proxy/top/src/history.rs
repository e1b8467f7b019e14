//! The history of polls: rates over the last minute, and points for charts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::sample::{Running, Sample, Sums};
use super::snapshot::{Month, NamedRates, Outage, Point, Rates, Snapshot};

/// The window of rates.
const WINDOW: Duration = Duration::from_secs(60);
/// Time between two polls that are kept with all names. Such a poll can take some megabytes.
const KEPT_INTERVAL: Duration = Duration::from_secs(5);
/// The window of the median in a point. It is long enough for few requests to make a line.
const POINT_WINDOW: Duration = Duration::from_secs(10);
/// Most points that are kept: more than the columns of any terminal.
const POINTS_MAX: usize = 512;

/// All polls of a gateway that still matter.
#[derive(Debug)]
pub(super) struct History {
    latest: Arc<Sample>,
    at: Instant,
    /// Polls with all names. The oldest comes first; rates by name start there.
    kept: VecDeque<(Instant, Arc<Sample>)>,
    /// The sums of each poll within the window, and of the last poll before it.
    totals: VecDeque<(Instant, Sums)>,
    points: VecDeque<Point>,
    /// The largest number of output tokens so far. If the number falls and grows again, only the
    /// tokens above this maximum are new.
    output_tokens_max: f64,
    month: Option<Month>,
    away: Option<(Instant, String)>,
}

impl History {
    /// The history after the first poll.
    pub(super) fn new(now: Instant, sample: Sample) -> Self {
        let latest = Arc::new(sample);
        Self {
            at: now,
            kept: [(now, latest.clone())].into(),
            totals: [(now, latest.total.clone())].into(),
            points: VecDeque::new(),
            output_tokens_max: latest.total.output_tokens,
            month: None,
            away: None,
            latest,
        }
    }

    /// Adds a poll. If the gateway has restarted, its counters and rates start at zero.
    pub(super) fn add(&mut self, now: Instant, sample: Sample) {
        self.away = None;
        if sample.status.started_at != self.latest.status.started_at {
            let (month, points) = (self.month.take(), std::mem::take(&mut self.points));
            *self = Self { month, points, ..Self::new(now, sample) };
            return self.push(Point::default());
        }
        let elapsed = (now - self.at).as_secs_f64();
        let output_tokens = sample.total.output_tokens;
        let fresh = (output_tokens - self.output_tokens_max).max(0.0);
        self.output_tokens_max = self.output_tokens_max.max(output_tokens);
        self.totals.push_back((now, sample.total.clone()));
        forget(&mut self.totals, now, WINDOW);
        let first_tokens = sample.total.since(self.total_before(now, POINT_WINDOW)).first_tokens;
        self.push(Point {
            output_tokens: (elapsed > 0.0).then(|| fresh / elapsed),
            first_token: first_tokens.quantile(0.5).map(|median| median.seconds),
        });
        (self.latest, self.at) = (Arc::new(sample), now);
        if self.kept.back().is_none_or(|(at, _)| now - *at >= KEPT_INTERVAL) {
            self.kept.push_back((now, self.latest.clone()));
        }
        forget(&mut self.kept, now, WINDOW);
    }

    /// Adds a poll that failed.
    pub(super) fn missed(&mut self, now: Instant, why: String) {
        let since = self.away.as_ref().map_or(now, |(since, _)| *since);
        self.away = Some((since, why));
        self.push(Point::default());
    }

    /// Sets the month's cost.
    pub(super) fn set_month(&mut self, month: Month) {
        self.month = Some(month);
    }

    /// The data to show.
    pub(super) fn snapshot(&self, now: Instant) -> Snapshot {
        let (sample, status) = (&*self.latest, &self.latest.status);
        let total = self.totals.front().and_then(|(from, earlier)| {
            let news = sample.total.since(earlier);
            rates(&news, self.at - *from, news.cost)
        });
        let window = self.totals.front().map(|(from, _)| self.at - *from).unwrap_or_default();
        let away = self.away.as_ref().map(|(since, why)| Outage {
            seconds: now.saturating_duration_since(*since).as_secs_f64(),
            why: why.clone(),
        });
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        Snapshot {
            gateway: status.gateway.clone(),
            version: status.version.clone(),
            uptime: status.uptime_seconds + if away.is_none() { since } else { 0.0 },
            draining: status.draining,
            away,
            running: status.requests.open,
            streams: status.requests.open_streams,
            total,
            window: window.as_secs_f64(),
            currency: sample.currency.clone(),
            month: self.month.clone(),
            ledger: status.ledger.clone(),
            store: status.store.clone(),
            tenants: self.rows(|sample| &sample.tenants, |running| sample.names(running).0),
            models: self.rows(|sample| &sample.models, |running| sample.names(running).1),
            requests: sample.live.requests.clone(),
            upstreams: status.upstreams.clone(),
            at: sample.live.at,
            points: self.points.iter().copied().collect(),
        }
    }

    /// The rows of a table, by name.
    fn rows<'a>(
        &'a self,
        of: fn(&Sample) -> &BTreeMap<String, Sums>,
        name_of: impl Fn(&'a Running) -> &'a str,
    ) -> Vec<NamedRates> {
        let mut running: BTreeMap<&str, usize> = BTreeMap::new();
        for request in &self.latest.live.requests {
            *running.entry(name_of(request)).or_default() += 1;
        }
        let none = Sums::default();
        let earlier = self.kept.front();
        let cost_before = earlier.map_or(0.0, |(_, sample)| sample.total.cost);
        let spent = (self.latest.total.cost - cost_before).max(0.0);
        let row = |(name, sums): (&String, &Sums)| {
            let rates = earlier.and_then(|(from, earlier)| {
                let news = sums.since(of(earlier).get(name).unwrap_or(&none));
                rates(&news, self.at - *from, spent)
            });
            let running = running.get(&**name).copied().unwrap_or_default();
            NamedRates { name: name.clone(), running, rates }
        };
        of(&self.latest).iter().map(row).collect()
    }

    /// The sums of the last poll that is at least as old as `window`, or of the first one.
    fn total_before(&self, now: Instant, window: Duration) -> &Sums {
        let old = self.totals.iter().rev().find(|(at, _)| now - *at >= window);
        old.or(self.totals.front()).map_or(&self.latest.total, |(_, sums)| sums)
    }

    fn push(&mut self, point: Point) {
        if self.points.len() == POINTS_MAX {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }
}

/// Drops all polls but the last one that is at least as old as `window`, and the newer ones.
fn forget<T>(kept: &mut VecDeque<(Instant, T)>, now: Instant, window: Duration) {
    while kept.get(1).is_some_and(|(at, _)| now - *at >= window) {
        kept.pop_front();
    }
}

/// Rates of `news` in `elapsed`. `spent` is the cost of all, for the share.
fn rates(news: &Sums, elapsed: Duration, spent: f64) -> Option<Rates> {
    let seconds = elapsed.as_secs_f64();
    (seconds > 0.0).then(|| Rates {
        requests: news.requests / seconds,
        input_tokens: news.input_tokens / seconds,
        output_tokens: news.output_tokens / seconds,
        first_token_p50: news.first_tokens.quantile(0.5),
        first_token_p95: news.first_tokens.quantile(0.95),
        spend: news.cost / seconds * 3600.0,
        unpriced: news.unpriced > 0.0,
        share: (spent > 0.0).then(|| news.cost / spent),
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Gateway, history_of, snapshot_of};
    use super::*;
    use taximeter_system::clock;

    fn row<'p>(rows: &'p [NamedRates], name: &str) -> &'p NamedRates {
        rows.iter().find(|row| row.name == name).unwrap()
    }

    fn rates_of(rows: &[NamedRates], name: &str) -> Rates {
        row(rows, name).rates.clone().unwrap()
    }

    fn close(number: f64, to: f64) -> bool {
        (number - to).abs() < 1e-9
    }

    #[test]
    fn the_first_look_has_no_rates() {
        let snapshot = snapshot_of(&[Gateway::new().ended("acme", "m", 3, "0.25")]);
        assert_eq!((snapshot.total, snapshot.tenants[0].rates.clone()), (None, None));
    }

    #[test]
    fn rates_are_what_came_between_two_looks() {
        let looks = [
            Gateway::new().ended("acme", "m", 10, "0.25").ended("zeta", "m", 10, "0.25"),
            Gateway::new().ended("acme", "m", 40, "0.25").ended("zeta", "m", 20, "0.25"),
        ];
        let snapshot = snapshot_of(&looks);
        let acme = rates_of(&snapshot.tenants, "acme");
        assert!(close(acme.requests, 3.0) && close(acme.output_tokens, 150.0), "{acme:?}");
        assert!(close(acme.spend, 10.8) && close(acme.share.unwrap(), 0.75), "{acme:?}");
        let total = snapshot.total.unwrap();
        assert!(close(total.requests, 4.0) && close(total.input_tokens, 400.0), "{total:?}");
        assert_eq!(rates_of(&snapshot.models, "m").requests.to_bits(), total.requests.to_bits());
        let p50 = total.first_token_p50.unwrap();
        assert!(close(p50.seconds, 0.175) && !p50.beyond, "{p50:?}");
        assert_eq!(snapshot.currency.as_deref(), Some("USD"));
    }

    #[test]
    fn rates_forget_what_is_older_than_a_minute() {
        let mut looks = vec![Gateway::new(), Gateway::new().ended("acme", "m", 600, "0.25")];
        looks.extend((0..7).map(|_| Gateway::new().ended("acme", "m", 600, "0.25")));
        let snapshot = snapshot_of(&looks);
        assert!(close(snapshot.window, 60.0), "{}", snapshot.window);
        assert!(close(rates_of(&snapshot.tenants, "acme").requests, 0.0));
        assert!(close(snapshot.total.unwrap().requests, 0.0));
    }

    #[test]
    fn tokens_count_as_they_stream_and_not_again_when_the_stream_has_ended() {
        let looks = [
            Gateway::new(),
            Gateway::new().running("acme", Some("m"), 30),
            Gateway::new().ended("acme", "m", 1, "0.25"),
        ];
        let (history, now) = history_of(clock::now(), &looks[..2]);
        let snapshot = history.snapshot(now);
        assert!(close(rates_of(&snapshot.tenants, "acme").output_tokens, 3.0));
        assert_eq!(row(&snapshot.models, "m").running, 1);
        let points = snapshot_of(&looks).points;
        let tokens: Vec<_> = points.iter().filter_map(|point| point.output_tokens).collect();
        assert!(close(tokens[0], 3.0) && close(tokens[1], 2.0), "50 tokens in all: {tokens:?}");
    }

    #[test]
    fn what_turns_out_to_be_less_is_not_counted_twice() {
        let looks = [40, 20, 45].map(|tokens| Gateway::new().running("acme", Some("m"), tokens));
        let points = snapshot_of(&looks).points;
        let tokens: Vec<_> = points.iter().filter_map(|point| point.output_tokens).collect();
        assert!(close(tokens[0], 0.0) && close(tokens[1], 0.5), "{tokens:?}");
    }

    #[test]
    fn a_gateway_that_is_started_anew_has_no_rates_below_zero_and_none_of_before() {
        let mut anew = Gateway::new().ended("acme", "m", 5, "0.25");
        anew.status["started_at"] = "2026-11-20T19:11:55Z".into();
        let looks = [Gateway::new().ended("acme", "m", 900, "0.25"), anew];
        let (mut history, now) = history_of(clock::now(), &looks);
        let snapshot = history.snapshot(now);
        assert_eq!((snapshot.total, snapshot.points.len()), (None, 1));
        let mut later = Gateway::new().ended("acme", "m", 15, "0.25");
        later.status["started_at"] = "2026-11-20T19:11:55Z".into();
        let now = now + Duration::from_secs(10);
        history.add(now, later.sample());
        assert!(close(history.snapshot(now).total.unwrap().requests, 1.0));
    }

    #[test]
    fn a_gateway_that_is_away_is_shown_as_it_was_with_the_time_it_is_away() {
        let (mut history, now) = history_of(clock::now(), &[Gateway::new(), Gateway::new()]);
        for seconds in [1, 2, 3] {
            history.missed(now + Duration::from_secs(seconds), "refused".to_owned());
        }
        let snapshot = history.snapshot(now + Duration::from_secs(4));
        let away = snapshot.away.unwrap();
        assert!(close(away.seconds, 3.0) && away.why == "refused", "{away:?}");
        assert_eq!(snapshot.gateway, "edge-1");
        history.add(now + Duration::from_secs(5), Gateway::new().sample());
        assert_eq!(history.snapshot(now + Duration::from_secs(5)).away, None);
    }

    #[test]
    fn whom_metrics_do_not_name_is_other_while_running_too() {
        let look = Gateway::new().ended("other", "m", 1, "0.25").running("tiny", Some("m"), 9);
        let snapshot = snapshot_of(&[look]);
        let names: Vec<_> = snapshot.tenants.iter().map(|row| &*row.name).collect();
        assert_eq!((names, snapshot.tenants[0].running), (vec!["other"], 1));
    }
}
