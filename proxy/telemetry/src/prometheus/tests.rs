//! Tests of the Prometheus formats.

use ::metrics::{CounterFn as _, GaugeFn as _, HistogramFn as _, Label};
use jiff::Timestamp;
use taximeter_config::GenAi;
use taximeter_ledger::RequestId;
use taximeter_system::clock;

use super::super::exemplar::Origin;
use super::super::instruments::Instruments;
use super::super::names::key;
use super::super::scrapers::ScraperId;
use super::*;

fn written(format: ExpositionFormat, scope_labels: bool, instruments: &Instruments) -> String {
    let resource = [("service.name".to_owned(), "t".to_owned())].into();
    let scope = scope_labels.then_some(GenAi::V1_41);
    text(Exposition::new(format, scope, &resource, instruments.readings()))
}

fn text(exposition: Exposition) -> String {
    String::from_utf8(exposition.flatten().collect()).unwrap()
}

#[test]
fn the_text_has_one_family_per_instrument() {
    let instruments = Instruments::new(GenAi::V1_41, false);
    let labels = vec![Label::new(key::CAUSE, "a\"b\\c\nd")];
    instruments.count(Instrument::BadFraming, labels).increment(2);
    instruments.count(Instrument::BadFraming, vec![Label::new(key::CAUSE, "b")]).increment(1);
    instruments.buckets(Instrument::GatewayDuration, Vec::new()).record(0.002);
    let text = written(ExpositionFormat::Text, false, &instruments);
    assert_eq!(text.matches("# TYPE").count(), 3);
    assert!(text.starts_with("# HELP target_info "));
    assert!(text.contains("\ntarget_info{service_name=\"t\"} 1\n"));
    assert!(text.contains("# TYPE taximeter_bad_framing_total counter\n"));
    assert!(text.contains("\ntaximeter_bad_framing_total{taximeter_cause=\"a\\\"b\\\\c\\nd\"} 2"));
    assert!(text.contains("\ntaximeter_bad_framing_total{taximeter_cause=\"b\"} 1\n"));
    assert!(text.contains("_bucket{le=\"0.0025\"} 1\n") && text.contains("{le=\"+Inf\"} 1\n"));
    assert!(text.contains("\ntaximeter_gateway_duration_seconds_count 1\n"));
    assert!(!text.contains(" # {") && !text.contains("# EOF") && !text.contains("# UNIT"));
}

#[test]
fn a_scrape_of_some_names_has_these_families_alone() {
    let instruments = Instruments::new(GenAi::V1_41, false);
    instruments.count(Instrument::BadFraming, vec![Label::new(key::CAUSE, "a")]).increment(2);
    instruments.count(Instrument::StoreFaults, Vec::new()).increment(1);
    instruments.buckets(Instrument::GatewayDuration, Vec::new()).record(0.002);
    let of = |names: &[&str]| -> String {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let readings = instruments.readings();
        text(Exposition::new(ExpositionFormat::Text, None, &BTreeMap::new(), readings).only(&names))
    };
    let two = of(&["taximeter_bad_framing_total", "taximeter_gateway_duration_seconds"]);
    assert!(two.contains("\ntaximeter_bad_framing_total{taximeter_cause=\"a\"} 2\n"), "{two}");
    assert!(two.contains("\ntaximeter_gateway_duration_seconds_count 1\n"), "{two}");
    assert!(!two.contains("taximeter_store_faults"), "{two}");
    assert_eq!(of(&["taximeter_store"]).matches("# TYPE").count(), 1, "the resource alone");
}

