//! The lines above the tables: the state of the whole gateway.

use super::figures::{UNKNOWN, amount, count, name, quantile, rate, span, spend};
use super::snapshot::{Month, Snapshot};

/// Longest name of a gateway, in columns.
const NAME_COLUMNS_MAX: usize = 32;

/// A part of a line, with its style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) text: String,
    pub(super) tone: Tone,
}

/// The style of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    /// An important name or number.
    Strong,
    Good,
    /// A warning.
    Odd,
    Bad,
}

fn piece(tone: Tone, text: impl Into<String>) -> Segment {
    Segment { text: text.into(), tone }
}

/// Name, version, uptime and state.
pub(super) fn who(snapshot: &Snapshot) -> Vec<Segment> {
    let Snapshot { gateway, version, uptime, .. } = snapshot;
    let mut line = vec![
        piece(Tone::Strong, name(gateway, NAME_COLUMNS_MAX)),
        piece(Tone::Plain, format!("taximeter {}", name(version, 16))),
        piece(Tone::Plain, format!("up {}", span(*uptime))),
    ];
    line.push(match (&snapshot.away, snapshot.draining) {
        (Some(_), _) => piece(Tone::Bad, "no answer"),
        (None, true) => piece(Tone::Odd, "draining"),
        (None, false) => piece(Tone::Good, "serving"),
    });
    line
}

/// Request rate, token rates and running requests.
pub(super) fn what(snapshot: &Snapshot) -> Vec<Segment> {
    let of = |figure: fn(&super::snapshot::Rates) -> f64| {
        snapshot.total.as_ref().map_or_else(|| UNKNOWN.to_owned(), |total| rate(figure(total)))
    };
    let streams = snapshot.streams as u64;
    vec![
        piece(Tone::Strong, format!("{} requests/s", of(|total| total.requests))),
        piece(
            Tone::Strong,
            format!(
                "{} in, {} out tokens/s",
                of(|total| total.input_tokens),
                of(|total| total.output_tokens)
            ),
        ),
        piece(Tone::Plain, format!("{} streams", count(streams))),
        piece(Tone::Plain, format!("{} running", count(snapshot.running as u64))),
    ]
}

/// Spend, ledger and store.
pub(super) fn money(snapshot: &Snapshot) -> Vec<Segment> {
    let currency = snapshot.currency.as_deref().unwrap_or_default();
    let spent = snapshot.total.as_ref().map_or_else(|| UNKNOWN.to_owned(), spend);
    let hour = format!("spend {spent} {}", name(currency, 3));
    let mut line = vec![piece(Tone::Strong, format!("{}/h", hour.trim_end()))];
    line.extend(snapshot.month.as_ref().map(|month| piece(Tone::Strong, owed(month))));
    let ledger = &snapshot.ledger;
    line.push(if !(ledger.is_healthy && ledger.is_open) {
        piece(Tone::Bad, "ledger not writable")
    } else if ledger.lost_entries > 0 {
        piece(Tone::Bad, format!("ledger lost {} entries", count(ledger.lost_entries)))
    } else {
        piece(Tone::Good, "ledger ok")
    });
    let lag = snapshot.store.pending_entries;
    line.push(match (&snapshot.store.fault, lag) {
        (Some(_), _) => piece(Tone::Bad, format!("store fails, {} behind", count(lag))),
        (None, 0) => piece(Tone::Good, "store up to date"),
        (None, _) => piece(Tone::Plain, format!("store {} behind", count(lag))),
    });
    line
}

/// An error, in one sentence.
pub(super) fn trouble(snapshot: &Snapshot, url: &str) -> Option<String> {
    if let Some(away) = &snapshot.away {
        let since = span(away.seconds);
        let why = name(&away.why, 400);
        return Some(format!("no answer from {url} for {since}, trying again ({why})"));
    }
    snapshot.store.fault.as_ref().map(|fault| format!("store: {}", name(fault, 400)))
}

/// The title of the chart of times to first token.
pub(super) fn first_tokens(snapshot: &Snapshot) -> String {
    let of =
        |which: fn(&super::snapshot::Rates) -> _| quantile(snapshot.total.as_ref().and_then(which));
    let (p50, p95) = (of(|total| total.first_token_p50), of(|total| total.first_token_p95));
    format!("TTFT  p50 {p50}  p95 {p95}")
}

/// The title of the chart of output tokens.
pub(super) fn output_tokens(snapshot: &Snapshot) -> String {
    let known = || snapshot.points.iter().rev().filter_map(|point| point.output_tokens);
    let of = |number: Option<f64>| number.map_or_else(|| UNKNOWN.to_owned(), rate);
    let (now, most) = (of(known().next()), of(known().reduce(f64::max)));
    format!("output tokens/s  now {now}  peak {most}")
}

/// The window of the rates.
pub(super) fn window(snapshot: &Snapshot) -> String {
    if snapshot.total.is_none() {
        return "no rates yet".to_owned();
    }
    if snapshot.window >= 60.0 {
        return "rates over the last minute".to_owned();
    }
    format!("rates over the last {}", span(snapshot.window.ceil()))
}

fn owed(month: &Month) -> String {
    let Month { name: of, billed, currency, more } = month;
    let currency = name(currency.as_deref().unwrap_or_default(), 3);
    match billed.filter(|billed| !billed.is_zero()) {
        Some(billed) if *more => format!("{}+ {currency} in {of}", amount(billed)),
        Some(billed) => format!("{} {currency} in {of}", amount(billed)),
        None if *more => format!("unknown cost in {of}"),
        None => format!("no cost in {of}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_owed_is_never_less_than_it_seems() {
        for (billed, more, text) in [
            (Some("12.5"), false, "12.50 USD in 2026-11"),
            (Some("12.5"), true, "12.50+ USD in 2026-11"),
            (Some("0"), false, "no cost in 2026-11"),
            (Some("0"), true, "unknown cost in 2026-11"),
            (None, true, "unknown cost in 2026-11"),
        ] {
            let month = Month {
                name: "2026-11".to_owned(),
                billed: billed.map(|billed| billed.parse().unwrap()),
                currency: Some("USD".to_owned()),
                more,
            };
            assert_eq!(owed(&month), text);
        }
    }
}
