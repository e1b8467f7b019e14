//! `docs/reference/metrics.md` and `docs/reference/logs.md` are made from the tables of names.

mod logs;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::names::{Generation, Instrument, InstrumentKind, RIDE, Spec, key};

const HEAD: &str = "\
# Metrics

Every instrument that the gateway has, as OTLP and as `/metrics` tell it. This page is made from the tables in
`proxy/telemetry/src/names.rs` and `names/key.rs` by a test.

Names, units, buckets and attributes follow OpenTelemetry's semantic conventions: GenAI in the generation that
`telemetry.genai` chooses (`v1_41`, `latest` or `both`), HTTP as of v1.44.0. Each series of the GenAI instruments and of most
others says who pays, `taximeter.tenant`. Parts are never told beside their whole in one instrument: cached tokens are part of
the input, reasoning is part of the output, and each has an instrument of its own.

In Prometheus, every `.` of a name or a key is a `_`; a histogram has `_bucket`, `_sum` and `_count` behind its name. Series
have `otel_scope_name`, `otel_scope_version` and, but for `both`, which follows two, `otel_scope_schema_url`, unless
`telemetry.scope_labels` is `off`; what emits them is in `target_info`.
Asked for OpenMetrics, `/metrics` shows with each bucket of a histogram the last request that fell into it: `request_id`, its
record's `id`, and `trace_id` and `span_id` if its spans are kept ([traces.md](traces.md); without spans of ours, `trace_id` if the
caller keeps it).

With `telemetry.native_histograms: on` every histogram has Prometheus' native buckets too, each bound 9 % above the one before
(wider where samples lie so far apart that there would be more than 160). `/metrics` tells them beside the classic ones in
Prometheus' protobuf, which a server asks for that scrapes native histograms (`scrape_native_histograms: true`, before
Prometheus 3.8 `--enable-feature=native-histograms`); such a server keeps the classic ones, which the dashboards and alerts here
read, only with `always_scrape_classic_histograms: true`.

With `telemetry.otlp.histograms: exponential`, or `OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION` as
`base2_exponential_bucket_histogram`, a push has these buckets in place of the classic ones, as OTLP's exponential histograms.
";

/// Whether an instrument stands in a part of the page.
type Belongs = fn(&Spec) -> bool;

fn page() -> String {
    let mut page = HEAD.to_owned();
    let parts: [(&str, Belongs); 5] = [
        ("GenAI, `v1_41`", |spec| is_genai(spec) && spec.generation != Generation::Latest),
        ("GenAI, `latest`", |spec| is_genai(spec) && spec.generation != Generation::V1_41),
        ("HTTP", |spec| spec.name.starts_with("http.")),
        ("The process", |spec| spec.name.starts_with("process.")),
        ("Taximeter's own", |spec| spec.name.starts_with("taximeter.")),
    ];
    // Writing to a string cannot fail.
    for (title, belongs) in parts {
        let _ = writeln!(page, "\n## {title}\n");
        page.push_str("| name | kind | unit | attributes | meaning | in Prometheus |\n");
        page.push_str("|---|---|---|---|---|---|\n");
        for spec in Instrument::ALL.iter().map(|i| i.spec()).filter(belongs) {
            page.push_str(&row(&spec));
        }
    }
    let ride: Vec<_> = RIDE.iter().map(|key| format!("`{key}`")).collect();
    let _ = writeln!(page, "\n## Attributes\n\n*The request's* are {}.\n", ride.join(", "));
    page.push_str("| key | values |\n|---|---|\n");
    for (key, kind, meaning) in key::ALL {
        let number = if *kind == key::Type::Int { "A whole number. " } else { "" };
        let _ = writeln!(page, "| `{key}` | {number}{meaning} |");
    }
    page.push_str("\n## Buckets\n\n| of | upper bounds |\n|---|---|\n");
    for instrument in Instrument::ALL {
        let spec = instrument.spec();
        if let InstrumentKind::Histogram(bounds) = spec.kind {
            let bounds: Vec<_> = bounds.iter().map(f64::to_string).collect();
            let _ = writeln!(page, "| `{}` | {} |", spec.name, bounds.join(", "));
        }
    }
    page
}

fn is_genai(spec: &Spec) -> bool {
    spec.name.starts_with("gen_ai.")
}

fn row(spec: &Spec) -> String {
    let kind = match spec.kind {
        InstrumentKind::Counter => "counter",
        InstrumentKind::UpDownCounter => "up-down counter",
        InstrumentKind::Gauge => "gauge",
        InstrumentKind::Histogram(_) => "histogram",
    };
    let keys: Vec<_> = spec.attributes.iter().map(|group| keys(group)).collect();
    let total = if spec.kind == InstrumentKind::Counter { "_total" } else { "" };
    let Spec { name, unit, help, .. } = spec;
    let (attributes, prometheus) = (keys.join(" "), spec.prometheus());
    format!("| `{name}` | {kind} | `{unit}` | {attributes} | {help} | `{prometheus}{total}` |\n")
}

fn keys(group: &[&str]) -> String {
    if group == RIDE {
        return "*the request's*".to_owned();
    }
    group.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_reference_of_metrics_is_fresh() {
    is_fresh("metrics.md", &page());
}

/// Holds a page in `docs/reference/` against what it would be now, or writes it.
fn is_fresh(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(&path, page).unwrap();
    }
    let stands = fs::read_to_string(&path).unwrap();
    assert_eq!(stands, page, "stale: INSTA_UPDATE=always cargo test writes docs/reference/{name}");
}
