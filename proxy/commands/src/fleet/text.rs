//! A reading for people.

use taximeter_control::exposition::Exposition;
use taximeter_fleet::{
    Distribution, Identity, Measured, Percentile, Program, QUANTITIES, Reading, Unknown, Value,
};
use taximeter_net::visible::is_visible;

/// The whole reading: programs, quantities by layer, and what was not read.
pub(super) fn of(exposition: &Exposition<'_>, reading: &Reading) -> String {
    let mut text = String::new();
    for program in &reading.programs {
        line(&mut text, &told(program));
    }
    if reading.programs.is_empty() {
        line(&mut text, "no program is recognised");
    }
    let cut = if exposition.cut { ", and what stands behind them is not read" } else { "" };
    line(
        &mut text,
        &format!(
            "{} samples in {} lines; {} skipped{cut}\n",
            exposition.samples.len(),
            exposition.lines,
            exposition.skipped.count()
        ),
    );
    for version in &reading.versions {
        let host = version.host.as_deref().unwrap_or("the host");
        line(&mut text, &format!("{} of {host}: version {}", version.of.as_str(), version.version));
    }
    for quantity in QUANTITIES {
        for is in reading.measured.iter().filter(|is| is.quantity == *quantity) {
            line(&mut text, &measured(is));
        }
        for is in reading.unknown.iter().filter(|is| is.quantity == *quantity) {
            line(&mut text, &unknown(is));
        }
    }
    for note in &reading.notes {
        line(&mut text, &format!("note: {note}"));
    }
    for (number, why) in exposition.skipped.told() {
        line(&mut text, &format!("line {number} is skipped: {why}"));
    }
    let told = exposition.skipped.told().len() as u64;
    if exposition.skipped.count() > told {
        line(&mut text, &format!("… and {} more lines", exposition.skipped.count() - told));
    }
    if !reading.unread.is_empty() {
        line(&mut text, &format!("not in the schema: {}", reading.unread.join(", ")));
    }
    text
}

/// Adds a line. What others wrote cannot move the cursor.
fn line(text: &mut String, line: &str) {
    for character in line.chars() {
        match is_visible(character) || character == '\n' {
            true => text.push(character),
            false => text.extend(character.escape_unicode()),
        }
    }
    text.push('\n');
}

fn told(program: &Program) -> String {
    let generation = program.generation.map(|is| format!(" ({is})")).unwrap_or_default();
    let marks = program.marks.join(", ");
    let but = match (program.is_read, program.is_certain) {
        (false, _) => "; its metrics are not read",
        (true, false) => "; a single mark is not certain",
        (true, true) => "",
    };
    format!("{}{generation}, because: {marks}{but}", program.title)
}

fn measured(measured: &Measured) -> String {
    let quantity = measured.quantity;
    let value = match measured.value {
        Value::Number(number) => format!("{} {}", figure(number), quantity.unit),
        Value::Histogram(of) => histogram(&of, quantity.unit),
    };
    let how = match measured.how.as_str() {
        "" => String::new(),
        how => format!(" ({how})"),
    };
    let age = measured.age.map(|age| format!(", {} s old", age.as_secs())).unwrap_or_default();
    format!(
        "{} {} = {value}{} from {}{how}{age}",
        quantity.layer.code(),
        quantity.name,
        labels(&measured.identity, &measured.attributes),
        measured.from
    )
}

fn unknown(unknown: &Unknown) -> String {
    let of = match unknown.of.as_slice() {
        [] => String::new(),
        [one] => format!(" of{}", labels(one, &[])),
        [one, others @ ..] => format!(" of{} and {} more", labels(one, &[]), others.len()),
    };
    format!(
        "{} {} unknown{}{of}: {}",
        unknown.quantity.layer.code(),
        unknown.quantity.name,
        labels(&Identity::default(), &unknown.attributes),
        unknown.why
    )
}

fn histogram(of: &Distribution, unit: &str) -> String {
    let or_unknown = |is: Option<f64>| is.map_or_else(|| "unknown".to_owned(), figure);
    format!(
        "count {}, sum {} {unit}, p50 {}, p95 {}",
        or_unknown(of.count),
        or_unknown(of.sum),
        percentile(of.p50),
        percentile(of.p95)
    )
}

fn percentile(percentile: Percentile) -> String {
    match percentile {
        Percentile::About(value) => figure(value),
        Percentile::Above(bound) => format!("above {}", figure(bound)),
        Percentile::Unknown(why) => format!("unknown ({why})"),
    }
}

fn labels(identity: &Identity, attributes: &[(String, String)]) -> String {
    let identity = identity.iter().map(|(field, value)| (field.name(), value));
    let attributes = attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let all: Vec<_> =
        identity.chain(attributes).map(|(name, value)| format!("{name}={value:?}")).collect();
    match all.as_slice() {
        [] => String::new(),
        all => format!(" {{{}}}", all.join(", ")),
    }
}

/// A number with nine digits at most behind the first one that is not 0.
fn figure(number: f64) -> String {
    if number == 0.0 || number.abs() >= 1e9 {
        return number.to_string();
    }
    let rounded: f64 = format!("{number:.9e}").parse().unwrap_or(number);
    rounded.to_string()
}
