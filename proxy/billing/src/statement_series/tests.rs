use super::*;
use crate::closing::{PeriodStatus, closing};
use crate::fixtures;
use crate::hours::{Hour, HourKey};
use crate::period::{Period, instant};
use crate::zone::Zone;
use taximeter_pricing::Source;

fn decimal(text: &str) -> Decimal {
    Decimal::from_str_exact(text).unwrap()
}

/// The statement of November with these tokens of input and output.
fn november(input: u64, output: u64) -> Statement {
    let november = Period::month("2026-11").unwrap();
    let now = instant("2026-12-01T01:00:00Z").unwrap();
    let status = PeriodStatus::new(november, closing(november.to(), &[], now), now);
    let hours: Vec<(HourKey, Hour)> = [("input", input, "0.5"), ("output", output, "2")]
        .into_iter()
        .filter(|(_, tokens, _)| *tokens > 0)
        .map(|(meter, tokens, price)| {
            let key = HourKey {
                currency: Some("USD".to_owned()),
                ..fixtures::key("acme", "2026-11-20T10:00:00Z")
            };
            (key, fixtures::hour(Source::Reported, vec![fixtures::line(meter, tokens, price)]))
        })
        .collect();
    let hours = hours.iter().map(|(key, hour)| (key, hour));
    Statement::new("acme", november, &Zone::UTC, status, hours, Vec::new()).unwrap()
}

fn free(statement: &mut Statement, amount: &str) {
    statement.credits = vec![Credit {
        tenant: "acme".to_owned(),
        month: jiff::civil::date(2026, 11, 1),
        covered: Covered::Meter("input".to_owned()),
        tokens: Some(decimal(amount) * decimal("2")),
        amount: decimal(amount),
        currency: "USD".to_owned(),
    }];
    statement.totals = totals(&statement.lines, &statement.credits).unwrap();
}

fn next(whole: &Statement, issued: &[Statement]) -> Statement {
    whole.beyond(issued).unwrap().unwrap()
}

#[test]
fn the_first_one_states_all_and_the_next_ones_what_came_later() {
    let first = next(&november(10, 3), &[]);
    assert_eq!((first.number, &first.follows), (Some(1), &None));
    assert_eq!(first.totals["USD"], decimal("11"));
    assert_eq!(november(10, 3).beyond(std::slice::from_ref(&first)).unwrap(), None);

    let second = next(&november(14, 3), std::slice::from_ref(&first));
    assert_eq!((second.number, second.requests), (Some(2), 0));
    assert_eq!(second.follows, first.as_before());
    let [line] = &second.lines[..] else { panic!("{:?}", second.lines) };
    assert_eq!(
        (line.meter.as_str(), line.quantity, line.amount),
        ("input", decimal("4"), decimal("2"))
    );
    assert_eq!(second.check(), Ok(()));

    // A correction takes back; together they state what is owed.
    let third = next(&november(14, 1), &[first.clone(), second.clone()]);
    assert_eq!((third.number, third.totals["USD"]), (Some(3), decimal("-4")));
    let issued = [first, second, third];
    assert_eq!(check_series(&issued), Ok(()));
    assert_eq!(november(14, 1).beyond(&issued).unwrap(), None);
    let read: Statement = serde_json::from_str(&issued[2].canonical()).unwrap();
    assert_eq!(read, issued[2]);
}

#[test]
fn a_difference_may_take_back_what_was_free_and_a_first_statement_may_not() {
    let mut whole = november(10, 3);
    free(&mut whole, "3");
    let first = next(&whole, &[]);
    free(&mut whole, "1");
    let second = next(&whole, std::slice::from_ref(&first));
    assert_eq!(
        (second.credits[0].amount, second.credits[0].tokens),
        (decimal("-2"), Some(decimal("-4")))
    );
    assert_eq!(second.totals["USD"], decimal("2"));
    assert_eq!(second.check(), Ok(()));
    let alone = Statement { follows: None, ..second };
    assert!(matches!(alone.check(), Err(StatementFault::Credit { number: 1, .. })));
}

#[test]
fn a_request_whose_cost_is_unknown_is_a_difference_without_an_amount() {
    let first = next(&november(10, 3), &[]);
    let late = Statement { requests: 3, unknown_cost_requests: 1, ..november(10, 3) };
    let second = next(&late, std::slice::from_ref(&first));
    assert_eq!((second.requests, second.unknown_cost_requests), (1, 1));
    assert!(second.lines.is_empty() && second.totals.is_empty());
    // Once it is known, a further one says so.
    let known = Statement { requests: 3, ..november(10, 4) };
    let third = next(&known, &[first, second]);
    assert_eq!((third.requests, third.unknown_cost_requests), (0, -1));
    assert_eq!(third.totals["USD"], decimal("2"));
}

#[test]
fn a_series_with_a_changed_missing_or_foreign_statement_is_none() {
    let first = next(&november(10, 3), &[]);
    let second = next(&november(12, 3), std::slice::from_ref(&first));
    let both = [first.clone(), second.clone()];
    let broken = |series: &[Statement], number| {
        assert_eq!(check_series(series), Err(SeriesFault::Broken { number }));
    };
    broken(&both[1..], 1);
    broken(&[first.clone(), first.clone()], 2);
    let mut changed = both.clone();
    changed[0].journals.clear();
    changed[0].silent.push(crate::SilentGateway { gateway: "a".to_owned(), since: first.to });
    broken(&changed, 2);
    let mut provisional = both;
    provisional[0].provisional = true;
    broken(&provisional, 1);
    let wrong = Statement { totals: second.totals, ..first };
    assert!(matches!(check_series(&[wrong]), Err(SeriesFault::Statement { number: 1, .. })));
}

#[test]
fn a_statement_of_the_first_version_reads_as_it_was_signed() {
    let text = "{\"from\":\"2026-11-01T00:00:00Z\",\"lines\":[],\"provisional\":false,\
                \"requests\":0,\"tenant\":\"acme\",\"to\":\"2026-12-01T00:00:00Z\",\"totals\":{},\
                \"unknown_cost_requests\":0,\"version\":1}";
    let read: Statement = serde_json::from_str(text).unwrap();
    assert_eq!(read.canonical(), text);
    assert_eq!(read.check(), Ok(()));
    assert_eq!(read.status_words(), "final");
    let provisional = Statement { provisional: true, ..read };
    assert_eq!(provisional.status_words(), "provisional: made before the end of the period");
}
