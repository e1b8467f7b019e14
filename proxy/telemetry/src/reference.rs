//! `docs/reference/metrics.md` and `docs/reference/logs.md` are made from the tables of names.

mod logs;

use std::fmt::Write as _;

use taximeter_tests::generated::is_fresh;

use super::names::{Generation, Instrument, InstrumentKind, REQUEST, Spec, key};

const HEAD: &str = "\
# Metrics

This page lists every metric of the gateway, by its OpenTelemetry name and by its name in Prometheus. It is made from the tables in
`proxy/telemetry/src/names.rs` and `names/key.rs` by a test.

Names, units, buckets and attributes follow the OpenTelemetry semantic conventions: GenAI in the generation that `telemetry.genai`
chooses (`v1_41`, `latest` or `both`), and HTTP as of v1.44.0. The series of GenAI metrics and of most others have the tenant in
`taximeter.tenant`. No metric has a part beside its whole. Cached tokens are part of the input and reasoning is part of the output, so
each has a metric of its own.

In Prometheus, each `.` of a name or key becomes `_`. A histogram has series with `_bucket`, `_sum` and `_count` at the end. With
`telemetry.scope_labels: on` each series has `otel_scope_name`, `otel_scope_version` and `otel_scope_schema_url`; with
`telemetry.genai: both` there is no `otel_scope_schema_url`, because two schemas apply. `target_info` has the attributes of the gateway.

A scraper that asks for OpenMetrics gets an exemplar with each histogram bucket: the last request in that bucket. It has the
`request_id`, which is the record's `id`. It also has `trace_id` and `span_id` if Taximeter keeps the spans of the request
([traces](traces.md)). If Taximeter creates no spans, it has the `trace_id` of the caller, if the caller has sampled the trace.

With `telemetry.native_histograms: on` every histogram also has Prometheus native buckets. Each bound is 9 % above the one before. The
buckets are wider where there would be more than 160. `/metrics` sends them beside the classic buckets in the protobuf format, for which
a server asks if it scrapes native histograms (`scrape_native_histograms: true`, before Prometheus 3.8
`--enable-feature=native-histograms`). The server keeps the classic buckets only with `always_scrape_classic_histograms: true`. The
dashboards and alerts of this project need the classic buckets.

With `telemetry.otlp.histograms: exponential`, or `OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION` set to
`base2_exponential_bucket_histogram`, pushes have OTLP exponential histograms with these buckets instead of the classic ones.
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
    let ride: Vec<_> = REQUEST.iter().map(|key| format!("`{key}`")).collect();
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
    if group == REQUEST {
        return "*the request's*".to_owned();
    }
    group.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_reference_of_metrics_is_fresh() {
    assert_eq!(is_fresh("docs/reference/metrics.md", |_| page()), Ok(()));
}
