//! What a running gateway has kept of one quantity, over time.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;
use taximeter_net::visible::is_visible;
use taximeter_top::AdminArgs;

use crate::failure::Failure;

/// Most columns of a chart.
const COLUMNS_MAX: i64 = 60;
/// Most events that are shown.
const EVENTS_MAX: usize = 100;
/// Seconds of a column.
const STEPS: [i64; 10] = [15, 60, 300, 900, 1_800, 3_600, 14_400, 43_200, 86_400, 604_800];
/// From the least value to the most.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What is asked, and how it is shown.
#[derive(Debug, Args)]
pub(super) struct HistoryArgs {
    #[command(flatten)]
    admin: AdminArgs,

    /// The quantity, by its name in the schema
    #[arg(value_name = "QUANTITY")]
    quantity: String,

    /// The time up to now: hours, days or weeks
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = seconds)]
    last: i64,

    /// Also the same time so long before
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    compare: Option<i64>,

    /// Print JSON: the answer of /api/v1/fleet/samples, with the events of /api/v1/fleet/events
    #[arg(long)]
    json: bool,
}

/// Seconds of a time such as `24h`, `7d` or `1w`.
fn seconds(text: &str) -> Result<i64, String> {
    let invalid = || "expected hours, days or weeks, such as 24h, 7d or 1w".to_owned();
    let unit = text.chars().next_back().ok_or_else(invalid)?;
    let number = text.strip_suffix(unit).and_then(|text| text.parse::<u16>().ok());
    let hours = match unit {
        'h' => 1,
        'd' => 24,
        'w' => 24 * 7,
        _ => return Err(invalid()),
    };
    let number = number.filter(|number| *number > 0).ok_or_else(invalid)?;
    Ok(i64::from(number) * hours * 3_600)
}

#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    from: Timestamp,
    to: Timestamp,
    step: i64,
    series: Vec<Series>,
    compared: Option<Vec<Series>>,
    more: bool,
}

#[derive(Debug, Deserialize)]
struct Series {
    source: String,
    labels: BTreeMap<String, String>,
    statistic: String,
    unit: String,
    points: Vec<(i64, f64)>,
}

/// A JSON object, as it is written.
type Raw = BTreeMap<String, Box<RawValue>>;

#[derive(Debug, Deserialize)]
struct Changes {
    events: Vec<Change>,
    more: bool,
}

/// Something that has changed in that time.
#[derive(Debug, Deserialize)]
struct Change {
    at: Timestamp,
    kind: String,
    text: String,
}

/// Asks the gateway, and prints what it has kept up to `now`.
///
/// Errors: the gateway does not answer, or there is nowhere to print.
pub(super) fn run(args: &HistoryArgs, now: Timestamp, out: &mut impl Write) -> anyhow::Result<()> {
    let step = STEPS.into_iter().find(|step| args.last / step <= COLUMNS_MAX).unwrap_or(604_800);
    let to = Timestamp::from_second(now.as_second())?;
    let from = to.checked_sub(SignedDuration::from_secs(args.last))?;
    let mut query = format!("quantity={}&from={from}&to={to}&step={step}", encoded(&args.quantity));
    if let Some(compare) = args.compare {
        let _ = write!(query, "&compare={}h", compare / 3_600);
    }
    let answer = args.admin.ask("/api/v1/fleet/samples", &query).map_err(Failure::from)?;
    // Also those of the second that runs.
    let end = to.checked_add(SignedDuration::from_secs(1))?;
    let query = format!("from={from}&to={end}&limit={EVENTS_MAX}");
    let changes = args.admin.ask("/api/v1/fleet/events", &query).map_err(Failure::from)?;
    if args.json {
        let (mut all, mut changes): (Raw, Raw) =
            (serde_json::from_slice(&answer)?, serde_json::from_slice(&changes)?);
        all.extend(changes.remove_entry("events"));
        serde_json::to_writer(&mut *out, &all)?;
        out.write_all(b"\n")?;
    } else {
        out.write_all(text(&args.quantity, &serde_json::from_slice(&answer)?).as_bytes())?;
        out.write_all(changed(&serde_json::from_slice(&changes)?).as_bytes())?;
    }
    Ok(out.flush()?)
}

/// A name that may stand in a query.
fn encoded(name: &str) -> String {
    name.bytes().fold(String::new(), |mut all, byte| {
        if byte.is_ascii_alphanumeric() || b"._-".contains(&byte) {
            all.push(char::from(byte));
        } else {
            let _ = write!(all, "%{byte:02X}");
        }
        all
    })
}

