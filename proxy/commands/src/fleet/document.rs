//! A reading in JSON.

use serde_json::{Map, Value, json};
use taximeter_collections::Gather as _;
use taximeter_control::exposition::Exposition;
use taximeter_fleet::{
    Distribution, Identity, Measured, Percentile, Program, Reading, Unknown, Value as Is,
};

/// The whole reading.
pub(super) fn of(exposition: &Exposition<'_>, reading: &Reading) -> Value {
    let told = exposition.skipped.told().iter();
    let skipped: Vec<_> =
        told.map(|(line, why)| json!({"line": line, "why": why.to_string()})).collect();
    json!({
        "form": exposition.form.to_string(),
        "lines": exposition.lines,
        "samples": exposition.samples.len(),
        "cut": exposition.cut,
        "programs": reading.programs.iter().map(program).collect::<Vec<_>>(),
        "versions": reading.versions.iter().map(|version| json!({
            "of": version.of.as_str(), "host": version.host, "version": version.version,
        })).collect::<Vec<_>>(),
        "quantities": reading.measured.iter().map(measured).collect::<Vec<_>>(),
        "unknown": reading.unknown.iter().map(unknown).collect::<Vec<_>>(),
        "unread": reading.unread,
        "skipped": {"count": exposition.skipped.count(), "lines": skipped},
        "notes": reading.notes,
    })
}

fn program(program: &Program) -> Value {
    json!({
        "name": program.name,
        "title": program.title,
        "read": program.is_read,
        "certain": program.is_certain,
        "marks": program.marks,
        "generation": program.generation,
    })
}

fn measured(measured: &Measured) -> Value {
    let mut value = json!({
        "name": measured.quantity.name,
        "layer": measured.quantity.layer.code(),
        "unit": measured.quantity.unit,
        "value": Value::Null,
        "labels": labels(&measured.identity, &measured.attributes),
        "program": measured.program,
        "from": measured.from,
    });
    let is = match measured.value {
        Is::Number(number) => json!(number),
        Is::Histogram(distribution) => histogram(&distribution),
    };
    if let Some(members) = value.as_object_mut() {
        members.insert("value".to_owned(), is);
        if !measured.how.is_empty() {
            members.insert("how".to_owned(), json!(measured.how));
        }
        if let Some(age) = measured.age {
            members.insert("age_seconds".to_owned(), json!(age.as_secs_f64()));
        }
    }
    value
}

fn histogram(of: &Distribution) -> Value {
    json!({
        "count": of.count,
        "sum": of.sum,
        "p50": percentile(of.p50),
        "p95": percentile(of.p95),
    })
}

fn percentile(percentile: Percentile) -> Value {
    match percentile {
        Percentile::About(value) => json!(value),
        Percentile::Above(bound) => json!({"above": bound}),
        Percentile::Unknown(why) => json!({"unknown": why}),
    }
}

fn unknown(unknown: &Unknown) -> Value {
    json!({
        "name": unknown.quantity.name,
        "layer": unknown.quantity.layer.code(),
        "unit": unknown.quantity.unit,
        "labels": labels(&Identity::default(), &unknown.attributes),
        "program": unknown.program,
        "why": unknown.why,
        "of": unknown.of.iter().map(|of| labels(of, &[])).collect::<Vec<_>>(),
    })
}

fn labels(identity: &Identity, attributes: &[(String, String)]) -> Value {
    let identity = identity.iter().map(|(field, value)| (field.name().to_owned(), json!(value)));
    let attributes = attributes.iter().map(|(name, value)| (name.clone(), json!(value)));
    Value::Object(identity.chain(attributes).gather::<Map<_, _>>())
}
