use super::*;

#[test]
fn every_mistake_is_named_with_its_place_and_what_is_expected() {
    for (text, message) in [
        ("", "1:1: unexpected end of file"),
        (
            "currency: EURO\nmodels: []\n",
            "1:11: \"EURO\" is not a currency; expected a code of ISO",
        ),
        ("models: []\nversion: 2026-13-20\n", "2:10: \"2026-13-20\" is not a date; expected one"),
        ("modells: []\n", "1:1: unknown field `modells`"),
        (&row("colour: red"), "4:3: unknown field `colour`, expected one of `model`, `provider`"),
        (&row("tiers: {gold: {}}"), "4:11: unknown field `gold`, expected one of `batch`, `flex`"),
        (&row("from: soon"), "4:9: \"soon\" is not a date; expected one like 2026-11-20"),
        (&row("from: 2027-01-01\n  until: 2027-01-01"), "2:10: \"m\" ends (`until`) before it"),
        (
            &row("when: {weather: {}}"),
            "4:10: unknown variant `weather`, expected one of `inference",
        ),
        (
            &row("when: {speed: {fast: {times: 0}}}"),
            "4:32: invalid value: string \"0\", expected a",
        ),
        (
            &rates("inputs: 1"),
            "3:11: unknown variant `inputs`, expected one of `input`, `input_audio`",
        ),
        (&row("long_context: [{rates: {}}]"), "2:10: each `long_context` of \"m\" needs `over` or"),
        (
            &row("long_context: [{over: 1, at_least: 2, rates: {}}]"),
            "2:10: each `long_context` of \"m\" needs `over` or `at_least`, not both",
        ),
        (
            &row("long_context: [{over: 9, rates: {}}, {at_least: 10, rates: {}}]"),
            "2:10: the thresholds in `long_context` of \"m\" must rise",
        ),
        (
            &row("input_only: true"),
            "2:10: the rates of \"m\" have one for output, beside `input_only: true`",
        ),
        (&row("aliases: [m]"), "2:10: \"m\" is named twice; keep one, or give the later row"),
        (
            &format!("{}{}", row(""), "- {model: m, rates: {input: 3, output: 4}}\n"),
            "5:11: \"m\" is named twice; keep one, or give the later row another `from`",
        ),
        (&rates("input: 1"), "2:10: the rates of \"m\" lack `output`; without any output say"),
        (&rates("output: 1"), "2:10: the rates of \"m\" lack `input`"),
        (&rates("input: 1, input: 2"), "3:21: duplicate mapping key"),
        (&rates("input: , output: 1"), "3:16: null is not allowed here"),
        ("models: {m: {}}", "1:9: expected a list, like [a, b]"),
        (&row("aliases: a"), "4:12: expected a list, like [a, b]"),
        (&row("long_context: [{over: 1.5, rates: {}}]"), "4:25: expected a whole number"),
        (
            &row("off_peak: {rates: {}, windows: []}"),
            "2:10: the `off_peak` of \"m\" has no days and",
        ),
        ("models: [{model: '', rates: {input: 1, output: 2}}]", "1:18: a model needs a name"),
    ] {
        let error = error(text);
        let message = format!("prices.yaml:{message}");
        assert!(error.starts_with(&message), "{error}\nshould begin with\n{message}");
    }
}

#[test]
fn what_is_no_date_is_told_that_a_date_is_wanted() {
    for written in [
        "1",
        "1.0",
        "true",
        "v2",
        "latest",
        "2026",
        "2026-11",
        "20261120",
        "2026-02-30",
        "''",
        "20.11.2026",
        "11/20/2026",
        "2026-11-20 10:00",
        "2026-11-20T00:00:00Z",
        "+02026-11-20",
    ] {
        for (key, line) in [("version", 1), ("from", 1), ("until", 1)] {
            let found = error(&format!("{key}: {written}\nmodels: []\n"));
            let text = written.trim_matches('\'');
            let expected = format!("{text:?} is not a date; expected one like 2026-11-20");
            let column = key.len() + 3;
            assert_eq!(found, format!("prices.yaml:{line}:{column}: {expected}"));
        }
        assert!(error(&row(&format!("until: {written}"))).contains(" is not a date; expected one"));
    }
    assert!(error("version:\nmodels: []\n").starts_with("prices.yaml:1:"));
    assert!(error("version: {a: 1}\nmodels: []\n").starts_with("prices.yaml:1:10: expected text"));
    assert!(read_one("version: '2026-11-20'\nmodels: []\n").is_ok());
}

#[test]
fn a_pattern_is_no_name() {
    let named =
        |name: &str| format!("models:\n- model: {name}\n  rates: {{input: 1, output: 2}}\n");
    for (text, place, mark) in [
        (&named("gpt-*"), "2:10", "\"gpt-*\" has a `*`"),
        (&named("'*'"), "2:10", "\"*\" has a `*`"),
        (&named("gpt-?"), "2:10", "\"gpt-?\" has a `?`"),
        (&named("^gpt"), "2:10", "\"^gpt\" has a `^`"),
        (&row("aliases: [n, 'openai/*']"), "2:10", "\"openai/*\" has a `*`"),
    ] {
        let expected = format!(
            "prices.yaml:{place}: {mark}, and a model is found by its exact name; write each model, \
             and its other names as `aliases`"
        );
        assert_eq!(error(text), expected);
    }
    for (text, message) in [
        (&named("*"), "2:10: in YAML a `*` begins a reference; a model is found by its exact name"),
        (&named("*gpt"), "2:10: in YAML a `*` begins a reference; a model is found by its exact"),
        (&named("' m'"), "2:10: \" m\" begins or ends with a space; remove it"),
        (
            &row("provider: 'open*'"),
            "2:10: the provider \"open*\" is not a name; leave out `provider`",
        ),
        (&row("provider: ''"), "2:10: the provider \"\" is not a name; leave out `provider`"),
        (
            &format!("provider: '*'\n{}", row("")),
            "1:11: the provider \"*\" is not a name; leave out",
        ),
        (
            &row("when: {region: {'*': {times: 2}}}"),
            "2:10: the region \"*\" is not a value; write each value of region alone",
        ),
    ] {
        let error = error(text);
        assert!(error.starts_with(&format!("prices.yaml:{message}")), "{error}\n{message}");
    }
}

