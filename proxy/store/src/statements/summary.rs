//! A statement for people.

use std::fmt::Write as _;

use taximeter_billing::{Statement, StatementBefore, StatementJournal};

/// What is in a statement, several lines of text.
pub fn summary(statement: &Statement) -> String {
    let mut out = String::from("Statement");
    let Statement { tenant, from, to, zone, requests, lines, .. } = statement;
    // Writing to a text cannot fail.
    let _ = match statement.number {
        Some(number) => write!(out, " no. {number}"),
        None => Ok(()),
    };
    let words = statement.status_words();
    let _ = writeln!(out, " of {tenant} from {from} to {to} ({zone}), {words}");
    if let Some(StatementBefore { number, sha256 }) = &statement.follows {
        let _ = writeln!(out, "  the difference to no. {number}: {sha256}");
    }
    let _ = writeln!(out, "  {requests} requests, {} lines", lines.len());
    for credit in &statement.credits {
        let month = credit.month.strftime("%Y-%m");
        let _ = writeln!(out, "  allowance in {month}: {} {}", credit.amount, credit.currency);
    }
    for (currency, total) in &statement.totals {
        let _ = writeln!(out, "  {total} {currency}");
    }
    if statement.unknown_cost_requests != 0 {
        let _ = writeln!(out, "  requests of unknown cost: {}", statement.unknown_cost_requests);
    }
    for StatementJournal { name, gateway, last_seq, sha256 } in &statement.journals {
        let _ = writeln!(out, "  {name} of {gateway} up to entry {last_seq}: {sha256}");
    }
    out
}
