use crate::Zone;
use rust_decimal::Decimal;

use super::super::columns::{NAME_CHARS_MAX, PLACES};
use super::*;
use crate::bill::BillLine;
use crate::period::Period;

fn sums(requests: u64, tokens: u64, cost: Option<&str>) -> Sums {
    Sums {
        requests,
        input_tokens: Some(tokens),
        cache_read_input_tokens: Some(tokens / 2),
        output_tokens: Some(tokens / 10),
        reasoning_output_tokens: None,
        cost: cost.map(|text| Decimal::from_str_exact(text).unwrap()),
        list_cost: None,
        unknown_cost_requests: if cost.is_none() { requests.cast_signed() } else { 0 },
        counted_requests: 0,
        unknown_usage_requests: 0,
    }
}

fn line(keys: [Option<&str>; 2], sums: Sums) -> BillLine {
    BillLine { keys: keys.map(|key| key.map(str::to_owned)).to_vec(), sums }
}

fn bill(rows: Vec<BillLine>, total: Sums) -> Bill {
    Bill {
        period: Period::month("2026-11").unwrap(),
        zone: Zone::UTC,
        by: "tenant,model".parse().unwrap(),
        currency: Some("USD".to_owned()),
        rows,
        credits: Vec::new(),
        total,
        status: None,
    }
}

#[test]
fn a_bill_reads_well() {
    let mut half = sums(120, 2_048, Some("0.0001235"));
    half.unknown_cost_requests = 20;
    half.unknown_usage_requests = 4;
    half.counted_requests = 16;
    let mut total = sums(1_327, 1_236_715, Some("12.3457469"));
    (total.unknown_cost_requests, total.unknown_usage_requests) = (23, 4);
    total.counted_requests = 16;
    let rows = vec![
        line([Some("acme"), Some("gpt-5.5")], sums(1_204, 1_234_567, Some("12.3456234"))),
        line([Some("beta"), Some("llama-3")], half),
        line([Some("gamma"), None], sums(3, 100, None)),
    ];
    let expected = "\
Bill for 2026-11 (UTC)

tenant  model    requests       input    cached    output  cost (USD)
─────────────────────────────────────────────────────────────────────
acme    gpt-5.5     1,204   1,234,567   617,283   123,456   12.345623
beta    llama-3       120      ≥2,048    ≥1,024      ≥204   ≥0.000124
gamma   (none)          3         100        50        10     unknown
─────────────────────────────────────────────────────────────────────
total               1,327  ≥1,236,715  ≥618,357  ≥123,671  ≥12.345747

Tokens: 1,307 requests reported by the engine, 16 requests counted by Taximeter, 4 requests unknown.
The cost of 23 requests is unknown: no price, or no usage.
≥ means at least: the sum lacks what is unknown.
Each amount is rounded to 6 places; csv and json are exact.
";
    assert_eq!(table(&bill(rows, total), 100, ""), expected);
}

