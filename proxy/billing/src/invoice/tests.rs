use super::*;
use crate::closing::closing;
use crate::credit::Covered;
use crate::fixtures;
use crate::invoice as shown;
use crate::period::instant;

fn decimal(text: &str) -> Decimal {
    Decimal::from_str_exact(text).unwrap()
}

fn key(tenant: &str, model: &str, hour: &str) -> HourKey {
    HourKey { model: Some(model.to_owned()), ..fixtures::key(tenant, hour) }
}

/// An hour with one request that used so many tokens of each meter, at prices per token.
fn hour(source: Source, lines: &[(&str, u64, &str)]) -> Hour {
    let line = |(meter, tokens, price): &(&str, u64, &str)| fixtures::line(meter, *tokens, price);
    fixtures::hour(source, lines.iter().map(line).collect())
}

fn invoicer(now: &str) -> Invoicer {
    Invoicer::new(Period::month("2026-11").unwrap(), Zone::UTC, instant(now).unwrap())
}

#[test]
fn an_invoice_reads_well() {
    let mut invoicer = invoicer("2026-12-01");
    let rides = [
        (
            "acme",
            "small",
            Source::Reported,
            [("output", 1_000, "0.0000006"), ("input", 4_000_000, "0.00000015")],
        ),
        (
            "acme",
            "large",
            Source::Reported,
            [("input", 300_000, "0.0000025"), ("output", 90_000, "0.000015")],
        ),
        (
            "acme",
            "large",
            Source::Counted,
            [("input", 100_000, "0.0000025"), ("output", 10_000, "0.000015")],
        ),
    ];
    for (tenant, model, source, lines) in rides {
        invoicer.add(&key(tenant, model, "2026-11-20T16:00:00Z"), &hour(source, &lines)).unwrap();
    }
    let mut unknown = key("beta", "mystery", "2026-11-20T16:00:00Z");
    unknown.currency = None;
    let mut lost = Hour::corrected(None, Decimal::ONE, Source::Unknown);
    lost.sums.requests = 1;
    invoicer.add(&unknown, &lost).unwrap();
    let expected = "\
Invoice for 2026-11 (UTC)

tenant  model  meter      quantity  unit price               amount  counted
────────────────────────────────────────────────────────────────────────────
acme    large  input       400,000    2.5 / 1M           1.0000 USD     25 %
               output      100,000     15 / 1M           1.5000 USD     10 %
        small  input     4,000,000   0.15 / 1M           0.6000 USD        -
               output        1,000    0.6 / 1M           0.0006 USD        -
                                      subtotal           3.1006 USD
beta           requests          1                          unknown
────────────────────────────────────────────────────────────────────────────
total                                           at least 3.1006 USD

4 requests. The cost of 1 of them is unknown: no price, or no usage.
`counted` is the part that the engine did not report and Taximeter counted.
";
    assert_eq!(shown(&invoicer.finish().unwrap(), 100, ""), expected);
}

#[test]
fn what_is_known_of_an_unknown_cost_is_owed_at_least() {
    let mut invoicer = invoicer("2026-12-01");
    let mut part = hour(Source::Reported, &[("input", 100_000, "0.0000025")]);
    part.sums.unknown_cost_requests = 1;
    invoicer.add(&key("acme", "large", "2026-11-20T16:00:00Z"), &part).unwrap();
    let text = shown(&invoicer.finish().unwrap(), 100, "");
    let expected = "\
acme    large  input      100,000    2.5 / 1M           0.25 USD        -
               requests         1                        unknown
─────────────────────────────────────────────────────────────────────────
total                                          at least 0.25 USD

1 request. The cost of 1 of them is unknown: no price, or no usage. \
What is known of it is in the lines.
";
    assert_eq!(text.split_once("counted\n").unwrap().1.split_once('\n').unwrap().1, expected);
}

#[test]
fn one_request_is_not_told_as_several() {
    let mut invoicer = invoicer("2026-11-21");
    let hour = hour(Source::Reported, &[("input", 1, "1")]);
    invoicer.add(&key("acme", "m", "2026-11-20T12:00:00Z"), &hour).unwrap();
    let text = shown(&invoicer.finish().unwrap(), 100, "");
    assert!(text.contains("\n1 request.\n"), "{text}");
}

