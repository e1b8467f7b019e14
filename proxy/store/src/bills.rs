//! Writes bills as text, for `taximeter bill` and `/api/v1/export`.

use std::str::FromStr as _;

use jiff::Timestamp;
use taximeter_billing::{
    Bill, BillError, Biller, Grouping, Invoice, Invoicer, Period, PeriodError, SplitBy, TooLarge,
    Unit, Zone, csv, invoice, json, printable, table,
};

use crate::terms::{Scope, Terms};
use crate::{Store, StoreError};

/// Width in characters of a table that is not written to a terminal.
pub const WIDTH: usize = 120;

/// Most tenants that an empty bill names.
const TENANTS_NAMED_MAX: usize = 10;
/// A bill without requests.
const NO_REQUEST: &str = "No request of this period is billed.";

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
    /// The current time. It decides what GPUs cost so far, and that the period is not over.
    pub now: Timestamp,
    /// Amounts in addition to the cost of requests.
    pub terms: Terms,
}

/// A bill as text.
#[derive(Debug, Clone)]
pub struct Written {
    /// The bill.
    pub text: String,
    /// What the form has no place for: why the bill is empty, and what of its period is not there any
    /// more.
    pub note: Option<String>,
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
    pub fn write<E>(&self, store: &mut Store, source: &str, width: usize) -> Result<Written, E>
    where
        E: From<StoreError> + From<BillError> + From<PeriodError> + From<TooLarge>,
    {
        let (text, empty) = if self.form == Form::Table && self.by.is_none() {
            let found = self.invoice::<E>(store)?;
            let empty = self.emptiness::<E>(store, found.tenants.is_empty())?;
            (invoice(&found, width, empty.as_deref().unwrap_or_default()), empty)
        } else {
            let bill = self.bill::<E>(store)?;
            let empty = self.emptiness::<E>(store, bill.rows.is_empty())?;
            let gone = bill.status.as_ref().and_then(|status| status.gone_words(&bill.zone));
            let text = match self.form {
                Form::Table => table(&bill, width, empty.as_deref().unwrap_or_default()),
                Form::Csv => csv(&bill),
                Form::Json => json(&bill),
            };
            let gone = gone.filter(|_| self.form == Form::Csv);
            let notes: Vec<_> = gone.into_iter().chain(empty).collect();
            (text, (!notes.is_empty()).then(|| notes.join("; ")))
        };
        Ok(match self.form {
            Form::Table => Written { text: text + &format!("From {source}.\n"), note: None },
            Form::Csv | Form::Json => Written { text, note: empty },
        })
    }

    /// That no request of `tenant` was admitted in `period`, if that is so.
    ///
    /// Errors: as [`write`](Self::write).
    pub fn absence<E>(
        tenant: &str,
        period: Period,
        now: Timestamp,
        terms: &Terms,
        store: &mut Store,
    ) -> Result<Option<String>, E>
    where
        E: From<StoreError> + From<BillError> + From<PeriodError>,
    {
        let (tenant, terms) = (Some(tenant.to_owned()), terms.clone());
        let job = Self { form: Form::Csv, by: None, period, zone: Zone::UTC, tenant, now, terms };
        let is_empty = job.bill::<E>(store)?.rows.is_empty();
        job.emptiness(store, is_empty)
    }

    /// Why a bill is empty, if it is: no request was admitted, or none of the tenant that was asked
    /// for. It names tenants that have requests.
    fn emptiness<E>(&self, store: &mut Store, is_empty: bool) -> Result<Option<String>, E>
    where
        E: From<StoreError> + From<BillError> + From<PeriodError>,
    {
        if !is_empty {
            return Ok(None);
        }
        let Some(tenant) = &self.tenant else { return Ok(Some(NO_REQUEST.to_owned())) };
        let by = Grouping::from_str("tenant").ok();
        let others = Self { tenant: None, by, ..self.clone() }.bill::<E>(store)?.rows;
        let mut names: Vec<_> =
            others.iter().filter_map(|row| row.keys.first()?.as_deref()).map(printable).collect();
        let has_more = names.len() > TENANTS_NAMED_MAX;
        names.truncate(TENANTS_NAMED_MAX);
        let mut text =
            format!("No request of tenant {} was admitted in this period.", printable(tenant));
        if !names.is_empty() {
            let more = if has_more { ", …" } else { "" };
            text += &format!(" Tenants with requests: {}{more}.", names.join(", "));
        }
        Ok(Some(text))
    }

    /// The shortest calendar unit that its lines distinguish.
    pub fn unit(&self) -> Unit {
        self.by.as_ref().and_then(Grouping::unit).unwrap_or(Unit::Month)
    }

    fn invoice<E>(&self, store: &mut Store) -> Result<Invoice, E>
    where
        E: From<StoreError> + From<BillError> + From<PeriodError> + From<TooLarge>,
    {
        // It comes first: what is split_by to be final is in the sums.
        let status = Some(store.status(self.period, self.now)?);
        let mut invoicer = Invoicer::new(self.period, self.zone.clone(), self.now);
        let (scope, cut) = (self.scope(), Some(invoicer.recent_since()));
        let credits =
            self.terms.sums(store, scope, cut, |key, hour| Ok::<_, E>(invoicer.add(key, hour)?))?;
        for credit in credits {
            invoicer.add_credit(credit);
        }
        Ok(Invoice { status, ..invoicer.finish()? })
    }

    fn bill<E>(&self, store: &mut Store) -> Result<Bill, E>
    where
        E: From<StoreError> + From<BillError> + From<PeriodError>,
    {
        let status = Some(store.status(self.period, self.now)?);
        let by = self.by.clone().unwrap_or_default();
        let mut biller = Biller::new(self.period, self.zone.clone(), by);
        let split_by = self.by.as_ref().map(Grouping::split_by).unwrap_or_default();
        let scope = Scope { split_by: &split_by, ..self.scope() };
        let credits = self
            .terms
            .sums(store, scope, None, |key, hour| Ok::<_, E>(biller.add_hour(key, hour)?))?;
        for credit in credits {
            biller.add_credit(credit)?;
        }
        Ok(Bill { status, ..biller.finish() })
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            period: self.period,
            zone: &self.zone,
            unit: self.unit(),
            tenant: self.tenant.as_deref(),
            now: self.now,
            split_by: SplitBy::NONE,
        }
    }
}
