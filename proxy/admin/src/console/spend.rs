//! What a period adds up to, column by column and in all: one look at the hours of the store, in
//! the sums of the usage API and of bills.

use jiff::Timestamp;
use taximeter_billing::{
    Bill, BillError, Biller, Dimension, Grouping, Hour, HourKey, Invoice, Invoicer, Period, Unit,
    Zone,
};
use taximeter_store::Store;
use taximeter_store::terms::{Scope, Terms};

use super::span::Span;
use crate::ask::Deadline;
use crate::problem::Refused;

/// What the charts can be split by; the first by default.
pub(super) const SPLITS: [(&str, Dimension); 4] = [
    ("tenant", Dimension::Tenant),
    ("model", Dimension::Model),
    ("upstream", Dimension::Upstream),
    ("provider", Dimension::Provider),
];

/// What is asked for.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) span: Span,
    /// Whose months and days.
    pub(super) zone: Zone,
    /// Only this tenant.
    pub(super) tenant: Option<String>,
    /// What the columns are split by.
    pub(super) by: Grouping,
    pub(super) now: Timestamp,
}

/// What is found.
pub(super) struct Spend {
    /// Its total is the period's.
    pub(super) by_tenant: Bill,
    pub(super) by_model: Bill,
    /// The columns' own split, in all.
    pub(super) split: Bill,
    /// One bill a column.
    pub(super) columns: Vec<Bill>,
    /// The calendar month that bills are made of, so far.
    pub(super) month: Invoice,
}

/// The sums of one question while they are made.
struct Adding<'a> {
    span: &'a Span,
    by_tenant: Biller,
    by_model: Biller,
    split: Biller,
    columns: Vec<Biller>,
}

impl Spend {
    /// Asks the store.
    ///
    /// Errors: the store's; sums that are none; too slow.
    pub(super) fn of(
        store: &mut Store,
        terms: &Terms,
        question: &Question,
        deadline: Deadline,
    ) -> Result<Self, Refused> {
        let Question { span, zone, tenant, now, .. } = question;
        let (now, tenant) = (*now, tenant.as_deref());
        let month = Period::month_of(now, zone)?;
        let mut invoicer = Invoicer::new(month, zone.clone(), now);
        let mut adding = Adding::new(question);
        let is_month = month == span.period;
        let scope = Scope { period: span.period, zone, unit: span.step, tenant, now };
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
            let scope = Scope { period: month, zone, unit: Unit::Month, tenant, now };
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

impl<'a> Adding<'a> {
    fn new(question: &'a Question) -> Self {
        let Question { span, zone, by, .. } = question;
        let biller = |by: Grouping| Biller::new(span.period, zone.clone(), by);
        Self {
            span,
            by_tenant: biller(Grouping::by(Dimension::Tenant)),
            by_model: biller(Grouping::by(Dimension::Model)),
            split: biller(by.clone()),
            columns: (0..span.columns()).map(|_| biller(by.clone())).collect(),
        }
    }

    fn add(&mut self, key: &HourKey, hour: &Hour) -> Result<(), Refused> {
        if let Some(column) = self.columns.get_mut(self.span.column(key.hour)) {
            column.add_hour(key, hour)?;
        }
        self.split.add_hour(key, hour)?;
        self.by_model.add_hour(key, hour)?;
        Ok(self.by_tenant.add_hour(key, hour)?)
    }
}

fn invoice(invoicer: &mut Invoicer, key: &HourKey, hour: &Hour) -> Result<(), Refused> {
    invoicer.add(key, hour).map_err(|_| too_large(&key.tenant))
}

fn too_large(tenant: &str) -> Refused {
    BillError::Overflow { tenant: tenant.to_owned() }.into()
}