#[test]
fn openmetrics_has_units_exemplars_and_an_end() {
    let instruments = Instruments::new(GenAi::V1_41, false);
    let trace_id = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes();
    let trace = Some(Found { trace_id, span_id: Some([0xb7; 8]) });
    let at = Timestamp::from_millisecond(1_763_000_000_042).unwrap();
    let request = RequestId("0190163d-8694-739b-aea5-966c26f8ad91".parse().unwrap());
    let buckets = instruments.buckets(Instrument::HttpServerRequestDuration, Vec::new());
    buckets.record_from(0.9, Origin { request, trace, at });
    buckets.record_from(99.0, Origin { request, trace: None, at });
    instruments.count(Instrument::StoreFaults, Vec::new()).increment(1);
    let text = written(ExpositionFormat::OpenMetrics, true, &instruments);
    let schema = "otel_scope_schema_url=\"https://opentelemetry.io/schemas/1.41.1\"";
    let scope = format!("otel_scope_name=\"taximeter\",{schema},otel_scope_version=\"{VERSION}\"");
    for line in [
        "# TYPE target info".to_owned(),
        "# TYPE taximeter_store_faults counter".to_owned(),
        format!("taximeter_store_faults_total{{{scope}}} 1"),
        "# UNIT http_server_request_duration_seconds seconds".to_owned(),
        format!(
            "http_server_request_duration_seconds_bucket{{{scope},le=\"1.0\"}} 1 \
             # {{trace_id=\"0af7651916cd43dd8448eb211c80319c\",span_id=\"b7b7b7b7b7b7b7b7\",\
             request_id=\"0190163d-8694-739b-aea5-966c26f8ad91\"}} 0.9 1763000000.042"
        ),
        format!(
            "http_server_request_duration_seconds_bucket{{{scope},le=\"+Inf\"}} 2 \
             # {{request_id=\"0190163d-8694-739b-aea5-966c26f8ad91\"}} 99 1763000000.042"
        ),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    assert!(text.ends_with("\n# EOF\n"));
}

#[test]
fn pieces_are_of_one_size_and_lose_nothing() {
    let instruments = Instruments::new(GenAi::V1_41, false);
    for cause in 0..5_000 {
        let labels = vec![Label::new(key::CAUSE, format!("{cause:04}"))];
        instruments.count(Instrument::BadFraming, labels).increment(1);
    }
    let resource = BTreeMap::new();
    let pieces: Vec<_> = Exposition::new(
        ExpositionFormat::Text,
        Some(GenAi::V1_41),
        &resource,
        instruments.readings(),
    )
    .collect();
    assert!(pieces.len() > 5, "{}", pieces.len());
    assert!(pieces.iter().all(|piece| piece.len() < PIECE_BYTES + 300));
    let text = String::from_utf8(pieces.concat()).unwrap();
    let causes: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).skip(1).collect();
    assert_eq!(causes.len(), 5_000);
    assert!(causes.is_sorted());
}

#[test]
fn the_format_is_what_the_scraper_prefers() {
    let prometheus_3 = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                        application/openmetrics-text;version=0.0.1;q=0.5,\
                        text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
                        text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    for (accept, format) in [
        ("", ExpositionFormat::Text),
        ("*/*", ExpositionFormat::Text),
        ("text/html", ExpositionFormat::Text),
        (prometheus_3, ExpositionFormat::OpenMetrics),
        ("application/openmetrics-text", ExpositionFormat::OpenMetrics),
        ("application/openmetrics-text; version=2.0.0, text/plain;q=0.1", ExpositionFormat::Text),
        ("application/openmetrics-text;q=0, */*;q=0.1", ExpositionFormat::Text),
        (
            "text/plain;version=0.0.4;q=0.5, application/openmetrics-text;q=0.4",
            ExpositionFormat::Text,
        ),
        ("application/openmetrics-text;q=high", ExpositionFormat::Text),
    ] {
        assert_eq!(ExpositionFormat::accepted(accept, false), format, "{accept}");
    }
}

#[test]
fn protobuf_is_for_those_who_want_it_where_it_says_more() {
    let native = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
                  encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.2";
    assert_eq!(ExpositionFormat::accepted(native, true), ExpositionFormat::Protobuf);
    assert_eq!(ExpositionFormat::accepted(native, false), ExpositionFormat::OpenMetrics);
    assert_eq!(ExpositionFormat::accepted("", true), ExpositionFormat::Text);
    let other = native.replace("encoding=delimited", "encoding=text");
    assert_eq!(ExpositionFormat::accepted(&other, true), ExpositionFormat::OpenMetrics);
}

