//! What engines, GPUs and hosts tell, as series. They come and go with their sources, so they are not
//! among those that the gateway counts itself and keeps as long as it runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use ::metrics::{GaugeFn as _, Key, Label};

use super::births::Births;
use super::instruments::{Number, Reading, Series};
use super::names::{Instrument, key};

/// One value of one source.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetVital {
    /// The name of the quantity.
    pub name: &'static str,
    /// What tells it apart, by the names of the schema.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub value: f64,
}

/// The instruments of quantities, by their names.
static INSTRUMENTS: LazyLock<HashMap<&str, Instrument>> = LazyLock::new(|| {
    let fleet = Instrument::ALL.iter().filter(|instrument| instrument.is_of_fleet());
    fleet.map(|instrument| (instrument.spec().name, *instrument)).collect()
});

impl FleetVital {
    /// Whether a quantity of this name is told as a metric.
    #[must_use]
    pub fn is_told(name: &str) -> bool {
        INSTRUMENTS.contains_key(name)
    }
}

type Held = BTreeMap<(Instrument, Vec<Label>), Arc<Series<Number>>>;

/// The series that are there now.
pub(super) struct FleetSeries {
    held: Mutex<Held>,
    births: Births,
    /// Most series of an instrument. What is beyond is left out: values of other things do not add up.
    series_max: usize,
}

impl FleetSeries {
    pub(super) fn new(births: Births, series_max: usize) -> Self {
        Self { held: Mutex::default(), births, series_max }
    }

    /// Exactly these, by instrument and then by attributes. A series that was there before is the same.
    pub(super) fn readings(&self, vitals: &[FleetVital]) -> Vec<(Instrument, Reading)> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *held);
        let mut counts: HashMap<Instrument, usize> = HashMap::new();
        for FleetVital { name, labels, value } in vitals {
            let Some(instrument) = INSTRUMENTS.get(name).copied() else { continue };
            let labels = labels_of(instrument, labels);
            let place = (instrument, labels);
            let count = counts.entry(instrument).or_default();
            // Of two that differ in nothing that is told the first counts.
            if *count >= self.series_max || held.contains_key(&place) {
                continue;
            }
            *count += 1;
            let series = before.remove(&place).unwrap_or_else(|| {
                let key = Key::from_parts(*name, place.1.clone());
                Series::new(&key, &self.births, Number::default())
            });
            series.set(*value);
            held.insert(place, series);
        }
        let all = held.iter();
        all.map(|((of, _), series)| (*of, Reading::Number(series.clone()))).collect()
    }
}

/// The attributes that the instrument can have, in their order.
fn labels_of(instrument: Instrument, labels: &[(String, String)]) -> Vec<Label> {
    let spec = instrument.spec();
    let known = labels.iter().filter_map(|(name, value)| {
        let (_, key) = key::FLEET.iter().find(|(is, _)| is == name)?;
        spec.has(key).then(|| Label::new(*key, value.clone()))
    });
    let mut known: Vec<_> = known.collect();
    taximeter_collections::sort(&mut known);
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruments::Value;

    const RUNNING: &str = "taximeter.fleet.engine.requests_running";
    const USAGE: &str = "taximeter.fleet.engine.kv_cache_usage";

    fn vital(name: &'static str, engine: &str, value: f64) -> FleetVital {
        let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let labels = vec![label("source", "http://e"), label("engine", engine)];
        FleetVital { name, labels, value }
    }

    /// Each series as `name{values of labels} value`, with its id.
    fn told(readings: &[(Instrument, Reading)]) -> Vec<(String, usize)> {
        let one = |(instrument, reading): &(Instrument, Reading)| {
            let labels: Vec<_> = reading.labels().iter().map(Label::value).collect();
            let Value::Number(value) = reading.value() else { panic!("a number") };
            (format!("{}{{{}}} {value}", instrument.spec().name, labels.join(",")), reading.id())
        };
        readings.iter().map(one).collect()
    }

    #[test]
    fn a_series_is_there_as_long_as_its_source_tells_it() {
        let series = FleetSeries::new(Births::default(), 10);
        let first = told(&series.readings(&[vital(USAGE, "0", 0.5), vital(RUNNING, "0", 3.0)]));
        let texts: Vec<_> = first.iter().map(|(text, _)| text.as_str()).collect();
        let expected = [format!("{RUNNING}{{0,http://e}} 3"), format!("{USAGE}{{0,http://e}} 0.5")];
        assert_eq!(texts, expected);
        let next = told(&series.readings(&[vital(USAGE, "0", 0.75), vital(USAGE, "1", 0.1)]));
        assert_eq!(next.len(), 2);
        assert_eq!(next[0], (format!("{USAGE}{{0,http://e}} 0.75"), first[1].1));
        assert!(series.readings(&[]).is_empty());
    }

    #[test]
    fn series_are_bounded_and_what_is_no_metric_is_none() {
        let series = FleetSeries::new(Births::default(), 10);
        let many: Vec<_> = (0..99).map(|n| vital(RUNNING, &n.to_string(), 1.0)).collect();
        assert_eq!(series.readings(&many).len(), 10);
        let twice = [vital(RUNNING, "0", 1.0), vital(RUNNING, "0", 2.0)];
        let twice = told(&series.readings(&twice));
        assert_eq!((twice.len(), twice[0].0.ends_with(" 1")), (1, true));
        let labels = vec![("hw.id".to_owned(), "not of an engine".to_owned())];
        let odd = [
            FleetVital { name: "hw.power", labels: Vec::new(), value: 1.0 },
            FleetVital { name: RUNNING, labels, value: 1.0 },
        ];
        assert_eq!(told(&series.readings(&odd))[0].0, format!("{RUNNING}{{}} 1"));
        assert!(FleetVital::is_told(RUNNING) && !FleetVital::is_told("hw.power"));
    }
}
