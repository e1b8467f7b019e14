//! Days whose single requests are gone. Their sums by the hour stay.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use taximeter_ledger::{LedgerId, Place};

/// Why the details of a day are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoneCause {
    /// They were older than they are kept.
    Age,
    /// There was no room for them.
    Room,
    /// The store was lost, and its files do not have them.
    Lost,
}

impl GoneCause {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Age => "age",
            Self::Room => "room",
            Self::Lost => "lost",
        }
    }

    /// The cause of this name.
    pub fn of(name: &str) -> Self {
        let named = [Self::Age, Self::Room].into_iter().find(|cause| cause.name() == name);
        named.unwrap_or(Self::Lost)
    }
}

/// A UTC day whose details are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoneDay {
    /// The day.
    pub day: Date,
    /// Requests that are gone.
    pub requests: u64,
    /// Their first admission.
    pub first: Timestamp,
    /// Their last admission.
    pub last: Timestamp,
    /// The files that had them; none in a database.
    pub files: Vec<GoneFile>,
    /// The last entry of such a request, by ledger.
    pub last_entries: BTreeMap<LedgerId, u64>,
    /// When they went.
    pub gone_at: Timestamp,
    /// Why.
    pub cause: GoneCause,
}

/// A file of requests that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoneFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of all its bytes.
    pub sha256: String,
}

impl GoneDay {
    /// Whether a request of this entry, which was admitted on that day, was one of them.
    #[must_use]
    pub fn has(&self, place: Place) -> bool {
        self.last_entries.get(&place.ledger).is_some_and(|last| place.seq <= *last)
    }
}
