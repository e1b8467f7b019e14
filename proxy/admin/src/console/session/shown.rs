//! A session as its page shows it: costs with the same number of places, agents and requests by
//! their names.

use maud::{Markup, html};
use rust_decimal::Decimal;
use taximeter_ledger::RequestId;
use taximeter_sessions::{Session, Sums};

use crate::console::page::REQUESTS;
use crate::console::text::{money, name, per_cent, places, unknown};
use crate::console::view::View;

pub(super) struct Shown<'a> {
    pub(super) session: &'a Session,
    pub(super) view: &'a View,
    /// Decimal places of its costs.
    places: u32,
}

impl<'a> Shown<'a> {
    pub(super) fn new(session: &'a Session, view: &'a View) -> Self {
        let places = places(session.sums.cost.unwrap_or_default());
        Self { session, view, places }
    }

    /// A cost, for a cell of a table.
    pub(super) fn cost(&self, sums: &Sums) -> Markup {
        html! {
            @match sums.cost {
                Some(cost) => { @if sums.is_at_least() { "≥ " } (money(cost, self.places)) }
                None => (unknown()),
            }
        }
    }

    /// A cost with its currency and its part of the session's cost, for a sentence.
    pub(super) fn priced(&self, sums: &Sums) -> Markup {
        let whole = self.session.sums.cost.unwrap_or_default();
        html! {
            (self.cost(sums))
            @if let Some(cost) = sums.cost {
                @if let Some(currency) = &self.session.currency { " " (name(currency)) }
                @if let Some(share) = per_cent(cost, whole) { " (" (share) ")" }
            }
        }
    }

    /// The head of a column with costs.
    pub(super) fn cost_head(&self) -> Markup {
        html! {
            "Cost" @if let Some(currency) = &self.session.currency { ", " (name(currency)) }
        }
    }

    /// The known cost of the session, for shares.
    pub(super) const fn whole(&self) -> Option<Decimal> {
        self.session.sums.cost
    }

    /// The page of a request.
    pub(super) fn to(&self, request: RequestId) -> String {
        self.view.to(&format!("{REQUESTS}/{request}"), &[])
    }

    /// The name of an agent, or that its client names none.
    pub(super) fn agent(agent: Option<&str>) -> Markup {
        agent.map_or_else(|| html! { span.none { "no agent named" } }, name)
    }
}
