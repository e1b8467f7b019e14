//! Decides whether a period is closed: nothing of it can come any more, so what is owed for it is
//! final.
//!
//! A request belongs to the time of its admission, and it may run for as long as
//! `limits.request_timeout_seconds` allows. So a period closes that long after its end, once each
//! gateway of the store has written past that time and has no request of the period open. What
//! counts is the time that gateways have written and that the store has, not the clock of whoever
//! asks.
//!
//! A gateway that is silent for a day may never come back. It is named, and nobody waits for it. If
//! it comes back, its requests are late: they belong to the closed period, beside what was said
//! before.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::period::Period;
use crate::zone::Zone;

/// Nobody waits for a gateway that has been silent for so long.
pub const SILENT_AFTER: SignedDuration = SignedDuration::from_hours(24);
/// A gateway that was silent for so long when a period ended is gone: the period does not name it.
pub const GONE_AFTER: SignedDuration = SignedDuration::from_hours(60 * 24);
/// The longest that a request may take where no gateway has said anything else: the default of
/// `limits.request_timeout_seconds`.
pub const REQUEST_MAX: SignedDuration = SignedDuration::from_hours(1);

/// Most gateways that words name.
const NAMED_MAX: usize = 3;

/// How far the journal of a gateway is in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayProgress {
    /// The name of the gateway.
    pub gateway: String,
    /// The time of its last entry in the store.
    pub heard: Timestamp,
    /// What it last said about its requests. `None` if it has said nothing yet: then what it has
    /// written says that its requests have ended, because none may take longer than the longest.
    pub settled: Option<SettledUntil>,
    /// Whether it is known to run now. It is not silent then.
    pub is_running: bool,
}

/// What a gateway said about its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettledUntil {
    /// When it said so.
    pub at: Timestamp,
    /// No request that was admitted before this time has an open reservation: the admission of the
    /// oldest open one, or the same as `at`.
    pub until: Timestamp,
    /// The longest that a request may take.
    pub request_max: SignedDuration,
}

/// Whether a period is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closing {
    /// Requests of the period may still come.
    Open {
        /// When it closes, if all gateways have written by then.
        closes_at: Timestamp,
        /// The gateways that it waits for after that time.
        waits_for: Vec<WaitedGateway>,
    },
    /// Nothing of the period can come any more, but from these gateways.
    Closed {
        /// The gateways that are silent and that nobody waits for.
        silent: Vec<SilentGateway>,
    },
}

/// A gateway that a period waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitedGateway {
    /// Its name.
    pub gateway: String,
    /// Up to when it has written.
    pub written_until: Timestamp,
    /// The admission of its oldest open request, if that is in the period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_since: Option<Timestamp>,
}

/// A gateway that is silent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SilentGateway {
    /// Its name.
    pub gateway: String,
    /// The time of its last entry.
    pub since: Timestamp,
}

/// Whether the period that ends at `end` is closed, by what the `gateways` of the store have written.
///
/// `now` is the time of the question. A period does not close before its time, and where no gateway
/// writes, `now` tells how long they have been silent.
#[must_use]
pub fn closing(end: Timestamp, gateways: &[GatewayProgress], now: Timestamp) -> Closing {
    let later = |by: SignedDuration| end.checked_add(by).unwrap_or(Timestamp::MAX);
    let is_gone = |gateway: &&GatewayProgress| {
        !gateway.is_running && end.duration_since(gateway.heard) >= GONE_AFTER
    };
    let here: Vec<_> = gateways.iter().filter(|gateway| !is_gone(gateway)).collect();
    let request_max = here.iter().filter_map(|gateway| Some(gateway.settled?.request_max)).max();
    let closes_at = later(request_max.unwrap_or(REQUEST_MAX));
    if now < closes_at {
        return Closing::Open { closes_at, waits_for: Vec::new() };
    }
    // While one gateway writes, its time says how long the others have been silent.
    let newest = here.iter().map(|gateway| gateway.heard).max().unwrap_or(now);
    let last = if now.duration_since(newest) < SILENT_AFTER { newest.min(now) } else { now };
    let (mut waits_for, mut silent) = (Vec::new(), Vec::new());
    for GatewayProgress { gateway, heard, settled, is_running } in here {
        let (written, open) = settled.map_or((*heard, *heard), |said| (said.at, said.until));
        if written >= closes_at && open >= end {
            continue;
        }
        if !is_running && last.duration_since(*heard) >= SILENT_AFTER {
            silent.push(SilentGateway { gateway: gateway.clone(), since: *heard });
            continue;
        }
        waits_for.push(WaitedGateway {
            gateway: gateway.clone(),
            written_until: written,
            open_since: (open < written && open < end).then_some(open),
        });
    }
    if waits_for.is_empty() {
        Closing::Closed { silent }
    } else {
        Closing::Open { closes_at, waits_for }
    }
}