/// A file with rows of one model, each with these days.
fn days(rows: &[&str]) -> String {
    let rows =
        rows.iter().map(|days| format!("- {{model: m, {days}rates: {{input: 1, output: 2}}}}\n"));
    format!("models:\n{}", rows.collect::<String>())
}

#[test]
fn the_rows_of_a_model_follow_each_other_without_a_gap() {
    for rows in [
        &["until: 2026-12-01, ", "from: 2026-12-01, "][..],
        &["from: 2026-12-01, ", "until: 2026-12-01, "],
        &["", "from: 2026-12-01, ", "from: 2027-01-01, until: 2028-01-01, "],
        // A price for some days, and then the usual one again.
        &["", "from: 2026-11-01, until: 2026-12-01, "],
        &["until: 2027-01-01, ", "from: 2026-11-01, until: 2026-12-01, ", "from: 2027-01-01, "],
    ] {
        assert!(read_one(&days(rows)).is_ok(), "{rows:?}");
    }
    for (rows, place, message) in [
        (
            &["until: 2026-12-31, ", "from: 2027-01-01, "][..],
            "3:11",
            "has no price from 2026-12-31 to 2027-01-01: `until` is the first day without the price, \
             so write `until: 2027-01-01`, or a row for these days",
        ),
        (
            &["from: 2027-01-01, ", "until: 2026-12-31, "],
            "2:11",
            "has no price from 2026-12-31 to 2027-01-01: `until` is the first day without the price, \
             so write `until: 2027-01-01`, or a row for these days",
        ),
        (
            &["until: 2026-12-31, ", "from: 2026-06-01, "],
            "3:11",
            "has two prices from 2026-06-01 to 2026-12-31: let the earlier row end where this one \
             begins (`until: 2026-06-01`)",
        ),
        (
            &["until: 2027-01-01, ", "from: 2026-11-01, until: 2026-12-01, ", "from: 2027-02-01, "],
            "4:11",
            "has no price from 2027-01-01 to 2027-02-01: `until` is the first day without the price, \
             so write `until: 2027-02-01`, or a row for these days",
        ),
    ] {
        assert_eq!(error(&days(rows)), format!("prices.yaml:{place}: \"m\" {message}"));
    }
    // Two providers, or two models, have nothing to do with each other.
    let two = "models:\n- {model: m, provider: a, until: 2026-12-01, rates: {input: 1, output: 2}}\n\
        - {model: m, provider: b, from: 2027-01-01, rates: {input: 1, output: 2}}\n";
    assert!(read_one(two).is_ok());
}

#[test]
fn a_price_is_plain_digits_and_nothing_else() {
    for price in ["-1", "+1", "-0", "1e-3", "1_000", "$1", ".", "1.2.3", "1,5", "NaN", "0x10"] {
        let error = error(&rates(&format!("input: \"{price}\", output: 1")));
        assert!(error.contains("expected a price per 1,000,000 tokens in plain digits"), "{error}");
    }
    let too_fine = error(&rates("input: 0.00000000000000000000001, output: 1"));
    assert!(too_fine.starts_with("prices.yaml:3:18: "), "{too_fine}");
}

#[test]
fn hours_stay_within_one_day() {
    for hours in ["22:00-06:00", "06:00-06:00", "00:00-24:01", "7:00-8:00", "00:60-02:00", "1-2"] {
        let window =
            format!("off_peak: {{rates: {{}}, windows: [{{days: [mon], hours: [{hours}]}}]}}");
        let error = error(&row(&window));
        assert!(error.contains("hours are like \"22:00-24:00\", within one day"), "{error}");
    }
}

#[test]
fn a_price_keeps_every_digit() {
    let rows = read_one(&rates("input: 0.1234567890123456, output: 2.50"));
    let rates = rows.unwrap().rows.remove(0).card.rates;
    let rate = |meter| rates.rate(meter).unwrap().to_string();
    assert_eq!(rate(MeterName::Input), "0.0000001234567890123456");
    assert_eq!(rate(MeterName::Output), "0.0000025");
}

#[test]
fn fast_is_another_word_for_priority() {
    let tiers = |word: &str| {
        let text = row(&format!("tiers: {{{word}: {{input: 2, output: 4}}}}"));
        read_one(&text).unwrap().rows.remove(0).card.tiers
    };
    assert_eq!(tiers("fast"), tiers("priority"));
    assert!(tiers("fast").priority.is_some());
    let both = error(&row("tiers: {priority: {input: 2}, fast: {input: 3}}"));
    assert!(both.contains("duplicate field `priority`"), "{both}");
}

fn row(line: &str) -> String {
    format!("models:\n- model: m\n  rates: {{input: 1, output: 2}}\n  {line}\n")
}

fn rates(rates: &str) -> String {
    format!("models:\n- model: m\n  rates: {{{rates}}}\n")
}

fn read_one(text: &str) -> Result<File, BookError> {
    read("overrides", "prices.yaml", text, &mut Names::new())
}

fn error(text: &str) -> String {
    match read_one(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}
