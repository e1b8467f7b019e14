use proptest::prelude::*;

use super::*;

/// One line of each kind that programs print.
const ALL: &str = "\
# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent \\\\ usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"Qwen/Qwen3-32B\"} 0.25
# TYPE http_requests counter
# UNIT seconds seconds
http_requests_total{path=\"C:\\\\dir\",say=\"a \\\"b\\\"\\n\",} 1027 1395066363000 # {trace_id=\"x\"} 0.67 1.5
http_requests_created{path=\"C:\\\\dir\"} 1.7951926911188362e+09
# TYPE rpc histogram
rpc_bucket{le=\"0.05\"} 24054\r
rpc_bucket { le = \"+Inf\" , } 144320 1395066363.5
rpc_sum 53423
\trpc_count\t144320
# a comment
#TYPE of nothing

{\"my.metric\", \"http.status\"=\"200\"} +Inf
# TYPE \"my.other\" untyped
minus -3.5e-2
not_a_number NaN
# EOF
";

fn exposition(text: &str) -> Exposition<'_> {
    read(text.as_bytes(), &Bounds::default())
}

/// Each sample as `name{label=value,…} value`.
fn samples(read: &Exposition<'_>) -> Vec<String> {
    let one = |(sample, labels): (&Sample<'_>, &[Label<'_>])| {
        let labels: Vec<_> = labels.iter().map(|l| format!("{}={}", l.name, l.value)).collect();
        let at = sample.stamped.map(|at| format!(" at {at}")).unwrap_or_default();
        format!("{}{{{}}} {}{at}", sample.name, labels.join(","), sample.value)
    };
    read.samples.iter().map(one).collect()
}

fn why(line: &str) -> Option<Why> {
    let text = format!("{line}\n");
    let read = exposition(&text);
    assert_eq!(read.lines, 1);
    assert_eq!(read.skipped.count(), read.skipped.told().len() as u64);
    assert!(read.samples.is_empty() || read.skipped.count() == 0, "{line}");
    read.skipped.told().first().map(|(number, why)| {
        assert_eq!(*number, 1);
        *why
    })
}

#[test]
fn every_kind_of_line_is_read() {
    let read = exposition(ALL);
    assert_eq!(read.skipped.told(), []);
    assert_eq!(read.lines, 20);
    assert_eq!(
        samples(&read),
        [
            "vllm:kv_cache_usage_perc{engine=0,model_name=Qwen/Qwen3-32B} 0.25",
            "http_requests_total{path=C:\\dir,say=a \"b\"\n} 1027 at 1395066363000",
            "http_requests_created{path=C:\\dir} 1795192691.1188362",
            "rpc_bucket{le=0.05} 24054",
            "rpc_bucket{le=+Inf} 144320 at 1395066363500",
            "rpc_sum{} 53423",
            "rpc_count{} 144320",
            "my.metric{http.status=200} inf",
            "minus{} -0.035",
            "not_a_number{} NaN",
        ]
    );
    let declared: Vec<_> = read.samples.iter().map(|(sample, _)| sample.declared).collect();
    use Declared::{Counter, Gauge, Histogram, Nothing};
    assert_eq!(
        declared[..7],
        [Gauge, Counter, Counter, Histogram, Histogram, Histogram, Histogram]
    );
    assert_eq!(declared[7..], [Nothing; 3]);
    let lines: Vec<_> = read.samples.iter().map(|(sample, _)| sample.line).collect();
    assert_eq!(lines, [3, 6, 7, 9, 10, 11, 12, 16, 18, 19]);
}

#[test]
fn a_line_that_cannot_be_read_says_why() {
    for (line, expected) in [
        ("9lives 1", Why::Name),
        ("{} 1", Why::Name),
        ("a.b 1", Why::Name),
        ("a-b{c=\"d\"} 1", Why::Name),
        ("ä 1", Why::Name),
        ("{\"a\\\"b\"} 1", Why::EscapedName),
        ("a{b=\"c} 1", Why::OpenLabel),
        ("a{b=\"c\\\"} 1", Why::OpenLabel),
        ("a{b=\"c\"", Why::OpenLabels),
        ("a{b=\"c\" 1", Why::Label),
        ("a{b=\"c\"d=\"e\"} 1", Why::Label),
        ("a{b=c} 1", Why::Label),
        ("a{=\"c\"} 1", Why::Label),
        ("a{b} 1", Why::Label),
        ("a{,} 1", Why::Label),
        ("a{param=\"{\"n\": 1}\"} 1", Why::Label),
        ("{\"a\",\"b\"} 1", Why::Label),
        ("a{b=\"1\",b=\"2\"} 1", Why::LabelTwice),
        ("a", Why::NoValue),
        ("a{b=\"c\"}  ", Why::NoValue),
        ("a ERROR - FAILED TO CONVERT TO STRING", Why::Value),
        ("a 1,5", Why::Value),
        ("a 0x1p-2 ", Why::Value),
        ("a 1 soon", Why::Stamp),
        ("a 1 1e300", Why::Stamp),
        ("a 1 99999999999999999999999", Why::Stamp),
        ("a 1 2 3", Why::Behind),
        ("# TYPE a guage", Why::Type),
        ("# TYPE a", Why::Type),
        ("# TYPE", Why::Name),
    ] {
        assert_eq!(why(line), Some(expected), "{line}");
    }
}

#[test]
fn numbers_of_go_and_of_c_are_numbers() {
    for (text, value) in [
        ("1.17e+010", 1.17e10),
        ("+5", 5.0),
        (".5", 0.5),
        ("-inf", f64::NEG_INFINITY),
        ("+Inf", f64::INFINITY),
        ("9223372036854775794", 9_223_372_036_854_775_807.0),
    ] {
        assert_eq!(number::value(text), Some(value), "{text}");
    }
    for text in ["NaN", "nan", "-nan", "-nan(ind)", "+NaN(0x1)"] {
        assert!(number::value(text).is_some_and(f64::is_nan), "{text}");
    }
    for text in ["", "nan(", "n", "1_000", "-", "1 "] {
        assert_eq!(number::value(text), None, "{text}");
    }
    for (text, at) in [
        ("1395066363000", 1_395_066_363_000),
        ("1395066363", 1_395_066_363_000),
        ("1395066363.25", 1_395_066_363_250),
        ("-1", -1000),
        ("0", 0),
    ] {
        assert_eq!(number::stamp(text), Some(at), "{text}");
    }
}

#[test]
fn what_is_no_text_of_metrics_is_told_and_not_read() {
    for (text, form) in [
        ("", Form::Empty),
        (" \r\n\n", Form::Empty),
        ("<!DOCTYPE html><html>", Form::Html),
        ("\n  <html>\na 1\n", Form::Html),
        ("[{\"iter\": 1}]", Form::Json),
        ("{\"error\" : \"not found\"}", Form::Json),
        ("{}", Form::Json),
        ("\u{1f}\u{8b}", Form::Text),
        ("{\"a.b\"} 1\n", Form::Text),
        ("{\"a.b\", c=\"d\"} 1\n", Form::Text),
        ("\u{feff}a 1\n", Form::Text),
    ] {
        assert_eq!(Form::of(text.as_bytes()), form, "{text:?}");
        let read = exposition(text);
        assert_eq!(read.samples.is_empty(), form != Form::Text || text.len() < 5, "{text:?}");
    }
    assert_eq!(Form::of(b"\x1f\x8b\x08"), Form::Compressed);
}

#[test]
fn a_body_that_is_one_json_string_is_its_text() {
    let quoted = serde_json::to_vec("# TYPE a gauge\na{b=\"c\"} 1\n").unwrap();
    let text = body(&quoted);
    assert_eq!(samples(&read(&text, &Bounds::default())), ["a{b=c} 1"]);
    assert_eq!(body(b"\"not closed"), b"\"not closed".as_slice());
    assert_eq!(body(b"a 1\n"), b"a 1\n".as_slice());
}

#[test]
fn a_last_line_without_an_end_is_not_believed() {
    let read = exposition("a 1\nb 1234");
    assert_eq!(samples(&read), ["a{} 1"]);
    assert_eq!(read.skipped.told(), [(2, Why::Cut)]);
    // Nothing can be missing from these.
    for whole in ["a 1\n# EOF", "a 1\n# a comment", "a 1\n  "] {
        assert_eq!(exposition(whole).skipped.count(), 0, "{whole}");
    }
}

#[test]
fn behind_the_end_nothing_is_read() {
    let read = exposition("a 1\n# EOF\n\nb 2\n");
    assert_eq!(samples(&read), ["a{} 1"]);
    assert_eq!(read.skipped.told(), [(4, Why::BehindEnd)]);
}

#[test]
fn a_series_that_stands_twice_counts_once() {
    let read = exposition("a{b=\"c\"} 1\na{b=\"d\"} 2\na{b=\"c\"} 3\na{b=\"c\"} 4\ne 5\n");
    assert_eq!(samples(&read), ["a{b=c} 1", "a{b=d} 2", "e{} 5"]);
    assert_eq!(read.skipped.told(), [(3, Why::Twice), (4, Why::Twice)]);
    // The newest of those that say when.
    let read = exposition("a 1 1395066363000\na 2 1395066364000\na 3 1395066362000\n");
    assert_eq!(samples(&read), ["a{} 2 at 1395066364000"]);
    assert_eq!(read.skipped.told(), [(1, Why::Twice), (3, Why::Twice)]);
}

#[test]
fn bounds_hold() {
    let bounds = Bounds { bytes: 60, line_bytes: 19, labels: 2, samples: 3, told: 2 };
    let text =
        "a{b=\"1\",c=\"2\",d=\"3\"} 1\na{b=\"1\",c=\"2\",d=\"3\"}\nb 1\nc 1\nd 1\ne 1\nf 1\ng 1\n";
    let of = read(text.as_bytes(), &bounds);
    assert!(of.cut);
    assert_eq!(samples(&of), ["b{} 1", "c{} 1", "d{} 1"]);
    assert_eq!(of.skipped.told(), [(1, Why::LongLine), (2, Why::LongLine)]);
    let of = read(text.as_bytes(), &Bounds { line_bytes: 100, bytes: 1000, ..bounds });
    assert!(!of.cut);
    assert_eq!(of.skipped.told(), [(1, Why::ManyLabels), (2, Why::ManyLabels)]);
    assert_eq!(of.skipped.count(), 5, "two lines with many labels, three samples too many");
}

/// What holds of every text.
fn check(text: &[u8]) {
    let read = read(text, &Bounds::default());
    let lines = text.split(|byte| *byte == b'\n').count() - usize::from(text.ends_with(b"\n"));
    if read.form == Form::Text {
        assert_eq!(read.lines, lines as u64);
    }
    assert!(read.samples.len() as u64 + read.skipped.count() <= read.lines);
    for (_, labels) in read.samples.iter() {
        assert!(labels.len() <= Bounds::default().labels);
    }
}

#[test]
fn every_prefix_is_read_without_a_panic() {
    for end in 0..=ALL.len() {
        check(&ALL.as_bytes()[..end]);
    }
}

#[test]
fn every_flipped_byte_costs_its_line_at_most() {
    let whole = samples(&exposition(ALL));
    for at in 0..ALL.len() {
        for flip in [1_u8, 0x02, 0x20, 0x80, 0xff] {
            let mut text = ALL.as_bytes().to_vec();
            text[at] ^= flip;
            check(&text);
            // A byte that ends lines joins two or makes two; a broken `# EOF` and `# TYPE` cost none.
            if ALL.as_bytes()[at] != b'\n' && text[at] != b'\n' {
                let read = super::read(&text, &Bounds::default());
                let left = samples(&read);
                let same = whole.iter().filter(|sample| left.contains(sample)).count();
                assert!(same + 1 >= whole.len(), "byte {at} costs more than its line: {left:?}");
            }
        }
    }
}

/// Lines whose labels begin alike, also where something is wrong with them.
fn labelled_line() -> impl Strategy<Value = String> {
    let label = prop::sample::select(vec![
        "a=\"1\"",
        "a=\"12\"",
        "b=\"\"",
        "b=\"x,y}\"",
        " c = \"\\\"\" ",
        "le=\"0.5\"",
        "le=\"+Inf\"",
        "\"m\"",
        "\"q\"=\"1\"",
        "d",
        "a=\"1",
    ]);
    let name = prop::sample::select(vec!["m", "n_bucket", ""]);
    let value =
        prop::sample::select(vec!["1", "25.0", "-0.5", "x", "000000000000001", "1234567890123456"]);
    (name, prop::collection::vec(label, 0..4), any::<bool>(), value).prop_map(
        |(name, labels, comma, value)| {
            let comma = if comma && !labels.is_empty() { "," } else { "" };
            format!("{name}{{{}{comma}}} {value}\n", labels.join(","))
        },
    )
}

/// The first sample of each series.
fn once(samples: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    let series = |sample: &str| sample.rsplit_once(' ').map(|(series, _)| series.to_owned());
    samples.into_iter().filter(|sample| seen.insert(series(sample))).collect()
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(text in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&text);
    }

    #[test]
    fn any_text_of_the_format_s_characters_is_read_without_a_panic(
        text in "([a#{}\"\\\\=, \t\r\n.0-9eE+NaITYPEOFé-]){0,300}"
    ) {
        check(text.as_bytes());
        check(&body(text.as_bytes()));
    }

    #[test]
    fn a_line_says_the_same_whatever_stands_before_it(
        lines in prop::collection::vec(labelled_line(), 1..12),
    ) {
        let alone: Vec<_> = lines.iter().flat_map(|line| samples(&exposition(line))).collect();
        prop_assert_eq!(once(samples(&exposition(&lines.concat()))), once(alone));
    }

    /// What is printed is what is read, whatever stands in it.
    #[test]
    fn a_printed_sample_comes_back(
        name in "[a-zA-Z_:][a-zA-Z0-9_:]{0,20}",
        labels in prop::collection::btree_map("[a-zA-Z_][a-zA-Z0-9_]{0,8}", ".{0,12}", 0..6),
        value in any::<f64>(),
        stamp in prop::option::of(100_000_000_000_i64..4_000_000_000_000),
    ) {
        let escape = |text: &str| {
            text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
        };
        let printed: Vec<_> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
        let stamped = stamp.map(|stamp| format!(" {stamp}")).unwrap_or_default();
        let text = format!("{name}{{{}}} {value}{stamped}\n", printed.join(","));
        let read = exposition(&text);
        prop_assert_eq!(read.skipped.count(), 0, "{}", text);
        let (sample, of) = read.samples.get(0).unwrap();
        prop_assert_eq!(sample.name, name);
        prop_assert_eq!(sample.stamped, stamp);
        prop_assert_eq!(sample.value.is_nan(), value.is_nan());
        prop_assert!(value.is_nan() || sample.value.to_bits() == value.to_bits());
        let of: Vec<_> = of.iter().map(|l| (l.name.to_owned(), l.value.clone().into_owned())).collect();
        prop_assert_eq!(of, labels.into_iter().collect::<Vec<_>>());
    }
}