const FORMATS: [ExpositionFormat; 3] =
    [ExpositionFormat::Text, ExpositionFormat::OpenMetrics, ExpositionFormat::Protobuf];

/// Series of every kind, with `samples` of each.
fn sampled(samples: u64) -> Instruments {
    let instruments = Instruments::new(GenAi::V1_41, true);
    more(&instruments, "a", samples);
    instruments
}

fn more(instruments: &Instruments, cause: &'static str, samples: u64) {
    let labels = |key: &'static str| vec![Label::new(key, cause)];
    let request = RequestId(uuid::Uuid::nil());
    let origin = Origin { request, trace: None, at: Timestamp::UNIX_EPOCH };
    let count = instruments.count(Instrument::BadFraming, labels(key::CAUSE));
    let cost = instruments.number(Instrument::Cost, labels(key::CURRENCY));
    let waits = instruments.buckets(Instrument::FirstTokenWait, labels(key::OUTCOME));
    for _ in 0..samples {
        count.increment(1);
        cost.add(0.5);
        waits.record_from(0.02, origin);
    }
    // What may be below 0, and what goes on over restarts, is never told as 0.
    instruments.number(Instrument::RequestsOpen, Vec::new()).set(7.0);
    instruments.number(Instrument::LedgerHealthy, Vec::new()).set(1.0);
    instruments.count(Instrument::LedgerEntries, Vec::new()).absolute(9_000);
}

/// A scrape, of a scraper where `scrapers` says so.
fn scraped(
    instruments: &Instruments,
    format: ExpositionFormat,
    scrapers: Option<&Arc<Scrapers>>,
) -> Exposition {
    let newest = instruments.last_birth();
    let id = ScraperId::new(std::net::IpAddr::from([127, 0, 0, 1]), b"10", b"p", "");
    let by = Scraper { id, connection: Some(1) };
    let scrape = scrapers.map(|scrapers| Scrape {
        seen: scrapers.seen(by, clock::now()),
        scrapers: scrapers.clone(),
        by,
        newest,
    });
    Exposition::new(format, None, &BTreeMap::new(), instruments.readings()).to(scrape)
}

fn bytes(exposition: Exposition) -> Vec<u8> {
    exposition.flatten().collect()
}

#[test]
fn a_scraper_is_told_0_once_of_what_is_new_to_it_and_others_the_value() {
    for format in FORMATS {
        let plain = |instruments: &Instruments| bytes(scraped(instruments, format, None));
        let scrapers = Arc::new(Scrapers::new(clock::now()));
        let instruments = sampled(3);
        let to_scraper = || bytes(scraped(&instruments, format, Some(&scrapers)));
        assert_ne!(plain(&instruments), plain(&sampled(0)), "{format:?}");
        assert_eq!(to_scraper(), plain(&sampled(0)), "{format:?}");
        assert_eq!(to_scraper(), plain(&instruments), "{format:?}");
        more(&instruments, "b", 2);
        let expected = sampled(3);
        more(&expected, "b", 0);
        assert_eq!(to_scraper(), plain(&expected), "{format:?}: the others as they are");
        more(&instruments, "b", 1);
        assert_eq!(to_scraper(), plain(&instruments), "{format:?}");
    }
}

#[test]
fn a_scrape_that_breaks_off_has_shown_nothing() {
    let scrapers = Arc::new(Scrapers::new(clock::now()));
    let instruments = sampled(3);
    let scrape = || scraped(&instruments, ExpositionFormat::Text, Some(&scrapers));
    let mut cut = scrape();
    assert!(cut.next().is_some());
    drop(cut);
    let zeros = text(scraped(&sampled(0), ExpositionFormat::Text, None));
    assert_eq!(text(scrape()), zeros);
    assert_ne!(text(scrape()), zeros);
}
