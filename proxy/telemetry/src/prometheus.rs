//! Writes every series for Prometheus, piece by piece, so that no scrape is held in memory as a
//! whole.

mod protobuf;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::vec;

use taximeter_config::GenAi;

use super::exemplar::Exemplar;
use super::instruments::{Distribution, Reading, Value};
use super::names::{Instrument, InstrumentKind, Spec, escaped};
use super::resource::{SCOPE, VERSION, schema_url};
use super::scrapers::{Scraper, Scrapers};
use super::trace::Found;

/// A piece is handed on when it is this long, in bytes.
const PIECE_BYTES: usize = 32 << 10;
/// Most series in one message of protobuf; of more, the family comes again.
const MESSAGE_SERIES_MAX: usize = 64;

/// The format of a scrape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpositionFormat {
    /// Text, version 0.0.4. Every Prometheus reads it.
    Text,
    /// OpenMetrics 1.0: like text, with units and exemplars.
    OpenMetrics,
    /// Prometheus' protobuf: like OpenMetrics, with native histograms.
    Protobuf,
}

impl ExpositionFormat {
    /// The format that `accept` prefers, or text if it names none. Protobuf is chosen only if there
    /// are native histograms.
    pub fn accepted(accept: &str, has_native: bool) -> Self {
        let offers = accept.split(',').filter_map(|offer| {
            let mut parts = offer.split(';').map(str::trim);
            let format = match parts.next()? {
                "application/openmetrics-text" => Self::OpenMetrics,
                "application/vnd.google.protobuf" if has_native => Self::Protobuf,
                "text/plain" | "text/*" | "*/*" => Self::Text,
                _ => return None,
            };
            let mut quality = 1.0;
            for (name, value) in parts.filter_map(|part| part.split_once('=')) {
                match name.trim() {
                    "q" => quality = value.trim().parse().unwrap_or(0.0),
                    // Of what is not ours, the standard wants the older format.
                    "version" if format == Self::OpenMetrics => {
                        matches!(value.trim(), "1.0.0" | "0.0.1").then_some(())?;
                    }
                    "proto" => {
                        (value.trim() == "io.prometheus.client.MetricFamily").then_some(())?
                    }
                    "encoding" => (value.trim() == "delimited").then_some(())?,
                    _ => {}
                }
            }
            (quality > 0.0).then_some((format, quality))
        });
        let best =
            offers.reduce(|best: (Self, f64), next| if next.1 > best.1 { next } else { best });
        best.map_or(Self::Text, |(format, _)| format)
    }

    /// `content-type` of the answer.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; \
                 encoding=delimited"
            }
        }
    }
}

/// One scrape, as pieces. Each series has its value of the moment at which it is written.
pub struct Exposition {
    format: ExpositionFormat,
    /// The scope, where each series names it.
    scope: Vec<(&'static str, &'static str)>,
    /// Families and series in a fixed order.
    readings: vec::IntoIter<(Instrument, Reading)>,
    family: Option<(Instrument, String)>,
    piece: Vec<u8>,
    ended: bool,
    scrape: Option<Scrape>,
}

/// A scrape by a scraper that is remembered.
pub(super) struct Scrape {
    pub(super) scrapers: Arc<Scrapers>,
    pub(super) by: Scraper,
    /// The newest series that it had seen before.
    pub(super) seen: u64,
    /// The newest series of this scrape.
    pub(super) newest: u64,
}

