//! What the engine, the GPUs and the host of a request did meanwhile, on the request's own time axis.

use std::sync::Arc;

use jiff::Timestamp;
use maud::{Markup, html};
use taximeter_fleet::{Field, fields_of_device};
use taximeter_gateway::gateway::Gateway;
use taximeter_ledger::Record;
use taximeter_store::memory::{Memory, Query};
use taximeter_system::clock;

use super::timeline::pieces;
use crate::ask::{Deadline, ask_thread};
use crate::console::charts::Spanned;
use crate::console::fleet::{
    Asked, Curves, ENGINES, GPUS, HOSTS, Measure, TimeAxis, chart, events, happened, seconds,
    unreadable,
};
use crate::console::text::{name, seconds_text, sentence};
use crate::console::view::View;
use crate::fleet::events::{EventsAnswer, events_between};
use crate::fleet::{FleetJoin, FleetLink, FleetLinks, joins};
use crate::problem::ApiError;

/// Seconds before and after the request that are shown at least.
const AROUND: i64 = 10;
/// A step of samples by the minute, where those by the second are gone.
const MINUTE: i64 = 60;
/// Labels of the axis of time.
const LABELS: i64 = 4;
/// How the gateway's own host is called as a source.
const OWN_HOST: &str = "/proc";

/// What served the request, and what it did.
pub(super) struct Beneath {
    join: FleetJoin,
    /// It was on the gateway's own host.
    is_local: bool,
    asked: Asked,
    /// Samples of its minute are not kept yet.
    is_early: bool,
    happened: EventsAnswer,
    parts: [Vec<(&'static Measure, Curves)>; 3],
}

/// Reads it. `None` where nothing is kept, or nothing is known of the upstream.
///
/// Errors: the samples cannot be read; it takes too long.
pub(super) async fn beneath(
    gateway: &Arc<Gateway>,
    record: &Record,
) -> Result<Option<Beneath>, ApiError> {
    let Some(memory) = gateway.samples.get().cloned() else { return Ok(None) };
    let join = joins(gateway).into_iter().find(|join| join.upstream == record.upstream);
    let Some(join) = join else { return Ok(None) };
    let mut upstreams = gateway.config.upstreams.iter();
    let is_local = upstreams.any(|one| one.name == record.upstream && one.url.is_loopback());
    let (start, end) = (record.started_at.as_second(), record.ended_at.as_second() + 1);
    let around = AROUND.max((end - start) / 5);
    let fine = window(start - around, end + around, Query::step_for(end - start + 2 * around));
    let coarse = window(start - 5 * MINUTE, end + 5 * MINUTE, MINUTE.max(fine.step));
    let is_early = clock::wall() < next_minute(record.ended_at);
    let kept = gateway.clone();
    let found = ask_thread(gateway, move |deadline| {
        let mut window = fine;
        let mut parts = Beneath::read(&memory, (&join, is_local), window, deadline)?;
        if parts.iter().all(Vec::is_empty) {
            window = coarse;
            parts = Beneath::read(&memory, (&join, is_local), window, deadline)?;
        }
        let times = [window.from, window.to].map(Timestamp::from_second);
        let [from, to] = times.map(Result::unwrap_or_default);
        let happened = events_between(&kept, (from, to), Vec::new())?;
        let asked = window.of(None, Vec::new());
        Ok(Beneath { join, is_local, asked, is_early, happened, parts })
    });
    found.await.map(Some)
}

/// A time in steps.
#[derive(Debug, Clone, Copy)]
struct Window {
    from: i64,
    to: i64,
    step: i64,
}

/// This time, from one step to another.
fn window(from: i64, to: i64, step: i64) -> Window {
    let floor = |second: i64| second - second.rem_euclid(step);
    Window { from: floor(from), to: floor(to) + step, step }
}

impl Window {
    const fn of(self, source: Option<String>, who: Vec<(Field, String)>) -> Asked {
        let Self { from, to, step } = self;
        Asked { from, to, step, source, who }
    }
}

impl Beneath {
    fn read(
        memory: &Memory,
        (join, is_local): (&FleetJoin, bool),
        window: Window,
        deadline: Deadline,
    ) -> Result<[Vec<(&'static Measure, Curves)>; 3], ApiError> {
        let linked = |links: &FleetLinks, asked: &dyn Fn(&FleetLink) -> Vec<Asked>| -> Vec<Asked> {
            links.links.iter().flat_map(asked).collect()
        };
        let engines =
            linked(&join.engines, &|link| vec![window.of(Some(link.to.clone()), Vec::new())]);
        let of_hosts: Vec<_> = join.hosts.links.iter().map(|host| host.to.as_str()).collect();
        let gpus = linked(&join.gpus, &|link| {
            let devices = fields_of_device(&link.to, &of_hosts).into_iter();
            devices.map(|fields| window.of(None, fields)).collect()
        });
        let own = is_local.then(|| window.of(Some(OWN_HOST.to_owned()), Vec::new()));
        let hosts = linked(&join.hosts, &|link| {
            vec![window.of(None, vec![(Field::Node, link.to.clone())])]
        });
        let hosts: Vec<_> = own.into_iter().chain(hosts).collect();
        let part = |measures: &'static [Measure], asked: &[Asked]| {
            let mut found = Vec::new();
            for measure in measures {
                deadline.check()?;
                let curves = Curves::of(memory, measure, asked, None).map_err(unreadable)?;
                if !curves.is_empty() {
                    found.push((measure, curves));
                }
            }
            Ok::<_, ApiError>(found)
        };
        Ok([part(ENGINES, &engines)?, part(GPUS, &gpus)?, part(HOSTS, &hosts)?])
    }

    /// The section on the page.
    pub(super) fn section(&self, record: &Record, view: &View) -> Markup {
        let Asked { from, to, step, .. } = self.asked;
        let start = start_after(from, record.started_at);
        let spans = pieces(record).into_iter().map(|(class, begin, end)| Spanned {
            class,
            from: start + begin,
            to: start + end,
        });
        let time = TimeAxis {
            seconds: seconds(to - from),
            labels: labels(seconds(to - from), start),
            spans: spans.collect(),
            happened: happened(&self.happened, from),
            before: None,
        };
        let [engines, gpus, hosts] = &self.parts;
        let is_empty = self.parts.iter().all(Vec::is_empty);
        let is_early = self.is_early && (is_empty || step >= MINUTE);
        html! {
            section aria-labelledby="beneath" {
                h2 #beneath { "Engine, GPUs and host meanwhile" }
                p.notes {
                    "Seconds from the start of the request, whose stages are shaded. "
                    @if step > 1 { "A point is the mean of " (seconds_text(seconds(step))) "." }
                }
                @for doubt in &self.join.doubts { p.warn { (sentence(doubt)) } }
                @if is_early {
                    p {
                        "Samples of its last minute are kept when that is over: after "
                        (view.time(next_minute(record.ended_at))) "."
                    }
                } @else if is_empty { p { "No samples of this time are kept." } }
                h3 { "Engine" }
                p.notes { (links(&self.join.engines)) }
                (charts(engines, &time))
                h3 { "GPUs" }
                p.notes { (links(&self.join.gpus)) }
                (charts(gpus, &time))
                h3 { "Host" }
                p.notes {
                    @if self.is_local { "The gateway’s own, because the upstream has a loopback address" }
                    @else { (links(&self.join.hosts)) }
                }
                (charts(hosts, &time))
                @if !self.happened.events.is_empty() { (events(Ok(&self.happened), view)) }
            }
        }
    }
}

/// What something is, and how that is known.
fn links(links: &FleetLinks) -> Markup {
    html! {
        @for (index, link) in links.links.iter().enumerate() {
            @if index > 0 { ", " }
            (name(&link.to)) " by " (link.basis)
        }
        @if let Some(why) = links.unknown { span.unknown { "unknown" } ": " (why) }
    }
}

fn charts(found: &[(&Measure, Curves)], time: &TimeAxis<'_>) -> Markup {
    html! {
        @if !found.is_empty() {
            div.charts { @for (measure, curves) in found { (chart(measure, curves, time)) } }
        }
    }
}

/// Seconds from the first one of the charts to the start of the request.
fn start_after(from: i64, started_at: Timestamp) -> f64 {
    let from = Timestamp::from_second(from).unwrap_or_default();
    started_at.duration_since(from).as_secs_f64()
}

/// A minute's samples are kept a moment after its end.
fn next_minute(at: Timestamp) -> Timestamp {
    let second = at.as_second();
    Timestamp::from_second(second - second.rem_euclid(MINUTE) + MINUTE + 5).unwrap_or(at)
}

/// Labels at equal distances, in seconds from the start of the request.
fn labels(length: f64, start: f64) -> Vec<String> {
    let label = |step: i64| {
        let at = length * seconds(step) / seconds(LABELS) - start;
        format!("{at:+.0} s").replace('-', "−")
    };
    (0..=LABELS).map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_counts_from_the_start_of_the_request() {
        let started_at: Timestamp = "2026-11-27T12:00:10.250Z".parse().unwrap();
        let window = window(started_at.as_second() - 10, started_at.as_second() + 30, 1);
        assert_eq!((window.to - window.from, window.step), (41, 1));
        let start = start_after(window.from, started_at);
        assert!((start - 10.25).abs() < 1e-9, "{start}");
        assert_eq!(labels(40.0, start), ["−10 s", "−0 s", "+10 s", "+20 s", "+30 s"]);
    }

    #[test]
    fn a_window_begins_and_ends_with_a_step() {
        let Window { from, to, .. } = window(119, 121, 60);
        assert_eq!((from, to), (60, 180));
        assert_eq!(
            next_minute("2026-11-27T12:00:59.9Z".parse().unwrap()).to_string(),
            "2026-11-27T12:01:05Z"
        );
    }
}
