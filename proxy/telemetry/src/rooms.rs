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
    /// DiskBudget for `series_max` series of each instrument.
    pub(super) fn new(series_max: usize) -> Self {
        Self { taken: Mutex::default(), series_max }
    }

    /// The series of these labels, or the one that stands for it where there is no room for another.
    pub(super) fn key(
        &self,
        instrument: Instrument,
        labels: Vec<Label>,
        is_there: impl Fn(&Key) -> bool,
    ) -> Key {
        let spec = instrument.spec();
        debug_assert!(
            labels.iter().all(|label| spec.has(label.key())),
            "{instrument:?}: {labels:?}"
        );
        let own = Key::from_parts(spec.name, labels);
        if own.labels().next().is_none() || is_there(&own) {
            return own;
        }
        // Held, so that no two take the last room.
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
            if is_there(key) {
                return key.clone();
            }
            if *taken < most {
                *taken += 1;
                return key.clone();
            }
        }
        narrowed(|_| true)
    }
}