#[test]
fn what_is_free_stands_below_the_lines_and_above_the_total() {
    let free = |covered, tokens: Option<i64>, amount: &str| Credit {
        tenant: "acme".to_owned(),
        month: jiff::civil::date(2026, 11, 1),
        covered,
        tokens: tokens.map(Decimal::from),
        amount: amount.parse().unwrap(),
        currency: "USD".to_owned(),
    };
    let uncached = |cost| Sums { cache_read_input_tokens: None, ..sums(10, 2_000, Some(cost)) };
    let row = line([Some("acme"), Some("m")], uncached("2"));
    let mut bill = bill(vec![row], uncached("0.75"));
    bill.credits = vec![
        free(Covered::Meter("input".to_owned()), Some(1_500), "1"),
        free(Covered::Money, None, "0.25"),
    ];
    let text = table(&bill, 100, "");
    let expected = "\
tenant                                     model  requests  input  output  cost (USD)
─────────────────────────────────────────────────────────────────────────────────────
acme                                       m            10  2,000     200        2.00
acme, free in 2026-11: 1,500 input tokens                                       -1.00
acme, free in 2026-11                                                           -0.25
─────────────────────────────────────────────────────────────────────────────────────
total                                                   10  2,000     200        0.75
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_bill_without_requests_says_so() {
    let text = table(&bill(Vec::new(), Sums::default()), 100, "Nothing came.");
    assert_eq!(text, "Bill for 2026-11 (UTC)\n\nNothing came.\n");
}

#[test]
fn exact_costs_are_shown_with_no_more_places_than_they_need() {
    let rows = vec![line([Some("acme"), Some("m")], sums(1, 10, Some("1234.5")))];
    let text = table(&bill(rows, sums(1, 10, Some("1234.5"))), 100, "");
    assert!(text.contains("1,234.50\n"), "{text}");
    assert!(!text.contains("rounded"), "{text}");
}

#[test]
fn money_is_rounded_half_to_even_and_never_down_to_nothing() {
    let shown = |text: &str| money(Decimal::from_str_exact(text).unwrap(), PLACES);
    assert_eq!(shown("0.0000005"), "<0.000001");
    assert_eq!(shown("-0.0000001"), ">-0.000001");
    assert_eq!(shown("0.0000015"), "0.000002");
    assert_eq!(shown("0.0000025"), "0.000002");
    assert_eq!(shown("0"), "0.000000");
    assert_eq!(shown("-1234567.5"), "-1,234,567.500000");
}

/// A bill with these costs, and a total of their exact sum.
fn costs(costs: &[&str]) -> String {
    let exact = |text: &str| Decimal::from_str_exact(text).unwrap();
    let total: Decimal = costs.iter().map(|cost| exact(cost)).sum();
    let rows = costs.iter().map(|cost| line([Some("acme"), Some("m")], sums(1, 10, Some(cost))));
    table(&bill(rows.collect(), sums(1, 10, Some(&total.to_string()))), 100, "")
}

#[test]
fn a_total_that_the_shown_costs_do_not_add_up_to_is_marked_and_explained() {
    // 0.000001 + 0.000001 is not 0.000001, and the exact sum is 0.0000012.
    let text = costs(&["0.0000006", "0.0000006"]);
    assert!(text.contains("≈0.000001\n"), "{text}");
    assert!(text.contains("csv and json are exact. ≈ marks an exact sum that"), "{text}");
    let text = costs(&["0.00174375", "0.00849150"]);
    assert!(text.contains("≈0.010235\n"), "{text}");
    let text = costs(&["0.0000016", "0.0000012"]);
    assert!(text.contains("  0.000003\n") && !text.contains('≈'), "{text}");
    assert!(text.ends_with("csv and json are exact.\n"), "{text}");
}

proptest::proptest! {
    #[test]
    fn an_unmarked_total_is_the_sum_of_the_shown_costs(
        parts in proptest::collection::vec(0_i64..40_000_000, 1..6),
    ) {
        let parts: Vec<_> = parts.iter().map(|part| Decimal::new(*part, 8).to_string()).collect();
        let text = costs(&parts.iter().map(String::as_str).collect::<Vec<_>>());
        let shown = |line: &str| {
            let cost = line.rsplit(' ').next().unwrap();
            let digits = cost.trim_start_matches(['≈', '<']);
            Decimal::from_str_exact(digits).unwrap()
        };
        let rows: Decimal = text.lines().filter(|line| line.starts_with("acme")).map(|line| {
            if line.contains('<') { Decimal::ZERO } else { shown(line) }
        }).sum();
        let total = text.lines().find(|line| line.starts_with("total")).unwrap();
        let total_shown = if total.contains('<') { Decimal::ZERO } else { shown(total) };
        proptest::prop_assert_eq!(rows == total_shown, !total.contains('≈'), "{}", text);
    }
}

#[test]
fn thousands_are_set_apart() {
    assert_eq!(grouped("0"), "0");
    assert_eq!(grouped("999"), "999");
    assert_eq!(grouped("1000"), "1,000");
    assert_eq!(grouped("18446744073709551615"), "18,446,744,073,709,551,615");
}

#[test]
fn names_from_outside_cannot_steer_the_terminal() {
    assert_eq!(printable("gpt \"x\" é"), "gpt \"x\" é");
    assert_eq!(printable("\u{1b}[2Jm"), "\\u{1b}[2Jm");
    assert_eq!(printable("a\nb\u{202e}c"), "a\\nb\\u{202e}c");
    assert_eq!(printable(&"x".repeat(100)).chars().count(), NAME_CHARS_MAX + 1);
}

#[test]
fn names_are_shortened_until_the_line_fits() {
    let long = "accounts/fireworks/models/a-very-long-model-name";
    let rows = vec![line([Some("acme"), Some(long)], sums(1, 10, Some("1")))];
    let bill = bill(rows, sums(1, 10, Some("1")));
    let widest = |width| {
        let text = table(&bill, width, "");
        text.lines().filter(|line| line.contains("acme")).map(|line| line.chars().count()).max()
    };
    assert!(table(&bill, 140, "").contains(long));
    assert_eq!(widest(80), Some(80));
    assert!(table(&bill, 80, "").contains("accounts/firew"));
    assert!(table(&bill, 10, "").contains("accounts/fi…"));
}
