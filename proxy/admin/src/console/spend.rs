//! The sums of a period for the overview: in total and for each column of a chart. The store is
//! read once. The usage API and bills have the same sums.

use jiff::Timestamp;
use taximeter_billing::{
    Bill, BillError, Biller, Dimension, Grouping, Hour, HourKey, Invoice, Invoicer, Period,
    SplitBy, Unit, Zone,
};
use taximeter_store::Store;
use taximeter_store::terms::{Scope, Terms};

use super::span::Span;
use crate::ask::Deadline;
use crate::problem::ApiError;

/// The splits of the charts. The first one is the default.
pub(super) const SPLITS: [(&str, Dimension); 4] = [
    ("tenant", Dimension::Tenant),
    ("model", Dimension::Model),
    ("upstream", Dimension::Upstream),
    ("provider", Dimension::Provider),
];

/// One query of the store.
#[derive(Debug, Clone)]
pub(super) struct SpendQuery {
    pub(super) span: Span,
    /// The time zone of months and days.
    pub(super) zone: Zone,
    /// Only this tenant.
    pub(super) tenant: Option<String>,
    /// What the columns are split by.
    pub(super) by: Grouping,
    pub(super) now: Timestamp,
}

/// Its result.
pub(super) struct Spend {
    /// By tenant. Its total is the total of the period.
    pub(super) by_tenant: Bill,
    pub(super) by_model: Bill,
    /// The whole period, split as the columns are.
    pub(super) split: Bill,
    /// One bill for each column.
    pub(super) columns: Vec<Bill>,
    /// The current calendar month, so far.
    pub(super) month: Invoice,
}

/// Adds up the sums.
struct SpendBuilder<'a> {
    span: &'a Span,
    by_tenant: Biller,
    by_model: Biller,
    split: Biller,
    columns: Vec<Biller>,
}

impl Spend {
    /// Runs the query.
    ///
    /// Errors: those of the store; the sums cannot be made; it takes too long.
    pub(super) fn of(
        store: &mut Store,
        terms: &Terms,
        question: &SpendQuery,
        deadline: Deadline,
    ) -> Result<Self, ApiError> {
        let SpendQuery { span, zone, tenant, now, .. } = question;
        let (now, tenant) = (*now, tenant.as_deref());
        let month = Period::month_of(now, zone)?;
        let mut invoicer = Invoicer::new(month, zone.clone(), now);
        let mut adding = SpendBuilder::new(question);
        let is_month = month == span.period;
        let scope = Scope {
            period: span.period,
            zone,
            unit: span.step,
            tenant,
            now,
            split_by: SplitBy::NONE,
        };
        let cut = is_month.then(|| invoicer.recent_since());
        let credits = terms.sums(store, scope, cut, |key, hour| {
            deadline.check()?;
            if is_month {
                invoice(&mut invoicer, key, hour)?;
            }
            adding.add(key, hour)
        })?;
        let month_credits = if is_month {
            credits.clone()
        } else {
            let scope = Scope {
                period: month,
                zone,
                unit: Unit::Month,
                tenant,
                now,
                split_by: SplitBy::NONE,
            };
            terms.sums(store, scope, Some(invoicer.recent_since()), |key, hour| {
                deadline.check()?;
                invoice(&mut invoicer, key, hour)
            })?
        };
        for credit in month_credits {
            invoicer.add_credit(credit);
        }
        for credit in credits {
            adding.by_tenant.add_credit(credit)?;
        }
        Ok(Self {
            by_tenant: adding.by_tenant.finish(),
            by_model: adding.by_model.finish(),
            split: adding.split.finish(),
            columns: adding.columns.into_iter().map(Biller::finish).collect(),
            month: invoicer.finish().map_err(|_| too_large("a tenant"))?,
        })
    }
}

impl<'a> SpendBuilder<'a> {
    fn new(question: &'a SpendQuery) -> Self {
        let SpendQuery { span, zone, by, .. } = question;
        let biller = |by: Grouping| Biller::new(span.period, zone.clone(), by);
        Self {
            span,
            by_tenant: biller(Grouping::by(Dimension::Tenant)),
            by_model: biller(Grouping::by(Dimension::Model)),
            split: biller(by.clone()),
            columns: (0..span.columns()).map(|_| biller(by.clone())).collect(),
        }
    }

    fn add(&mut self, key: &HourKey, hour: &Hour) -> Result<(), ApiError> {
        if let Some(column) = self.columns.get_mut(self.span.column(key.hour)) {
            column.add_hour(key, hour)?;
        }
        self.split.add_hour(key, hour)?;
        self.by_model.add_hour(key, hour)?;
        Ok(self.by_tenant.add_hour(key, hour)?)
    }
}

fn invoice(invoicer: &mut Invoicer, key: &HourKey, hour: &Hour) -> Result<(), ApiError> {
    invoicer.add(key, hour).map_err(|_| too_large(&key.tenant))
}

fn too_large(tenant: &str) -> ApiError {
    BillError::Overflow { tenant: tenant.to_owned() }.into()
}
