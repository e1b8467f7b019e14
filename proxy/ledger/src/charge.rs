//! What a request owes, as far as it is known, and why the rest is unknown.

use taximeter_pricing::Source;

use crate::record::{Record, RecordCost};
use crate::unknown_cost::UnknownCost;

/// Reasons of one request that are kept. The first says enough.
const REASONS_MAX: usize = 16;

/// What the prices say of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Charge {
    /// The cost, or its known part ([`RecordCost::at_least`]). `None` if nothing of it is known.
    pub cost: Option<RecordCost>,
    /// Why the cost is unknown. Empty if it is known.
    pub unknown: Vec<UnknownCost>,
}

impl Charge {
    /// A charge whose cost is unknown for `reasons`; `known` is the part of it that is known.
    #[must_use]
    pub fn unknown(
        known: Option<RecordCost>,
        reasons: impl IntoIterator<Item = UnknownCost>,
    ) -> Self {
        let mut unknown: Vec<_> = reasons.into_iter().take(REASONS_MAX).collect();
        unknown.dedup();
        Self { cost: known.map(|known| RecordCost { at_least: true, ..known }), unknown }
    }
}

impl RecordCost {
    /// Whether a cost is unknown, or known in part only.
    #[must_use]
    pub const fn is_unknown(cost: Option<&Self>) -> bool {
        match cost {
            Some(cost) => cost.at_least,
            None => true,
        }
    }
}

impl Record {
    /// What the request owes, as far as it is known: the cost, or the known part of it. It is what
    /// bills add up.
    #[must_use]
    pub fn owed(&self) -> Option<&RecordCost> {
        self.cost.as_ref().or(self.cost_known.as_ref())
    }

    /// Whether the request has used nothing and owes nothing: an engine refused it, or none had it.
    /// It is on record, and no bill, charge or event counts it.
    #[must_use]
    pub fn used_nothing(&self) -> bool {
        used_nothing(self.usage.source, self.owed())
    }

    /// Sets the cost, or what is known of it.
    pub fn charge(&mut self, charge: Charge) {
        let Charge { cost, unknown } = charge;
        (self.cost, self.cost_known) = match cost {
            Some(cost) if cost.at_least => (None, Some(cost)),
            cost => (cost, None),
        };
        self.cost_unknown = unknown;
    }
}

/// Whether a request with a usage of this source, which owes so much, has used nothing.
#[must_use]
pub fn used_nothing(source: Source, owed: Option<&RecordCost>) -> bool {
    source == Source::None && owed.is_none_or(|cost| cost.amount.is_zero())
}
