//! Writes bills as text, for `taximeter bill` and `/api/v1/export`.

use jiff::Timestamp;
use taximeter_billing::{
    Bill, BillError, Biller, Grouping, Invoicer, Period, PeriodError, TooLarge, Unit, Zone, csv,
    invoice, json, table,
};

use crate::terms::{Scope, Terms};
use crate::{Store, StoreError};

/// Width in characters of a table that is not written to a terminal.
pub const WIDTH: usize = 120;

/// How a bill is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people: an invoice, or a table if the bill is grouped.
    Table,
    /// For spreadsheets.
    Csv,
    /// For programs.
    Json,
}

/// One bill.
#[derive(Debug, Clone)]
pub struct BillJob {
    /// How it is written.
    pub form: Form,
    /// How its lines are grouped. `None` makes an invoice as a table, and other forms by tenant and
    /// model.
    pub by: Option<Grouping>,
    /// The period. A request belongs to the period in which it was admitted.
    pub period: Period,
    /// The time zone of its months, days and hours.
    pub zone: Zone,
    /// Only this tenant, if set.
    pub tenant: Option<String>,
    /// The current time. It decides which part is provisional and what GPUs cost so far.
    pub now: Timestamp,
    /// Amounts in addition to the cost of requests.
    pub terms: Terms,
}

impl Form {
    /// Media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Table => "text/plain; charset=utf-8",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Json => "application/json",
        }
    }
}

impl BillJob {
    /// Writes the bill as text. Tables are up to `width` characters wide and end with `source`, the
    /// name of the store for people.
    ///
    /// Errors: the store's; sums that cannot be kept exactly, or of two currencies; a period of too
    /// many parts.
    pub fn write<E>(&self, store: &mut Store, source: &str, width: usize) -> Result<String, E>
    where
        E: From<StoreError> + From<BillError> + From<PeriodError> + From<TooLarge>,
    {
        let from = format!("From {source}.\n");
        Ok(match self.form {
            Form::Table if self.by.is_none() => self.invoice::<E>(store, width)? + &from,
            Form::Table => table(&self.bill::<E>(store)?, width) + &from,
            Form::Csv => csv(&self.bill::<E>(store)?),
            Form::Json => json(&self.bill::<E>(store)?),
        })
    }

    /// The shortest calendar unit that its lines distinguish.
    pub fn unit(&self) -> Unit {
        self.by.as_ref().and_then(Grouping::unit).unwrap_or(Unit::Month)
    }

    fn invoice<E>(&self, store: &mut Store, width: usize) -> Result<String, E>
    where
        E: From<StoreError> + From<BillError> + From<PeriodError> + From<TooLarge>,
    {
        let mut invoicer = Invoicer::new(self.period, self.zone.clone(), self.now);
        let (scope, cut) = (self.scope(), Some(invoicer.recent_since()));
        let credits =
            self.terms.sums(store, scope, cut, |key, hour| Ok::<_, E>(invoicer.add(key, hour)?))?;
        for credit in credits {
            invoicer.add_credit(credit);
        }
        Ok(invoice(&invoicer.finish()?, width))
    }

    fn bill<E>(&self, store: &mut Store) -> Result<Bill, E>
    where
        E: From<StoreError> + From<BillError> + From<PeriodError>,
    {
        let by = self.by.clone().unwrap_or_default();
        let mut biller = Biller::new(self.period, self.zone.clone(), by);
        let scope = self.scope();
        let credits = self
            .terms
            .sums(store, scope, None, |key, hour| Ok::<_, E>(biller.add_hour(key, hour)?))?;
        for credit in credits {
            biller.add_credit(credit)?;
        }
        Ok(biller.finish())
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            period: self.period,
            zone: &self.zone,
            unit: self.unit(),
            tenant: self.tenant.as_deref(),
            now: self.now,
        }
    }
}