/// Whether what is owed for a period is final, as bills, statements, exports and the API say it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PeriodStatus {
    /// Whether it is final.
    pub status: Finality,
    /// When the period closes, if that time is still to come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closes_at: Option<Timestamp>,
    /// The gateways that it waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<WaitedGateway>,
    /// The gateways that are silent, so that it does not wait for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<SilentGateway>,
    /// The first instant with single requests, if those of the period before it are gone. Sums by the
    /// hour are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details_from: Option<Timestamp>,
    /// Requests that are lost, if some may be of the period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostRequests>,
    /// The time of the question, if the period is not over.
    #[serde(skip)]
    pub until: Option<Timestamp>,
}

/// Requests that no journal, no file and no table has any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRequests {
    /// All of them ended before this time.
    pub before: Timestamp,
    /// How many.
    pub requests: u64,
}

/// Whether something is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finality {
    /// Nothing can come any more.
    Final,
    /// More may come.
    Provisional,
}

impl Finality {
    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Final => "final",
            Self::Provisional => "provisional",
        }
    }
}

impl PeriodStatus {
    /// The status of `period` at the time `now`.
    #[must_use]
    pub fn new(period: Period, closing: Closing, now: Timestamp) -> Self {
        let until = (now < period.to()).then_some(now);
        match closing {
            Closing::Open { closes_at, waits_for } => Self {
                status: Finality::Provisional,
                closes_at: waits_for.is_empty().then_some(closes_at),
                waits_for,
                silent: Vec::new(),
                details_from: None,
                lost: None,
                until,
            },
            Closing::Closed { silent } => Self {
                status: Finality::Final,
                closes_at: None,
                waits_for: Vec::new(),
                silent,
                details_from: None,
                lost: None,
                until: None,
            },
        }
    }

    /// The same, and what of the period is not there any more.
    #[must_use]
    pub fn without(self, details_from: Option<Timestamp>, lost: Option<LostRequests>) -> Self {
        Self { details_from, lost, ..self }
    }

    /// Whether it is final.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self.status, Finality::Final)
    }

    /// In words, with times of `zone`: `final`, or `provisional` and why, and which gateways are
    /// silent, and what of the period is not there any more.
    #[must_use]
    pub fn words(&self, zone: &Zone) -> String {
        let time = |at: Timestamp| zone.civil(at).strftime("%Y-%m-%d %H:%M").to_string();
        let waits = |waited: &WaitedGateway| {
            let WaitedGateway { gateway, written_until, open_since } = waited;
            match open_since {
                Some(since) => format!("{gateway}, which has requests open since {}", time(*since)),
                None => format!("{gateway}, which has written up to {}", time(*written_until)),
            }
        };
        let silent = |silent: &SilentGateway| {
            format!("{} has been silent since {}", silent.gateway, time(silent.since))
        };
        let mut words = match (self.status, self.until, self.closes_at) {
            (Finality::Provisional, Some(until), _) => {
                format!("provisional: up to {}", time(until))
            }
            (Finality::Provisional, None, Some(at)) => {
                format!("provisional: closes at {}", time(at))
            }
            (Finality::Provisional, None, None) => {
                format!("provisional: waits for {}", named(&self.waits_for, waits))
            }
            (Finality::Final, ..) if self.silent.is_empty() => "final".to_owned(),
            (Finality::Final, ..) => {
                format!("final; not waited for: {}", named(&self.silent, silent))
            }
        };
        if let Some(gone) = self.gone_words(zone) {
            words += "; ";
            words += &gone;
        }
        words
    }

    /// In words, with times of `zone`, what of the period is not there any more, if anything is not.
    #[must_use]
    pub fn gone_words(&self, zone: &Zone) -> Option<String> {
        let details = self.details_from.map(|from| format!("details until {}", day(from, zone)));
        let lost = self.lost.map(|LostRequests { before, requests }| {
            let are =
                if requests == 1 { "1 request is" } else { &format!("{requests} requests are") };
            format!("{are} lost that ended before {}", day(before, zone))
        });
        let words: Vec<_> = details.into_iter().chain(lost).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

/// A day, or a time if it is not the begin of one.
fn day(at: Timestamp, zone: &Zone) -> String {
    let civil = zone.civil(at);
    let is_midnight = civil.time() == jiff::civil::Time::midnight();
    let format = if is_midnight { "%Y-%m-%d" } else { "%Y-%m-%d %H:%M" };
    civil.strftime(format).to_string()
}

/// The first of a list, and how many more there are.
fn named<T>(list: &[T], words: impl Fn(&T) -> String) -> String {
    let mut named: Vec<_> = list.iter().take(NAMED_MAX).map(words).collect();
    let more = list.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        named.push(format!("and {more} more"));
    }
    named.join("; ")
}

#[cfg(test)]
mod tests;
