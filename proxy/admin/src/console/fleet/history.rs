//! The page of engines, GPUs and hosts over time, beside the same time before.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use taximeter_fleet::Field;
use taximeter_gateway::gateway::Gateway;
use taximeter_store::memory::{Memory, MemoryError, Query};
use taximeter_system::clock;
use utoipa::IntoParams;

use super::chart::{TimeAxis, chart, happened};
use super::curves::{Asked, Curves, Measure, seconds};
use super::events::events;
use super::measures::{ENGINES, GPUS, HOSTS};
use crate::ask::{Deadline, ask_thread};
use crate::console::page::{FLEET, Page};
use crate::console::view::{PageParams, View};
use crate::fleet::events::{EventsAnswer, events_between};
use crate::problem::ApiError;
use crate::query;

/// What is shown: its name, its title, and its measures. The first one is the default.
const SHOWN: [(&str, &str, &[Measure]); 3] =
    [("engines", "Engines", ENGINES), ("gpus", "GPUs", GPUS), ("hosts", "Hosts", HOSTS)];
/// For how long, in seconds. The first one is the default.
const LENGTHS: [(&str, &str, i64); 6] = [
    ("1h", "1 hour", 3_600),
    ("6h", "6 hours", 6 * 3_600),
    ("24h", "24 hours", 86_400),
    ("7d", "7 days", 7 * 86_400),
    ("30d", "30 days", 30 * 86_400),
    ("90d", "90 days", 90 * 86_400),
];
/// What it is compared with: so many seconds before. The first one is the default.
const COMPARED: [(&str, &str, Option<i64>); 3] = [
    ("week", "a week before", Some(7 * 86_400)),
    ("day", "a day before", Some(86_400)),
    ("nothing", "nothing", None),
];
/// Labels of the axis of time.
const LABELS: i64 = 4;

/// The parameters of the page.
#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct HistoryParams {
    /// engines, gpus or hosts
    show: Option<String>,
    /// 1h, 6h, 24h, 7d, 30d or 90d
    last: Option<String>,
    /// The end. Default: now
    to: Option<String>,
    /// week, day or nothing
    compare: Option<String>,
    /// Only this source
    source: Option<String>,
    /// Only this GPU
    gpu: Option<String>,
    /// Only this host
    host: Option<String>,
}

/// What the page shows.
struct Chosen {
    show: usize,
    length: usize,
    compare: usize,
    asked: Asked,
    /// Whether the end is now.
    is_now: bool,
}

pub(crate) async fn history(
    State(gateway): State<Arc<Gateway>>,
    PageParams { asked, view }: PageParams<HistoryParams>,
) -> Result<Response, ApiError> {
    let mut chosen = asked.read(&view, clock::wall())?;
    let page = Page { title: "Fleet over time", at: FLEET, view: &view, reload_seconds: None };
    let frame = page.frame();
    let main = async move {
        let memory = gateway.samples.get().cloned();
        let Some(memory) = memory else { return Ok(nothing_kept()) };
        let kept = gateway.clone();
        let found = ask_thread(&gateway, move |deadline| {
            let found = chosen.curves(&memory, deadline)?;
            let happened = events_between(&kept, chosen.times(), Vec::new())?;
            Ok((chosen, found, happened))
        });
        let (chosen, found, happened) = found.await?;
        Ok(chosen.main(&found, &happened, &view))
    };
    frame.around(main).await
}

fn nothing_kept() -> Markup {
    html! {
        h1 { "Fleet over time" }
        p {
            "Nothing is kept: the configuration has no section " code { "fleet" } ". With "
            code { "fleet: {}" } " Taximeter reads engines and hosts, and keeps what they tell."
        }
    }
}

impl HistoryParams {
    fn read(self, view: &View, now: Timestamp) -> Result<Chosen, ApiError> {
        let show = choice("show", self.show.as_deref(), SHOWN.map(|(word, ..)| word))?;
        let length = choice("last", self.last.as_deref(), LENGTHS.map(|(word, ..)| word))?;
        let compare = choice("compare", self.compare.as_deref(), COMPARED.map(|(word, ..)| word))?;
        let to = query::time("to", self.to.as_deref(), view.zone())?;
        let seconds = LENGTHS.get(length).map_or(0, |(.., seconds)| *seconds);
        let step = Query::step_for(seconds);
        // Points are at multiples of their step.
        let end = to.unwrap_or(now).as_second();
        let end = end - end.rem_euclid(step) + step;
        let who = [(Field::Gpu, self.gpu), (Field::Node, self.host)];
        let who = who.into_iter().filter_map(|(field, asked)| Some((field, asked?))).collect();
        let asked = Asked { from: end - seconds, to: end, step, source: self.source, who };
        Ok(Chosen { show, length, compare, asked, is_now: to.is_none() })
    }
}

