//! Bills as CSV for spreadsheets (RFC 4180).

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::bill::{Bill, BillLine};
use crate::group::Dimension;
use crate::sums::Sums;

/// The columns of the sums. They follow the columns of the period and of the dimensions.
const SUMS: &str = "requests,input_tokens,cache_read_input_tokens,output_tokens,\
                    reasoning_output_tokens,cost,list_cost,currency,unknown_cost_requests,\
                    counted_requests,unknown_usage_requests,charge_category,time_zone";

/// The bill as RFC 4180 text: a head line, then one line for each row, without a total.
///
/// Columns: `period_start`, `period_end`, the dimensions, the sums, the charge category, and the
/// time zone. The category is `Usage` or `Credit`, as in FOCUS. A credit has a tenant, and a cost
/// below 0. Money is exact. An empty cell means unknown, or that a dimension has no value. Some
/// names from outside begin with `=`, `+`, `-`, `@`, tab or carriage return, and a spreadsheet
/// would run them as a formula. They get a `'` in front, as OWASP advises. `json` has them
/// unchanged.
#[must_use]
pub fn csv(bill: &Bill) -> String {
    let mut out = String::from("period_start,period_end,");
    for dimension in bill.by.dimensions() {
        out.push_str(&csv_cell(&dimension.to_string()));
        out.push(',');
    }
    out.push_str(SUMS);
    out.push_str("\r\n");
    for line in &bill.rows {
        write_line(&mut out, bill, line, "Usage");
    }
    for credit in &bill.credits {
        let of = |dimension: &Dimension| {
            (*dimension == Dimension::Tenant).then(|| credit.tenant.clone())
        };
        let keys = bill.by.dimensions().iter().map(of).collect();
        let sums = Sums { cost: Some(-credit.amount), list_cost: None, ..Sums::nothing() };
        write_line(&mut out, bill, &BillLine { keys, sums }, "Credit");
    }
    out
}

fn write_line(out: &mut String, bill: &Bill, line: &BillLine, category: &str) {
    let _ = write!(out, "{},{},", bill.period.from(), bill.period.to());
    for key in &line.keys {
        out.push_str(&csv_cell(key.as_deref().unwrap_or_default()));
        out.push(',');
    }
    let sums = &line.sums;
    let currency = bill.currency.as_deref().filter(|_| sums.cost.is_some()).unwrap_or_default();
    let _ = write!(
        out,
        "{},{},{},{},{},{},{},{},{},{},{},{category},{}\r\n",
        sums.requests,
        number(sums.input_tokens),
        number(sums.cache_read_input_tokens),
        number(sums.output_tokens),
        number(sums.reasoning_output_tokens),
        number(sums.cost),
        number(sums.list_cost),
        csv_cell(currency),
        sums.unknown_cost_requests,
        sums.counted_requests,
        sums.unknown_usage_requests,
        csv_cell(bill.zone.name()),
    );
}

fn number<N: ToString>(known: Option<N>) -> String {
    known.map(|number| number.to_string()).unwrap_or_default()
}

/// A text as a cell of CSV: made harmless for spreadsheets, and quoted if needed.
#[must_use]
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    let runs = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let quote = text.contains([',', '"', '\r', '\n']);
    if !runs && !quote {
        return Cow::Borrowed(text);
    }
    let text = format!("{}{text}", if runs { "'" } else { "" });
    Cow::Owned(if quote { format!("\"{}\"", text.replace('"', "\"\"")) } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_text_stays_as_it_is() {
        assert_eq!(csv_cell("gpt-5.5"), "gpt-5.5");
        assert_eq!(csv_cell(""), "");
        assert_eq!(csv_cell("it's; fine = yes"), "it's; fine = yes");
    }

    #[test]
    fn commas_quotes_and_line_ends_are_quoted() {
        assert_eq!(csv_cell("a,b"), "\"a,b\"");
        assert_eq!(csv_cell("say \"hi\""), "\"say \"\"hi\"\"\"");
        assert_eq!(csv_cell("two\nlines"), "\"two\nlines\"");
    }

    #[test]
    fn a_text_that_a_spreadsheet_would_run_is_disarmed() {
        assert_eq!(csv_cell("=1+1"), "'=1+1");
        assert_eq!(csv_cell("@SUM(A1)"), "'@SUM(A1)");
        assert_eq!(csv_cell("-2"), "'-2");
        assert_eq!(csv_cell("+cmd|' /C calc'!A0,"), "\"'+cmd|' /C calc'!A0,\"");
        assert_eq!(csv_cell("\t=1"), "'\t=1");
    }
}
