//! The telemetry that the file and OpenTelemetry's environment variables ask for.
//!
//! A key of the file wins over a variable with the same meaning. As the standard demands, an
//! invalid variable is ignored with a warning, and an empty one counts as unset.
//!
//! Source: OpenTelemetry specification, configuration/sdk-environment-variables and
//! protocol/exporter.

mod unsupported;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::content::captures;
use crate::mistake::Invalid;
use crate::model::{ClientCertificate, Config, GenAi, OtlpKeys, Telemetry, UpstreamUrl};
use crate::otlp::{HistogramBuckets, OtlpProtocol, Temporality};
use crate::sampling::{Ratio, Sampling, sampler};
use crate::secret::Secret;
use crate::value::Value;
use crate::values::{EndpointUrl, Gzip, HeaderText};
use taximeter_collections::Gather as _;
use unsupported::UNSUPPORTED;

/// The port of collectors for gRPC.
const GRPC_PORT: u16 = 4317;
/// Time for one push.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two pushes of metrics.
const INTERVAL: Duration = Duration::from_secs(60);
/// Time between two pushes of spans, and of log lines.
const BATCH_INTERVAL: Duration = Duration::from_secs(1);
/// The longest value of a resource attribute, in bytes.
const ATTRIBUTE_BYTES_MAX: usize = 256;
/// The most resource attributes from the environment.
const ATTRIBUTES_MAX: usize = 128;

/// What telemetry Taximeter emits, and where to.
#[derive(Debug, Clone, PartialEq)]
pub struct OtelSettings {
    /// Generation of the GenAI conventions.
    pub genai: GenAi,
    /// Whether `/metrics` names the instrumentation scope on each series.
    pub scope_labels: bool,
    /// Resource attributes, with `service.name`.
    pub resource: BTreeMap<String, String>,
    /// How metrics are pushed; `None` if they are not.
    pub metrics: Option<MetricsExport>,
    /// How spans are pushed, and which; `None` if they are not.
    pub traces: Option<TracesExport>,
    /// How log lines are pushed; `None` if they are not.
    pub logs: Option<LogsExport>,
    /// Whether each call of a kept trace is an event among the log records, even where no text is
    /// captured.
    pub events: bool,
}

/// Where and how one signal is pushed.
#[derive(Debug, Clone, PartialEq)]
pub struct Exporter {
    /// The collector's URL; over HTTP with the whole path.
    pub url: UpstreamUrl,
    /// The protocol.
    pub protocol: OtlpProtocol,
    /// Headers of each push; names in lower case.
    pub headers: BTreeMap<String, Secret>,
    /// Whether pushes are compressed.
    pub gzip: bool,
    /// The time for one push and its answer.
    pub timeout: Duration,
    /// A file with the authorities to trust in place of the system's.
    pub ca: Option<PathBuf>,
    /// The client certificate for the collector.
    pub client: Option<ClientCertificate>,
}

/// How metrics are pushed.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricsExport {
    /// Where and how.
    pub exporter: Exporter,
    /// Time between two pushes.
    pub interval: Duration,
    /// What numbers count from.
    pub temporality: Temporality,
    /// Which buckets histograms have.
    pub histograms: HistogramBuckets,
}

/// How spans are pushed.
#[derive(Debug, Clone, PartialEq)]
pub struct TracesExport {
    /// Where and how.
    pub exporter: Exporter,
    /// Time between two pushes.
    pub interval: Duration,
    /// Which traces are kept.
    pub sampling: Sampling,
}

/// How log lines are pushed.
#[derive(Debug, Clone, PartialEq)]
pub struct LogsExport {
    /// Where and how.
    pub exporter: Exporter,
    /// Time between two pushes.
    pub interval: Duration,
}

/// The variable that says where captured content goes.
pub(crate) const CAPTURE_VARIABLE: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
/// The variable that says whether calls are events.
pub(crate) const EVENT_VARIABLE: &str = "OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT";

/// A variable that Taximeter ignores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredVariable {
    /// Its name.
    pub variable: String,
    /// What is wrong with its value.
    pub why: Invalid,
}

impl Config {
    /// The telemetry of this configuration in this environment, and the variables that are ignored.
    #[must_use]
    pub fn otel(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> (OtelSettings, Vec<IgnoredVariable>) {
        let mut env = Environment { env, ignored: Vec::new() };
        let mut resource = resource(&mut env);
        resource.extend(self.resource.clone());
        // `check` has read its value. This reports an invalid one.
        env.read(&[CAPTURE_VARIABLE], captures);
        env.read(&["OTEL_PROPAGATORS"], propagators);
        env.report_unsupported();
        let otel = OtelSettings {
            genai: self.telemetry.genai.unwrap_or_else(|| opted_in(&mut env)),
            scope_labels: self.telemetry.scope_labels,
            resource,
            metrics: metrics(&self.telemetry, &mut env),
            traces: traces(&self.telemetry, &mut env),
            logs: logs(&self.telemetry.otlp, &mut env),
            events: env.is_true(EVENT_VARIABLE),
        };
        (otel, env.ignored)
    }
}

/// A kind of telemetry, by its names in the environment.
struct Signal {
    /// The word in the names of its variables.
    word: &'static str,
    /// The path behind the endpoint, over HTTP.
    path: &'static str,
    /// The supported names of its exporter.
    exporters: &'static [&'static str],
}

