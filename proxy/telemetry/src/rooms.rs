//! Limits how many series an instrument may have. The first nine tenths are free for any series.
//! The last tenth is for series without values that clients and engines choose. The very last
//! series takes the rest.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ::metrics::{Key, Label};

use super::bounded::rest_of;
use super::names::{Instrument, key};

/// What clients, engines and configurations choose.
const CHOSEN: [&str; 4] =
    [key::TENANT, key::GEN_AI_REQUEST_MODEL, key::GEN_AI_RESPONSE_MODEL, key::ERROR_TYPE];

/// How many series each instrument has, and may have.
pub(super) struct Rooms {
    taken: Mutex<HashMap<Instrument, usize>>,
    series_max: usize,
}

impl Rooms {
    /// Room for `series_max` series of each instrument.
    pub(super) fn new(series_max: usize) -> Self {
        Self { taken: Mutex::default(), series_max }
    }

    /// The series of these labels, or the one that stands for it where there is no room for another.
    /// `found` finds a series, and `made` makes one that is not there.
    pub(super) fn series<T>(
        &self,
        instrument: Instrument,
        labels: Vec<Label>,
        found: impl Fn(&Key) -> Option<T>,
        made: impl FnOnce(&Key) -> T,
    ) -> T {
        let spec = instrument.spec();
        debug_assert!(
            labels.iter().all(|label| spec.has(label.key())),
            "{instrument:?}: {labels:?}"
        );
        let own = Key::from_parts(spec.name, labels);
        if let Some(series) = found(&own) {
            return series;
        }
        if own.labels().next().is_none() {
            return made(&own);
        }
        // Held until it is made, so that no two take the last room, and none takes two.
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = taken.entry(instrument).or_default();
        let narrowed = |of: fn(&Label) -> bool| {
            let labels = own.labels().map(|label| {
                if of(label) {
                    Label::new(label.key().to_owned(), rest_of(label.key()))
                } else {
                    label.clone()
                }
            });
            Key::from_parts(spec.name, labels.collect::<Vec<_>>())
        };
        let collapsed = narrowed(|label| CHOSEN.contains(&label.key()));
        let for_all = self.series_max - self.series_max.div_ceil(10);
        for (key, most) in [(&own, for_all), (&collapsed, self.series_max.saturating_sub(1))] {
            if let Some(series) = found(key) {
                return series;
            }
            if *taken < most {
                *taken += 1;
                return made(key);
            }
        }
        made(&narrowed(|_| true))
    }
}