impl Exposition {
    /// Of these readings, each with the scope of this generation's names as labels, where there is one.
    pub(super) fn new(
        format: ExpositionFormat,
        scope_of: Option<GenAi>,
        resource: &BTreeMap<String, String>,
        readings: Vec<(Instrument, Reading)>,
    ) -> Self {
        let mut new = Self {
            format,
            scope: scope_of.map(scope).unwrap_or_default(),
            readings: readings.into_iter(),
            family: None,
            piece: Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4),
            ended: false,
            scrape: None,
        };
        new.write_target(resource);
        new
    }

    /// Tells a scraper 0 of what is new to it. Once it has all, it has seen it.
    pub(super) fn to(self, scrape: Option<Scrape>) -> Self {
        Self { scrape, ..self }
    }

    /// What is told of a series.
    fn value(&self, instrument: Instrument, reading: &Reading) -> Value {
        let value = reading.value_with_native_if(self.format == ExpositionFormat::Protobuf);
        let is_new = self.scrape.as_ref().is_some_and(|scrape| reading.born() > scrape.seen);
        let begins_at_0 = instrument.spec().counts() && !instrument.outlives_process();
        if is_new && begins_at_0 { value.at_birth() } else { value }
    }

    /// Restricts the scrape to these families. A name is that of the family or of its samples.
    pub fn only(self, names: &[String]) -> Self {
        let asked = |instrument: &&Instrument| {
            let family = instrument.spec().prometheus();
            names.iter().any(|name| name.strip_suffix("_total").unwrap_or(name) == family)
        };
        let asked: Vec<_> = Instrument::ALL.iter().filter(asked).copied().collect();
        let kept: Vec<_> =
            self.readings.filter(|(instrument, _)| asked.contains(instrument)).collect();
        Self { readings: kept.into_iter(), ..self }
    }

    /// The resource, as a family of its own.
    fn write_target(&mut self, resource: &BTreeMap<String, String>) {
        let pairs = resource.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let (name, kind) = match self.format {
            ExpositionFormat::Text => ("target_info", "gauge"),
            ExpositionFormat::OpenMetrics => ("target", "info"),
            ExpositionFormat::Protobuf => return protobuf::write_target(&mut self.piece, pairs),
        };
        let labels = labels(pairs);
        // Writing to memory cannot fail.
        let _ = writeln!(
            self.piece,
            "# HELP {name} What emits.\n# TYPE {name} {kind}\ntarget_info{{{labels}}} 1"
        );
    }

    fn write(&mut self, instrument: Instrument, reading: &Reading) {
        if self.family.as_ref().is_none_or(|(family, _)| *family != instrument) {
            let spec = instrument.spec();
            let name = self.write_head(&spec);
            self.family = Some((instrument, name));
        }
        let Some((_, name)) = &self.family else { return };
        let [scope, own] = [labels(self.scope.iter().copied()), labels(own_labels(reading))];
        let comma = if scope.is_empty() || own.is_empty() { "" } else { "," };
        let labels = scope + comma + &own;
        let value = self.value(instrument, reading);
        // Writing to memory cannot fail.
        let _ = match value {
            Value::Count(count) => {
                let of = Braces(&labels, "");
                writeln!(self.piece, "{name}{of} {count}")
            }
            Value::Number(number) => writeln!(self.piece, "{name}{} {number}", Braces(&labels, "")),
            Value::Distribution(read) => {
                write_histogram(&mut self.piece, self.format, name, &labels, &read);
                Ok(())
            }
        };
    }

    /// Writes a few series of one family as protobuf.
    fn write_message(&mut self, instrument: Instrument, first: &Reading) {
        let mut message = protobuf::Message::of(&instrument.spec());
        let scope = self.scope.clone().into_iter();
        let value = self.value(instrument, first);
        message.add(scope.clone().chain(own_labels(first)), value);
        for _ in 1..MESSAGE_SERIES_MAX {
            let is_same = |(next, _): &&(Instrument, Reading)| *next == instrument;
            if self.readings.as_slice().first().filter(is_same).is_none() {
                break;
            }
            if let Some((_, next)) = self.readings.next() {
                let value = self.value(instrument, &next);
                message.add(scope.clone().chain(own_labels(&next)), value);
            }
        }
        message.write(&mut self.piece);
    }

    /// What stands above a family; the name of its samples.
    fn write_head(&mut self, spec: &Spec) -> String {
        let family = spec.prometheus();
        let total = if spec.kind == InstrumentKind::Counter { "_total" } else { "" };
        let sample = format!("{family}{total}");
        let (named, unit) = match self.format {
            ExpositionFormat::Text => (&sample, ""),
            ExpositionFormat::OpenMetrics | ExpositionFormat::Protobuf => {
                (&family, spec.unit_word())
            }
        };
        let kind = match spec.kind {
            InstrumentKind::Counter => "counter",
            InstrumentKind::UpDownCounter | InstrumentKind::Gauge => "gauge",
            InstrumentKind::Histogram(_) => "histogram",
        };
        // Writing to memory cannot fail.
        let _ = writeln!(self.piece, "# HELP {named} {}\n# TYPE {named} {kind}", spec.help);
        if !unit.is_empty() {
            let _ = writeln!(self.piece, "# UNIT {named} {unit}");
        }
        sample
    }
}