/// Which of some words is given. The first one if none is.
fn choice<const N: usize>(
    name: &'static str,
    given: Option<&str>,
    words: [&str; N],
) -> Result<usize, ApiError> {
    let found = query::read(name, given, words.join(", "), |given| {
        words.iter().position(|word| *word == given).ok_or(())
    })?;
    Ok(found.unwrap_or_default())
}

impl Chosen {
    fn measures(&self) -> &'static [Measure] {
        SHOWN.get(self.show).map_or(&[], |(.., measures)| measures)
    }

    fn before(&self) -> Option<(&'static str, i64)> {
        let (_, title, before) = COMPARED.get(self.compare)?;
        Some((title, (*before)?))
    }

    fn curves(&mut self, memory: &Memory, deadline: Deadline) -> Result<Vec<Curves>, ApiError> {
        let kept = memory.grid_since(self.asked.from).map_err(unreadable)?;
        self.asked.step = self.asked.step.max(kept.seconds());
        let before = self.before().map(|(_, before)| before);
        let curves = self.measures().iter().map(|measure| {
            deadline.check()?;
            Curves::of(memory, measure, std::slice::from_ref(&self.asked), before)
                .map_err(unreadable)
        });
        curves.collect()
    }

    /// The first instant, and the end.
    fn times(&self) -> (Timestamp, Timestamp) {
        let at = |second| Timestamp::from_second(second).unwrap_or_default();
        (at(self.asked.from), at(self.asked.to))
    }

    fn main(&self, found: &[Curves], happened_then: &EventsAnswer, view: &View) -> Markup {
        let Asked { from, to, .. } = self.asked;
        let time = TimeAxis {
            seconds: seconds(to - from),
            labels: labels(from, to, view),
            spans: Vec::new(),
            happened: happened(happened_then, from),
            before: self.before().map(|(title, _)| title),
        };
        let told = || self.measures().iter().zip(found);
        let is_told = |(_, found): &(&Measure, &Curves)| !found.is_empty();
        let silent: Vec<_> = told().filter(|it| !is_told(it)).map(|(it, _)| it.title).collect();
        html! {
            p.crumb { a href=(view.to(FLEET, &[])) { "Fleet" } }
            h1 { "Fleet over time" }
            p.lead {
                "What was kept of it, up to the last whole minute. Where a line has a gap, nothing was told. "
                @if let Some((title, _)) = self.before() { "Dashed lines are those of " (title) ". " }
                "Upright lines are events: point at one to read it."
            }
            (self.tabs(view))
            div.charts {
                @for (measure, found) in told().filter(is_told) { (chart(measure, found, &time)) }
            }
            @if silent.len() == found.len() {
                p { "No source has told anything of it in this time." }
            } @else if !silent.is_empty() {
                p.notes { "No source has told of this: " (silent.join(", ")) "." }
            }
            (events(Ok(happened_then), view))
            p.elsewhere {
                "One quantity for programs: "
                code { "/api/v1/fleet/samples" } ", " code { "taximeter fleet history" }
            }
        }
    }

    /// What else can be shown.
    fn tabs(&self, view: &View) -> Markup {
        let Asked { from, to, .. } = self.asked;
        let at = |second| Timestamp::from_second(second).unwrap_or_default();
        let [earlier, later] = [from, to + (to - from)].map(|second| at(second).to_string());
        html! {
            nav.tabs aria-label="What is shown" {
                @for (index, (word, title, _)) in SHOWN.iter().enumerate() {
                    a href=(view.with("show", Some(word)))
                        aria-current=[(index == self.show).then_some("true")] { (title) }
                }
            }
            nav.tabs aria-label="For how long" {
                @for (index, (word, title, _)) in LENGTHS.iter().enumerate() {
                    a href=(view.with("last", Some(word)))
                        aria-current=[(index == self.length).then_some("true")] { (title) }
                }
                a href=(view.with("to", Some(&earlier))) { "Earlier" }
                @if !self.is_now {
                    a href=(view.with("to", Some(&later))) { "Later" }
                    a href=(view.with("to", None)) { "Now" }
                }
            }
            nav.tabs aria-label="Compared with" {
                span.word { "Compared with" }
                @for (index, (word, title, _)) in COMPARED.iter().enumerate() {
                    a href=(view.with("compare", Some(word)))
                        aria-current=[(index == self.compare).then_some("true")] { (title) }
                }
            }
            p.notes { (view.time(at(from))) " to " (view.time(at(to))) " " (view.zone_name()) }
        }
    }
}

/// Labels at equal distances, the first and the last instant among them.
fn labels(from: i64, to: i64, view: &View) -> Vec<String> {
    let form = if to - from > 2 * 86_400 { "%-d %b" } else { "%H:%M" };
    let at = |step| from + (to - from) * step / LABELS;
    let label = |step| view.text(Timestamp::from_second(at(step)).unwrap_or_default(), form);
    (0..=LABELS).map(label).collect()
}

pub(crate) fn unreadable(fault: MemoryError) -> ApiError {
    ApiError::Busy(fault.to_string())
}
