//! Makes the statement of a tenant from the store.

use std::collections::BTreeMap;

use taximeter_billing::{BillError, Hour, HourKey, PeriodError, Statement, StatementFault};

use crate::terms::{Scope, Terms};
use crate::{Store, StoreError};

/// Why a statement cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StatementError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The sums cannot be made.
    #[error(transparent)]
    Bill(#[from] BillError),
    /// The period has too many parts.
    #[error(transparent)]
    Period(#[from] PeriodError),
    /// The sums cannot be kept exactly.
    #[error(transparent)]
    Statement(#[from] StatementFault),
    /// There is nothing to state.
    #[error(
        "the tenant {tenant:?} has no request in {month}; see `taximeter bill --month {month}`"
    )]
    NoRequest {
        /// The tenant.
        tenant: String,
        /// The period.
        month: String,
    },
}

/// The statement of `tenant` for `scope`, a month of its zone.
///
/// Errors: as [`StatementError`] says.
pub fn make(
    store: &mut Store,
    tenant: &str,
    terms: &Terms,
    scope: Scope<'_>,
) -> Result<Statement, StatementError> {
    let Scope { period, zone, now, .. } = scope;
    let mut hours: BTreeMap<HourKey, Hour> = BTreeMap::new();
    let credits = terms.hours(store, scope, |_, key, hour| {
        let overflow = || BillError::Overflow { tenant: key.tenant.clone() };
        let sum = hours.entry(key.clone()).or_default();
        sum.add(hour).map_err(|_| overflow())?;
        Ok::<_, StatementError>(())
    })?;
    if hours.is_empty() {
        let (tenant, month) = (tenant.to_owned(), period.name(zone));
        return Err(StatementError::NoRequest { tenant, month });
    }
    Ok(Statement::new(tenant, period, zone, period.to() > now, &hours, credits)?)
}