const METRICS: Signal =
    Signal { word: "METRICS", path: "/v1/metrics", exporters: &["otlp", "prometheus", "none"] };
const TRACES: Signal = Signal { word: "TRACES", path: "/v1/traces", exporters: &["otlp", "none"] };
const LOGS: Signal = Signal { word: "LOGS", path: "/v1/logs", exporters: &["otlp", "none"] };

/// The environment's variables, and those that are ignored.
struct Environment<'a> {
    env: &'a dyn Fn(&str) -> Option<String>,
    ignored: Vec<IgnoredVariable>,
}

impl Environment<'_> {
    /// The value of the first of `names` that is set and valid, and its index.
    fn read<T>(
        &mut self,
        names: &[&str],
        parse: impl Fn(&str) -> Result<T, Invalid>,
    ) -> Option<(T, usize)> {
        for (index, name) in names.iter().enumerate() {
            let Some(text) = (self.env)(name).filter(|text| !text.trim().is_empty()) else {
                continue;
            };
            match parse(text.trim()) {
                Ok(value) => return Some((value, index)),
                Err(why) => self.ignore((*name).to_owned(), why),
            }
        }
        None
    }

    /// Notes an ignored variable, once: one for all signals is read for each of them.
    fn ignore(&mut self, variable: String, why: Invalid) {
        let ignored = IgnoredVariable { variable, why };
        if !self.ignored.contains(&ignored) {
            self.ignored.push(ignored);
        }
    }

    /// The value of the variable for this signal, or of the one for all.
    fn of_signal<T>(
        &mut self,
        signal: &Signal,
        what: &str,
        parse: impl Fn(&str) -> Result<T, Invalid>,
    ) -> Option<(T, usize)> {
        let own = format!("OTEL_EXPORTER_OTLP_{}_{what}", signal.word);
        let all = format!("OTEL_EXPORTER_OTLP_{what}");
        self.read(&[&own, &all], parse)
    }

    fn is_true(&mut self, name: &str) -> bool {
        self.read(&[name], is_true).is_some_and(first)
    }

    /// Notes the unsupported variables that are set.
    fn report_unsupported(&mut self) {
        for (name, instead) in UNSUPPORTED {
            let unsupported = |_: &str| Err::<(), _>(Invalid::new("is not supported", *instead));
            self.read(&[name], unsupported);
        }
    }
}

/// The value of a variable that is true or false.
///
/// Errors: another word. The standard reads it as false.
pub(crate) fn is_true(word: &str) -> Result<bool, Invalid> {
    match word.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Invalid::new("is not true or false", "true or false")),
    }
}

/// Taximeter continues traces only by W3C's trace context.
fn propagators(text: &str) -> Result<(), Invalid> {
    let is_ours = |word: &str| matches!(word.trim(), "tracecontext" | "baggage");
    if text.split(',').all(is_ours) {
        Ok(())
    } else {
        Err(Invalid::new("is not supported", "tracecontext, and baggage, which passes as it is"))
    }
}

/// The generation of the GenAI conventions that the environment asks for.
fn opted_in(env: &mut Environment<'_>) -> GenAi {
    let listed = |text: &str| Ok(text.split(',').any(|w| w.trim() == "gen_ai_latest_experimental"));
    match env.read(&["OTEL_SEMCONV_STABILITY_OPT_IN"], listed) {
        Some((true, _)) => GenAi::Latest,
        _ => GenAi::default(),
    }
}

fn resource(env: &mut Environment<'_>) -> BTreeMap<String, String> {
    let listed = env.read(&["OTEL_RESOURCE_ATTRIBUTES"], |text| {
        let all = pairs(text)?;
        let fit = |(key, value): &(String, String)| {
            key.len() <= ATTRIBUTE_BYTES_MAX && value.len() <= ATTRIBUTE_BYTES_MAX
        };
        if all.len() > ATTRIBUTES_MAX || !all.iter().all(fit) {
            let expected = format!("{ATTRIBUTES_MAX} pairs of {ATTRIBUTE_BYTES_MAX} bytes");
            return Err(Invalid::new("is too long", expected));
        }
        Ok(all)
    });
    let mut resource: BTreeMap<_, _> = listed.into_iter().flat_map(|(all, _)| all).gather();
    if let Some((name, _)) = env.read(&["OTEL_SERVICE_NAME"], |text| Ok(text.to_owned())) {
        resource.insert("service.name".to_owned(), name);
    }
    resource.entry("service.name".to_owned()).or_insert_with(|| "taximeter".to_owned());
    resource
}

