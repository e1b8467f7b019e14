//! Every series as Prometheus text, version 0.0.4.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ::metrics::{Key, Label};

use super::instruments::Value;
use super::names::{Instrument, Kind, Spec, escaped};

/// The exposition of `series`, families and series in a fixed order.
pub(super) fn render(series: Vec<(Key, Value)>) -> String {
    let mut families: BTreeMap<String, (Spec, BTreeMap<String, Value>)> = BTreeMap::new();
    for (key, value) in series {
        let Some(spec) = spec(key.name()) else { continue };
        let family = families.entry(spec.prometheus()).or_insert((spec, BTreeMap::new()));
        family.1.insert(labels(key.labels()), value);
    }
    let mut out = String::new();
    for (name, (spec, series)) in families {
        let kind = match spec.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", spec.help);
        for (labels, value) in series {
            write_series(&mut out, &name, &labels, &value);
        }
    }
    out
}

fn spec(name: &str) -> Option<Spec> {
    Instrument::ALL.iter().map(|instrument| instrument.spec()).find(|spec| spec.name == name)
}

fn write_series(out: &mut String, name: &str, labels: &str, value: &Value) {
    let braces = |more: &str| match (labels.is_empty(), more.is_empty()) {
        (true, true) => String::new(),
        (false, false) => format!("{{{labels},{more}}}"),
        _ => format!("{{{labels}{more}}}"),
    };
    // Writing to a string cannot fail.
    let _ = match value {
        Value::Number(number) => writeln!(out, "{name}{} {number}", braces("")),
        Value::Histogram(cumulative, sum) => {
            let mut count = 0;
            for (bound, below) in cumulative {
                let le = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
                let _ = writeln!(out, "{name}_bucket{} {below}", braces(&format!("le=\"{le}\"")));
                count = *below;
            }
            let plain = braces("");
            writeln!(out, "{name}_sum{plain} {sum}\n{name}_count{plain} {count}")
        }
    };
}

fn labels<'a>(labels: impl Iterator<Item = &'a Label>) -> String {
    let mut sorted: Vec<_> = labels
        .map(|label| format!("{}=\"{}\"", escaped(label.key()), quoted(label.value())))
        .collect();
    sorted.sort_unstable();
    sorted.join(",")
}

fn quoted(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use ::metrics::{CounterFn as _, HistogramFn as _};

    use super::super::instruments::Instruments;
    use super::super::names::key;
    use super::*;

    #[test]
    fn the_exposition_has_one_family_per_instrument() {
        let instruments = Instruments::new();
        let labels = vec![Label::new(key::TENANT, "a\"b\\c\nd")];
        instruments.count(Instrument::Requests, labels.clone()).increment(2);
        instruments.count(Instrument::Requests, Vec::new()).increment(1);
        instruments.buckets(Instrument::GatewayDuration, labels).record(0.002);
        let text = render(instruments.snapshot());
        assert_eq!(text.matches("# TYPE").count(), 2);
        assert!(text.contains("taximeter_requests_total 1\n"));
        assert!(text.contains("taximeter_requests_total{taximeter_tenant=\"a\\\"b\\\\c\\nd\"} 2"));
        assert!(text.contains("le=\"0.0025\"} 1\n") && text.contains("le=\"+Inf\"} 1\n"));
        assert!(text.contains("taximeter_gateway_duration_seconds_count{"));
    }
}