/// A line for each series: its chart, its last value, and whom it is about.
fn text(quantity: &str, answer: &Answer) -> String {
    let Answer { from, to, step, series, compared, more } = answer;
    let mut text = format!("{quantity}, {from} to {to}, {step} s a column\n");
    for one in series {
        let before = compared.iter().flatten().find(|other| {
            (&other.source, &other.labels, &other.statistic)
                == (&one.source, &one.labels, &one.statistic)
        });
        let all = one.points.iter().chain(before.into_iter().flat_map(|other| &other.points));
        let bounds = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), (_, value)| {
            (least.min(*value), most.max(*value))
        });
        let labels: Vec<_> = one.labels.iter().map(|(name, of)| format!("{name}={of}")).collect();
        let _ = writeln!(
            text,
            "{}  {} {} {} {}",
            chart(one, answer, bounds),
            last(one),
            one.statistic,
            one.source,
            labels.join(" ")
        );
        if let Some(before) = before {
            let _ = writeln!(text, "{}  {} before", chart(before, answer, bounds), last(before));
        }
    }
    if series.is_empty() {
        text.push_str("nothing is kept of it in that time\n");
    }
    if *more {
        text.push_str("there are more series than are shown\n");
    }
    text
}

/// A line for each event, the newest first.
fn changed(changes: &Changes) -> String {
    let mut text = String::new();
    for Change { at, kind, text: what } in &changes.events {
        let what: String = what.chars().filter(|c| is_visible(*c)).collect();
        let _ = writeln!(text, "{at:.0}  {kind}: {what}");
    }
    if changes.more {
        text.push_str("there are more events than are shown\n");
    }
    text
}

/// The last value, with its unit.
fn last(series: &Series) -> String {
    let value = series.points.last().map_or_else(String::new, |(_, value)| format!("{value:.4}"));
    let value = value.trim_end_matches('0').trim_end_matches('.');
    match series.unit.as_str() {
        "" | "1" => value.to_owned(),
        unit => format!("{value} {unit}"),
    }
}

/// A bar for each step that has a value, and nothing for one that has none.
fn chart(series: &Series, answer: &Answer, (least, most): (f64, f64)) -> String {
    let step = answer.step.max(1);
    let first = answer.from.as_second().div_euclid(step) * step;
    let count = (answer.to.as_second() - first).div_euclid(step).clamp(0, 2 * COLUMNS_MAX) + 1;
    let bar = |column: i64| {
        let at = first + column * step;
        let point = series.points.binary_search_by_key(&at, |(at, _)| *at).ok();
        let value = point.and_then(|point| series.points.get(point)).map(|(_, value)| *value)?;
        let share = if most > least { (value - least) / (most - least) } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 7")]
        let height = (share * 7.0).round() as usize;
        BARS.get(height).copied()
    };
    (0..count).map(|column| bar(column).unwrap_or(' ')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_a_bar_for_each_value_and_a_gap_where_there_is_none() {
        let answer = r#"{"from":"1970-01-01T00:01:10Z","to":"1970-01-01T00:06:00Z","step":60,
            "series":[{"source":"http://e/metrics","labels":{"engine":"0"},"statistic":"mean",
                "unit":"W","points":[[60,1.0],[120,8.0],[300,4.5]]}],
            "compared":[{"source":"http://e/metrics","labels":{"engine":"0"},"statistic":"mean",
                "unit":"W","points":[[180,2.0]]}],
            "more":true}"#;
        let shown = text("hw.power", &serde_json::from_str(answer).unwrap());
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(
            lines,
            [
                "hw.power, 1970-01-01T00:01:10Z to 1970-01-01T00:06:00Z, 60 s a column",
                "▁█  ▅   4.5 W mean http://e/metrics engine=0",
                "  ▂     2 W before",
                "there are more series than are shown",
            ]
        );
    }

    #[test]
    fn each_event_has_a_line_that_cannot_move_the_cursor() {
        let changes = r#"{"events":[{"at":"2026-11-27T18:30:01.25Z","kind":"engine_model",
            "text":"serves \u001b[2Jm now"}],"more":true,"from":"","to":""}"#;
        let shown = changed(&serde_json::from_str(changes).unwrap());
        assert_eq!(
            shown,
            "2026-11-27T18:30:01Z  engine_model: serves [2Jm now\n\
             there are more events than are shown\n"
        );
    }

    #[test]
    fn times_are_hours_days_or_weeks() {
        assert_eq!(
            [seconds("24h"), seconds("7d"), seconds("1w")],
            [Ok(86_400), Ok(604_800), Ok(604_800)]
        );
        for wrong in ["", "h", "0h", "5m", "99999999d", "1é"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        assert_eq!(encoded("hw.power&x=é"), "hw.power%26x%3D%C3%A9");
    }
}