fn metrics(file: &Telemetry, env: &mut Environment<'_>) -> Option<MetricsExport> {
    // Read in any case, so that each mistake is reported.
    let exporter = exporter(&METRICS, &file.otlp, true, env);
    let (interval, _) = env.read(&["OTEL_METRIC_EXPORT_INTERVAL"], milliseconds).unzip();
    let (temporality, _) = env
        .read(&["OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"], |text| {
            match text.to_ascii_lowercase().as_str() {
                "cumulative" => Ok(Temporality::Cumulative),
                "delta" | "lowmemory" => Ok(Temporality::Delta),
                _ => Err(Invalid::new("is not allowed here", "cumulative, delta or lowmemory")),
            }
        })
        .unzip();
    let (histograms, _) = env
        .read(&["OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION"], |text| {
            match text.to_ascii_lowercase().as_str() {
                "explicit_bucket_histogram" => Ok(HistogramBuckets::Explicit),
                "base2_exponential_bucket_histogram" => Ok(HistogramBuckets::Exponential),
                _ => Err(Invalid::new(
                    "is not allowed here",
                    "explicit_bucket_histogram or base2_exponential_bucket_histogram",
                )),
            }
        })
        .unzip();
    exporter.map(|exporter| MetricsExport {
        exporter,
        interval: file.otlp.interval.or(interval).unwrap_or(INTERVAL),
        temporality: file.otlp.temporality.or(temporality).unwrap_or_default(),
        histograms: file.otlp.histograms.or(histograms).unwrap_or_default(),
    })
}

fn traces(file: &Telemetry, env: &mut Environment<'_>) -> Option<TracesExport> {
    let keys = file.traces.as_ref();
    let exporter = exporter(&TRACES, &file.otlp, keys.is_some(), env);
    let (delay, _) = env.read(&["OTEL_BSP_SCHEDULE_DELAY"], milliseconds).unzip();
    let (argument, _) = env.read(&["OTEL_TRACES_SAMPLER_ARG"], Ratio::parse).unzip();
    let (named, _) = env
        .read(&["OTEL_TRACES_SAMPLER"], |name| sampler(name, argument.unwrap_or(Ratio::ALL)))
        .unzip();
    let (ratio, heeds_parent) = named.unwrap_or((Ratio::ALL, true));
    exporter.map(|exporter| TracesExport {
        exporter,
        interval: delay.unwrap_or(BATCH_INTERVAL),
        sampling: Sampling {
            ratio: keys.and_then(|keys| keys.ratio).unwrap_or(ratio),
            heeds_parent,
            always: keys.map(|keys| keys.always.clone()).unwrap_or_default(),
        },
    })
}

fn logs(keys: &OtlpKeys, env: &mut Environment<'_>) -> Option<LogsExport> {
    let exporter = exporter(&LOGS, keys, keys.logs == Some(true), env);
    let (delay, _) = env.read(&["OTEL_BLRP_SCHEDULE_DELAY"], milliseconds).unzip();
    let exporter = exporter.filter(|_| keys.logs != Some(false))?;
    Some(LogsExport { exporter, interval: delay.unwrap_or(BATCH_INTERVAL) })
}

/// Where and how a signal is pushed. `wanted` says that the file asks for it.
fn exporter(
    signal: &Signal,
    keys: &OtlpKeys,
    wanted: bool,
    env: &mut Environment<'_>,
) -> Option<Exporter> {
    let named = env.of_signal(signal, "PROTOCOL", OtlpProtocol::parse).map(first);
    let protocol = keys.protocol.or(named);
    let variable = format!("OTEL_{}_EXPORTER", signal.word);
    let named = env.read(&[&variable], |text| exporters(text, signal.exporters)).map(first);
    let endpoint = env.of_signal(signal, "ENDPOINT", EndpointUrl::parse);
    let headers = env.of_signal(signal, "HEADERS", headers).map(first);
    let gzip = env.of_signal(signal, "COMPRESSION", Gzip::parse).map(|(gzip, _)| gzip.0);
    let timeout = env.of_signal(signal, "TIMEOUT", milliseconds).map(first);
    let ca = env.of_signal(signal, "CERTIFICATE", PathBuf::parse).map(first);
    let client = client(signal, env);
    if env.is_true("OTEL_SDK_DISABLED") {
        return None;
    }
    let (url, whole) = match (&keys.endpoint, endpoint, named) {
        (Some(url), ..) if wanted || named == Some(true) => (url.clone(), false),
        (_, _, Some(false)) => return None,
        // The URL for this signal has the whole path; the URL for all signals needs one.
        (_, Some((url, 0)), _) => (url.into(), true),
        // Where the file names a collector, the file decides what goes there.
        (Some(_), ..) => return None,
        (None, Some((url, _)), _) => (url.into(), false),
        (None, None, Some(true)) => (local(protocol), false),
        (None, None, None) => return None,
    };
    let by_port =
        if url.port == GRPC_PORT { OtlpProtocol::Grpc } else { OtlpProtocol::HttpProtobuf };
    let protocol = protocol.unwrap_or(by_port);
    let prefix = match protocol {
        OtlpProtocol::HttpProtobuf if !whole => {
            format!("{}{}", url.prefix.trim_end_matches('/'), signal.path)
        }
        _ => url.prefix.clone(),
    };
    Some(Exporter {
        url: UpstreamUrl { prefix, ..url },
        protocol,
        headers: keys.headers.clone().or(headers).unwrap_or_default(),
        gzip: keys.gzip.or(gzip).unwrap_or(true),
        timeout: keys.timeout.or(timeout).unwrap_or(TIMEOUT),
        ca: keys.ca.clone().or(ca),
        client: keys.client.clone().or(client),
    })
}