impl Iterator for Exposition {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        while self.piece.len() < PIECE_BYTES {
            let Some((instrument, reading)) = self.readings.next() else {
                if self.format == ExpositionFormat::OpenMetrics && !self.ended {
                    self.piece.extend_from_slice(b"# EOF\n");
                }
                self.ended = true;
                break;
            };
            match self.format {
                ExpositionFormat::Text | ExpositionFormat::OpenMetrics => {
                    self.write(instrument, &reading)
                }
                ExpositionFormat::Protobuf => self.write_message(instrument, &reading),
            }
        }
        let piece = std::mem::take(&mut self.piece);
        if piece.is_empty()
            && let Some(Scrape { scrapers, by, seen, newest }) = self.scrape.take()
        {
            scrapers.note(by, seen, newest);
        }
        (!piece.is_empty()).then_some(piece)
    }
}

/// A series' labels and one more, in braces where there are any.
struct Braces<'a>(&'a str, &'a str);

impl std::fmt::Display for Braces<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.0.is_empty(), self.1.is_empty()) {
            (true, true) => Ok(()),
            (false, false) => write!(f, "{{{},{}}}", self.0, self.1),
            _ => write!(f, "{{{}{}}}", self.0, self.1),
        }
    }
}

fn write_histogram(
    out: &mut Vec<u8>,
    format: ExpositionFormat,
    name: &str,
    labels: &str,
    read: &Distribution,
) {
    let mut below = 0;
    for (bucket, count) in read.counts.iter().enumerate() {
        below += count;
        let le = match (read.bounds.get(bucket), format) {
            (None, _) => "le=\"+Inf\"".to_owned(),
            (Some(bound), ExpositionFormat::Text) => format!("le=\"{bound}\""),
            // OpenMetrics writes whole numbers with a point too.
            (Some(bound), ExpositionFormat::OpenMetrics | ExpositionFormat::Protobuf) => {
                format!("le=\"{bound:?}\"")
            }
        };
        // Writing to memory cannot fail.
        let _ = write!(out, "{name}_bucket{} {below}", Braces(labels, &le));
        let exemplar = read.exemplars.iter().find(|exemplar| exemplar.bucket == bucket);
        if let Some(exemplar) = exemplar.filter(|_| format == ExpositionFormat::OpenMetrics) {
            write_exemplar(out, exemplar);
        }
        out.push(b'\n');
    }
    let plain = Braces(labels, "");
    let _ = writeln!(out, "{name}_sum{plain} {}\n{name}_count{plain} {below}", read.sum);
}

fn write_exemplar(out: &mut Vec<u8>, exemplar: &Exemplar) {
    let Exemplar { value, origin, .. } = exemplar;
    out.extend_from_slice(b" # {");
    if let Some(Found { trace_id, span_id }) = origin.trace {
        // Writing to memory cannot fail.
        let _ = write!(out, "trace_id=\"{:032x}\",", u128::from_be_bytes(trace_id));
        if let Some(span_id) = span_id {
            let _ = write!(out, "span_id=\"{:016x}\",", u64::from_be_bytes(span_id));
        }
    }
    let (request, at) = (origin.request.0, origin.at);
    let (seconds, millis) = (at.as_second(), at.subsec_millisecond());
    let _ = write!(out, "request_id=\"{request}\"}} {value} {seconds}.{millis:03}");
}

/// The scope as labels; one that is empty is none.
fn scope(genai: GenAi) -> Vec<(&'static str, &'static str)> {
    let all = [
        ("otel_scope_name", SCOPE),
        ("otel_scope_schema_url", schema_url(genai)),
        ("otel_scope_version", VERSION),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

fn own_labels(reading: &Reading) -> impl Iterator<Item = (&str, &str)> {
    reading.labels().iter().map(|label| (label.key(), label.value()))
}

fn labels<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut sorted: Vec<_> =
        pairs.map(|(key, value)| format!("{}=\"{}\"", escaped(key), quoted(value))).collect();
    taximeter_collections::sort(&mut sorted);
    sorted.join(",")
}

fn quoted(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests;
