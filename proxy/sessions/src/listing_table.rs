//! A list of sessions for people.

use std::fmt::Write as _;

use taximeter_billing::text::{
    PLACES_MIN, TextColumn, grouped, money, printable, rounded, shorten, write_columns,
};

use crate::listing::{Listed, Listing, TopBy};
use crate::sums::Sums;
use crate::words::{column, counted, duration, percent, time, tokens};

/// The list as text with at most `width` characters per line, if the names allow it. `period` says of
/// which days it is.
#[must_use]
pub fn listing_table(listing: &Listing, by: TopBy, period: &str, width: usize) -> String {
    let shown = &listing.sessions;
    let mut out = format!("{}, {period}", counted(listing.count, "session"));
    if (shown.len() as u64) < listing.count {
        let which = match by {
            TopBy::Cost => "dearest",
            TopBy::Length => "longest",
            TopBy::Latest => "latest",
        };
        let _ = write!(out, ": the {} {which}", shown.len());
    }
    out.push_str("\n\n");
    if shown.is_empty() {
        return out + "No request names a session.\n";
    }
    let all = shown.iter().map(|it| &it.sums).chain([&listing.total]);
    let places = all.clone().filter_map(|sums| sums.cost).map(|cost| rounded(cost).scale());
    let places = places.max().unwrap_or_default().max(PLACES_MIN);
    let mut columns = columns(listing, places);
    shorten(&mut columns, 3, width);
    write_columns(&mut out, &columns);
    if all.into_iter().any(Sums::is_at_least) {
        out.push_str("\n≥ means at least: some costs are unknown or known in part.\n");
    }
    out
}

fn columns(listing: &Listing, places: u32) -> Vec<TextColumn> {
    let cells =
        |of: &dyn Fn(&Listed) -> String| listing.sessions.iter().map(of).collect::<Vec<_>>();
    let total = &listing.total;
    let number = |count: u64| grouped(&count.to_string());
    let cost = |sums: &Sums| match sums.cost {
        None => "unknown".to_owned(),
        Some(cost) => {
            format!("{}{}", if sums.is_at_least() { "≥" } else { "" }, money(cost, places))
        }
    };
    let head = match &listing.currency {
        None => "cost".to_owned(),
        Some(code) => format!("cost ({})", printable(code)),
    };
    let length = |it: &Listed| duration(it.ended_at.duration_since(it.started_at));
    vec![
        column("session", cells(&|it| printable(&it.session)), "total", false),
        column("tenant", cells(&|it| printable(&it.tenant)), "", false),
        column(
            "client",
            cells(&|it| it.client.as_deref().map_or_else(String::new, printable)),
            "",
            false,
        ),
        column("started", cells(&|it| time(it.started_at)), "", false),
        column("length", cells(&length), "", true),
        column("agents", cells(&|it| it.agents.to_string()), "", true),
        column("requests", cells(&|it| number(it.sums.requests)), &number(total.requests), true),
        column(
            "input",
            cells(&|it| tokens(it.sums.input_tokens)),
            &tokens(total.input_tokens),
            true,
        ),
        column("cached", cells(&|it| percent(it.cache_read_share).unwrap_or_default()), "", true),
        column(
            "output",
            cells(&|it| tokens(it.sums.output_tokens)),
            &tokens(total.output_tokens),
            true,
        ),
        column(&head, cells(&|it| cost(&it.sums)), &cost(total), true),
    ]
}
