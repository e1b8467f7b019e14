//! Where a request's time went, one stage behind the other.

use std::time::Duration;

use maud::{Markup, html};
use taximeter_ledger::{Record, RecordTiming, Stage, Stages};

use crate::console::charts::{Piece, bar};
use crate::console::text::{count, seconds, seconds_or_unknown};
use crate::console::view::View;

/// One line, in seconds from the start.
#[derive(Debug, PartialEq)]
struct Row {
    word: &'static str,
    meaning: &'static str,
    class: &'static str,
    from: f64,
    to: f64,
    ends_in_first_token: bool,
}

pub(super) fn timeline(record: &Record, view: &View) -> Markup {
    let timing = &record.timing;
    let rows = rows(timing);
    let whole = rows.last().map_or(timing.duration, |last| last.to);
    html! {
        section aria-labelledby="timeline" {
            h2 #timeline { "Timeline" }
            div.scroll { table.timeline {
                caption { "Seconds from the last byte of the request’s head" }
                thead { tr {
                    th scope="col" { "Stage" }
                    th.time scope="col" { "When" }
                    th.number scope="col" { "From" }
                    th.number scope="col" { "To" }
                    th.number scope="col" { "Took" }
                } }
                tbody {
                    @for row in &rows {
                        @let piece = Piece { class: row.class, from: row.from, to: row.to };
                        tr data-stage=(row.word) {
                            th scope="row" title=(row.meaning) {
                                (row.word)
                                @if row.ends_in_first_token {
                                    " " span.unit { "up to the first token" }
                                }
                            }
                            td.time { (bar(whole, &[piece])) }
                            td.number { (seconds(row.from)) }
                            td.number { (seconds(row.to)) }
                            td.number { (seconds(took(row))) }
                        }
                    }
                    tr {
                        th scope="row" { "gateway’s part of all" }
                        td.time {
                            (bar(whole, &[Piece { class: "s3", from: 0.0, to: timing.gateway }]))
                        }
                        td.number { "–" }
                        td.number { "–" }
                        td.number { (seconds(timing.gateway)) }
                    }
                }
                tfoot { tr {
                    th scope="row" colspan="4" { "In all" }
                    td.number data-total="time" { (seconds(whole)) }
                } }
            } }
            dl.facts {
                div { dt { "Ended" } dd { (view.precise_time(record.ended_at)) } }
                div { dt { "First chunk" } dd { (stream_time(record, timing.time_to_first_chunk)) } }
                div { dt { "First token" } dd { (stream_time(record, timing.time_to_first_token)) } }
                div { dt { "Longest stall" } dd { (stream_time(record, timing.longest_stall)) } }
                div {
                    dt { "Per output token" }
                    dd { (stream_time(record, timing.time_per_output_token)) }
                }
                div { dt { "Chunks with content" } dd { (count(timing.output_chunks)) } }
            }
        }
    }
}

/// The parts of a request: colour, from and to, in seconds from its start.
pub(super) fn pieces(record: &Record) -> Vec<(&'static str, f64, f64)> {
    rows(&record.timing).into_iter().map(|row| (row.class, row.from, row.to)).collect()
}

fn rows(timing: &RecordTiming) -> Vec<Row> {
    timing.stages.as_ref().map_or_else(|| marks(timing), stages)
}

/// The stages as they were measured.
fn stages(stages: &Stages) -> Vec<Row> {
    let mut at = Duration::ZERO;
    let row = |(stage, took): (Stage, Duration)| {
        let from = at;
        at = at.saturating_add(took);
        let (from, to) = (from.as_secs_f64(), at.as_secs_f64());
        let (word, meaning, class) = (stage.as_str(), stage.meaning(), class(stage));
        Row { word, meaning, class, from, to, ends_in_first_token: stage == Stage::Prefill }
    };
    stages.each().map(row).collect()
}

/// What is the gateway's has one colour, and each part of the engine's has its own.
const fn class(stage: Stage) -> &'static str {
    match stage {
        Stage::Connect => "s1",
        Stage::Prefill => "wait",
        Stage::Stream | Stage::Answer => "s0",
        Stage::Identify | Stage::Body | Stage::Route | Stage::Admit | Stage::Settle => "s3",
    }
}

/// What a record tells that has no stages.
fn marks(timing: &RecordTiming) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut from = 0.0;
    for (word, class, to) in [
        ("until the first chunk", "wait", timing.time_to_first_chunk),
        ("until the first token", "s1", timing.time_to_first_token),
    ] {
        if let Some(to) = to {
            rows.push(Row { word, meaning: word, class, from, to, ends_in_first_token: false });
            from = to;
        }
    }
    let word = if rows.is_empty() { "whole answer" } else { "stream, up to the end" };
    let (class, to) = ("s0", timing.duration);
    rows.push(Row { word, meaning: word, class, from, to, ends_in_first_token: false });
    rows
}

fn took(row: &Row) -> f64 {
    let time = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    time(row.to).saturating_sub(time(row.from)).as_secs_f64()
}

/// A time that only streams have.
fn stream_time(record: &Record, time: Option<f64>) -> Markup {
    html! {
        @if time.is_none() && !record.stream { "–" } @else { (seconds_or_unknown(time)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_follow_each_other_and_add_up() {
        let at = |micros| Some(Duration::from_micros(micros));
        let whole = at(1_000_001);
        let measured = Stages::ending([
            at(3),
            at(13),
            at(14),
            at(50),
            at(300),
            None,
            None,
            at(999_999),
            whole,
        ]);
        let rows = stages(&measured);
        let words: Vec<_> = rows.iter().map(|row| row.word).collect();
        assert_eq!(words, ["identify", "body", "route", "admit", "connect", "answer", "settle"]);
        assert!(rows.windows(2).all(|pair| pair[0].to.to_bits() == pair[1].from.to_bits()));
        assert_eq!(rows.last().map(|row| row.to), Some(1.000_001));
        let took: Vec<_> = rows.iter().map(took).collect();
        assert_eq!(
            took,
            [0.000_003, 0.000_01, 0.000_001, 0.000_036, 0.000_25, 0.999_699, 0.000_002]
        );
    }

    #[test]
    fn a_record_without_stages_shows_what_it_has() {
        let timing = RecordTiming {
            time_to_first_chunk: Some(0.1),
            time_to_first_token: Some(0.25),
            duration: 1.5,
            ..RecordTiming::default()
        };
        let rows = marks(&timing);
        assert_eq!(rows.iter().map(took).collect::<Vec<_>>(), [0.1, 0.15, 1.25]);
        let whole = marks(&RecordTiming { duration: 2.0, ..RecordTiming::default() });
        assert_eq!(whole.len(), 1);
        assert_eq!(whole[0].word, "whole answer");
    }
}