/// The client certificate. A certificate without its key is ignored.
fn client(signal: &Signal, env: &mut Environment<'_>) -> Option<ClientCertificate> {
    let [cert, key] = ["CLIENT_CERTIFICATE", "CLIENT_KEY"]
        .map(|what| env.of_signal(signal, what, PathBuf::parse).map(|found| (found, what)));
    match (cert, key) {
        (Some(((cert, _), _)), Some(((key, _), _))) => Some(ClientCertificate { cert, key }),
        (Some((_, what)), None) | (None, Some((_, what))) => {
            let expected = "a certificate and its key";
            let variable = format!("OTEL_EXPORTER_OTLP_{what}");
            env.ignore(variable, Invalid::new("has no counterpart", expected));
            None
        }
        (None, None) => None,
    }
}

fn first<T>((value, _): (T, usize)) -> T {
    value
}

/// The standard's collector, where no URL is given.
fn local(protocol: Option<OtlpProtocol>) -> UpstreamUrl {
    let port = if protocol == Some(OtlpProtocol::Grpc) { GRPC_PORT } else { 4318 };
    UpstreamUrl { tls: false, host: "localhost".to_owned(), port, prefix: "/".to_owned() }
}

/// Whether the named exporters include a push. `/metrics` is served in any case.
fn exporters(text: &str, known: &[&str]) -> Result<bool, Invalid> {
    let words: Vec<_> = text.split(',').map(str::trim).collect();
    match words.iter().find(|word| !known.contains(word)) {
        Some(_) => Err(Invalid::new("names an unsupported exporter", known.join(", "))),
        None => Ok(words.contains(&"otlp")),
    }
}

fn milliseconds(text: &str) -> Result<Duration, Invalid> {
    let digits = text.parse::<u32>().ok().filter(|number| *number > 0);
    let number =
        digits.ok_or_else(|| Invalid::new("is not a time", "whole milliseconds above 0"))?;
    Ok(Duration::from_millis(number.into()))
}

fn headers(text: &str) -> Result<BTreeMap<String, Secret>, Invalid> {
    let pairs = pairs(text).map_err(Invalid::secret)?;
    let header = |(name, value): (String, String)| {
        Ok((header_name(&name)?, HeaderText::parse(&value).map_err(Invalid::secret)?.0))
    };
    pairs.into_iter().map(header).collect()
}

/// The name of an additional header of a push, in lower case.
///
/// Errors: not a header name, or a header that Taximeter sets itself.
pub(crate) fn header_name(name: &str) -> Result<String, Invalid> {
    const OURS: [&str; 9] = [
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "keep-alive",
        "te",
        "transfer-encoding",
        "upgrade",
    ];
    let name = name.to_ascii_lowercase();
    let well_formed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || !name.bytes().all(well_formed) {
        return Err(Invalid::new(
            "is not a valid header name",
            "letters, digits, `-`, `_` and `.`",
        ));
    }
    if OURS.contains(&name.as_str()) || name.starts_with("grpc-") {
        return Err(Invalid::new("is a header that Taximeter sets itself", "another header"));
    }
    Ok(name)
}

/// The pairs of `k=v,k=v`, percent-decoded.
fn pairs(text: &str) -> Result<Vec<(String, String)>, Invalid> {
    let invalid = || Invalid::new("is not a list of pairs", "key=value,key=value, percent-encoded");
    let pairs = text.split(',').filter(|pair| !pair.trim().is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let (key, value) = (decoded(key.trim())?, decoded(value.trim())?);
        (!key.is_empty()).then_some((key, value))
    });
    pairs.collect::<Option<_>>().ok_or_else(invalid)
}

fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| hexadecimal)?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
