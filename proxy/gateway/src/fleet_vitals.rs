//! What engines, GPUs and hosts tell, for telemetry: as far as it has metrics of it, and as long as it
//! holds.

use std::time::Instant;

use taximeter_fleet::{Board, Series, Target, TargetState, Value};
use taximeter_store::memory::Counts;
use taximeter_telemetry::FleetVital;

/// All of it, at `now`, and what is kept of it.
pub(crate) fn of(board: &Board, kept: Option<Counts>, now: Instant) -> Vec<FleetVital> {
    let mut all = Vec::new();
    if let Some(Counts { bytes, series, left_out }) = kept {
        let of_memory = [
            ("taximeter.fleet.memory.size", bytes),
            ("taximeter.fleet.memory.series", series),
            ("taximeter.fleet.memory.left_out", left_out),
        ];
        #[expect(clippy::cast_precision_loss, reason = "metrics are floats")]
        let vital = |(name, value)| FleetVital { name, labels: Vec::new(), value: value as f64 };
        all.extend(of_memory.map(vital));
    }
    for target in board.targets() {
        states(&target, now, &mut all);
        if target.silence(now).is_none() {
            let told = target.quantities.series.iter();
            let told = told.filter(|series| FleetVital::is_told(series.what.quantity.name));
            all.extend(told.filter_map(|series| vital(&target, series)));
        }
    }
    all
}

fn states(target: &Target, now: Instant, all: &mut Vec<FleetVital>) {
    let labels = || {
        vec![
            ("source".to_owned(), target.name.to_string()),
            ("target".to_owned(), target.kind.as_str().to_owned()),
        ]
    };
    let mut push = |name, value| all.push(FleetVital { name, labels: labels(), value });
    let flag = |is: bool| f64::from(u8::from(is));
    if target.state != TargetState::Waiting {
        push("taximeter.fleet.source.up", flag(target.state == TargetState::Up));
    }
    if let Some(age) = target.quantities.period.age(now) {
        push("taximeter.fleet.source.age", age.as_secs_f64());
        push("taximeter.fleet.source.stale", flag(target.silence(now).is_some()));
    }
}

/// A number; histograms have no metric.
fn vital(target: &Target, series: &Series) -> Option<FleetVital> {
    let Value::Number(value) = series.value() else { return None };
    let mut labels = vec![("source".to_owned(), target.name.to_string())];
    let upstream = target.upstreams.first();
    labels.extend(upstream.map(|name| ("upstream".to_owned(), name.clone())));
    let who = series.who.iter().map(|(field, value)| (field.name().to_owned(), value.to_owned()));
    labels.extend(who.chain(series.what.attributes.iter().cloned()));
    Some(FleetVital { name: series.what.quantity.name, labels, value })
}
