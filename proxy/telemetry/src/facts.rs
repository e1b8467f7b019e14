//! What alerts compare with: limits, and times at which something ends or was made.

use std::time::Duration;

use ::metrics::{GaugeFn as _, Label};
use jiff::Timestamp;

use super::metrics::Metrics;
use super::names::{Instrument, key};

/// When a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertificateFact {
    /// What shows it: `listen`, `admin` or `otlp`.
    pub kind: &'static str,
    /// Its first second, since 1970.
    pub not_before: i64,
    /// Its last one.
    pub not_after: i64,
}

/// What is known of the gateway that runs, and of its configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts<'a> {
    /// When the process has started.
    pub started_at: Timestamp,
    /// How long a request may take.
    pub age_max: Duration,
    /// For how many days details are kept.
    pub keep_days: u32,
    /// The price books, and their dates in seconds since 1970.
    pub books: Vec<(&'a str, i64)>,
    /// The certificates that could be read.
    pub certificates: Vec<CertificateFact>,
}

impl Metrics {
    /// Tells what is known.
    pub fn note_facts(&self, facts: &Facts<'_>) {
        let set = |instrument, kind: Option<&str>, value: f64| {
            let labels = kind.map(|kind| Label::new(key::KIND, kind.to_owned()));
            self.instruments.number(instrument, labels.into_iter().collect()).set(value);
        };
        set(Instrument::StartTime, None, facts.started_at.as_duration().as_secs_f64());
        set(Instrument::AgeMax, None, facts.age_max.as_secs_f64());
        set(Instrument::DetailsKeep, None, f64::from(facts.keep_days));
        for (book, date) in &facts.books {
            set(Instrument::PricesDate, Some(book), float(*date));
        }
        for CertificateFact { kind, not_before, not_after } in &facts.certificates {
            set(Instrument::CertificateBegin, Some(kind), float(*not_before));
            set(Instrument::CertificateEnd, Some(kind), float(*not_after));
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 have room")]
const fn float(seconds: i64) -> f64 {
    seconds as f64
}