#[test]
fn what_is_owed_so_far_comes_with_a_forecast() {
    let mut invoicer = invoicer("2026-11-21");
    for day in 1..=20 {
        let at = format!("2026-11-{day:02}T12:00:00Z");
        let tokens = if day > 13 { 2 } else { 1 };
        let hour = hour(Source::Reported, &[("input", tokens, "1")]);
        invoicer.add(&key("acme", "m", &at), &hour).unwrap();
    }
    let invoice = invoicer.finish().unwrap();
    let provisional = invoice.provisional.as_ref().unwrap();
    assert_eq!(invoice.totals["USD"], decimal("27"));
    // 27 so far, 2 a day in the last seven, ten days to go.
    assert_eq!(provisional.forecast["USD"], decimal("47"));
    let now = instant("2026-11-21").unwrap();
    let status = PeriodStatus::new(invoice.period, closing(invoice.period.to(), &[], now), now);
    let text = shown(&Invoice { status: Some(status), ..invoice }, 100, "");
    assert!(text.starts_with("Invoice for 2026-11 (UTC), provisional: up to 2026-11-21 00:00\n"));
    assert!(text.contains("Forecast for the whole period: 47.00 USD"), "{text}");
}

#[test]
fn less_than_a_day_is_no_forecast_of_a_month() {
    let requests = key("acme", "m", "2026-11-20T12:00:00Z");
    let spent = hour(Source::Reported, &[("input", 1, "1")]);
    for (now, forecast) in [
        ("2026-11-20T12:00:00Z", None),
        ("2026-11-21T11:59:59Z", None),
        // 1 a day, ten days and a half.
        ("2026-11-21T12:00:00Z", Some(decimal("10.5"))),
    ] {
        let mut invoicer = self::invoicer(now);
        invoicer.add(&requests, &spent).unwrap();
        let invoice = invoicer.finish().unwrap();
        let text = shown(&invoice, 100, "");
        assert_eq!(text.contains("No forecast yet"), forecast.is_none(), "{text}");
        assert_eq!(invoice.provisional.unwrap().forecast.get("USD").copied(), forecast, "{now}");
    }
    let nothing = shown(&self::invoicer("2026-11-21").finish().unwrap(), 100, "");
    assert!(!nothing.contains("orecast"), "{nothing}");
    assert!(invoicer("2026-12-01").finish().unwrap().provisional.is_none());
}

#[test]
fn a_correction_is_a_line_of_its_own() {
    let mut invoicer = invoicer("2026-12-01");
    let at = "2026-11-20T16:00:00Z";
    invoicer.add(&key("acme", "m", at), &hour(Source::Reported, &[("input", 10, "0.5")])).unwrap();
    let mut correction = key("acme", "m", at);
    correction.correction = true;
    let mut back = hour(Source::Reported, &[("input", 10, "0.4")]);
    let before = fixtures::cost(vec![fixtures::line("input", 10, "0.5")]);
    back.add(&Hour::corrected(Some(&before), Decimal::NEGATIVE_ONE, Source::Reported)).unwrap();
    back.sums.requests = 0;
    invoicer.add(&correction, &back).unwrap();
    let invoice = invoicer.finish().unwrap();
    assert_eq!(invoice.totals["USD"], decimal("4"));
    let text = shown(&invoice, 100, "");
    assert!(text.contains("input (correction)") && text.contains("-5.00 USD"), "{text}");
}

#[test]
fn what_is_free_is_a_line_that_takes_off() {
    let mut invoicer = invoicer("2026-12-02");
    let credit = Credit {
        tenant: "acme".to_owned(),
        month: jiff::civil::date(2026, 11, 1),
        covered: Covered::Meter("input".to_owned()),
        tokens: Some(Decimal::from(50)),
        amount: Decimal::new(3, 2),
        currency: "USD".to_owned(),
    };
    invoicer.add_credit(credit);
    let invoice = invoicer.finish().unwrap();
    assert_eq!(invoice.totals["USD"], Decimal::new(-3, 2));
    let text = shown(&invoice, 100, "");
    assert!(
        text.contains("acme           input (free)        50              -0.03 USD"),
        "{text}"
    );
}

#[test]
fn an_invoice_of_nothing_says_so() {
    let text = shown(&invoicer("2026-12-01").finish().unwrap(), 100, "Nothing came.");
    assert_eq!(text, "Invoice for 2026-11 (UTC)\n\nNothing came.\n");
}

#[test]
fn sums_that_the_shown_amounts_do_not_add_up_to_are_marked_and_explained() {
    let mut invoicer = invoicer("2026-12-01");
    let at = "2026-11-20T16:00:00Z";
    let small = [("input", 2_325, "0.00000075"), ("output", 1_887, "0.0000045")];
    invoicer.add(&key("acme", "small", at), &hour(Source::Reported, &small)).unwrap();
    invoicer.add(&key("beta", "m", at), &hour(Source::Reported, &[("input", 1, "1")])).unwrap();
    let text = shown(&invoicer.finish().unwrap(), 100, "");
    assert!(text.contains("subtotal  ≈0.010235 USD"), "0.001744 + 0.008492: {text}");
    // The subtotals add up to 1.010235, the lines do not.
    assert!(text.contains("≈1.010235 USD"), "{text}");
    assert!(text.contains("Each amount is rounded to 6 places; csv and json are exact. ≈ marks"));
}
