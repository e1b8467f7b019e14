//! Parts that pages with sums share: the choice of a period, notes about the sums, and bars that
//! show a share.

use maud::{Markup, html};
use rust_decimal::Decimal;
use taximeter_billing::Bill;

use super::charts::{Piece, bar};
use super::span::{NAMED, Span};
use super::text::{count, money, per_cent, places, rough};
use super::view::View;

/// Links to the named periods, and a form for any other one. Both lead to the page at `path` and
/// keep the parameters in `kept`.
pub(super) fn period_choice(path: &str, kept: &[(&str, &str)], span: &Span, view: &View) -> Markup {
    let link = |word| {
        let parameters: Vec<_> = [("span", word)].iter().chain(kept).copied().collect();
        view.to(path, &parameters)
    };
    html! {
        nav aria-label="Period" { ul.tabs {
            @for (word, title) in NAMED {
                li { a href=(link(word))
                    aria-current=[(span.named == Some(word)).then_some("true")] { (title) } }
            }
        } }
        form method="get" action=(view.root().to(path)) {
            label for="from" { "From" }
            input #from type="date" name="from" required
                value=(view.text(span.period.from(), "%Y-%m-%d"));
            label for="to" { "before" }
            input #to type="date" name="to" value=(view.text(span.period.to(), "%Y-%m-%d"));
            @for (name, value) in kept { input type="hidden" name=(name) value=(value); }
            (view.keep_zone())
            button { "Show" }
        }
    }
}

/// What the sums of a bill leave out.
pub(super) fn notes(bill: &Bill, pending_entries: u64) -> Markup {
    let free = free(bill);
    let (costs, usages) = (bill.total.unknown_costs(), bill.total.unknown_usages());
    html! {
        @if costs + usages + pending_entries > 0 || free > Decimal::ZERO {
            ul.notes {
                @if costs > 0 {
                    li.warn {
                        "Requests of unknown cost: " (count(costs))
                        ". Sums have only what is known of it, so they are at least so much."
                    }
                }
                @if usages > 0 {
                    li.warn {
                        "Requests with unknown input or output tokens: " (count(usages))
                        ". Sums leave the unknown tokens out."
                    }
                }
                @if free > Decimal::ZERO {
                    li { "Allowances take off " (money(free, places(free))) "." }
                }
                @if pending_entries > 0 {
                    li {
                        "Ledger entries that the store does not have yet: "
                        (count(pending_entries)) "."
                    }
                }
            }
        }
    }
}

/// The cost of a bill before allowances. `None` where no request has a known cost.
pub(super) fn contracted(bill: &Bill) -> Option<Decimal> {
    bill.total.cost.map(|cost| (cost + free(bill)).normalize())
}

/// What allowances take off.
fn free(bill: &Bill) -> Decimal {
    bill.credits.iter().map(|credit| credit.amount).sum()
}

/// A part of a whole as a bar and in per cent.
pub(super) fn share_of(part: Option<Decimal>, whole: Option<Decimal>) -> Markup {
    let both = part.zip(whole);
    let share = both.and_then(|(part, whole)| Some((part, whole, per_cent(part, whole)?)));
    html! {
        @match share {
            Some((part, whole, words)) => {
                (bar(rough(whole), &[Piece { class: "s0", from: 0.0, to: rough(part) }]))
                span { (words) }
            }
            None => "–",
        }
    }
}
