//! Numbers and times as words, for tables.

use jiff::{SignedDuration, Timestamp};
use taximeter_billing::text::{TextColumn, grouped};

pub(crate) fn column(head: &str, cells: Vec<String>, total: &str, right: bool) -> TextColumn {
    TextColumn { head: head.to_owned(), cells, total: total.to_owned(), right }
}

pub(crate) fn growth(change: Option<i64>) -> String {
    let Some(change) = change else { return String::new() };
    let sign = if change < 0 { "-" } else { "+" };
    format!("{sign}{}", grouped(&change.unsigned_abs().to_string()))
}

pub(crate) fn tokens(count: Option<u64>) -> String {
    count.map_or("unknown".to_owned(), |count| grouped(&count.to_string()))
}

pub(crate) fn percent(share: Option<f64>) -> Option<String> {
    share.map(|share| format!("{:.0} %", share * 100.0))
}

pub(crate) fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(&count.to_string()), if count == 1 { "" } else { "s" })
}

pub(crate) fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

pub(crate) fn duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}
