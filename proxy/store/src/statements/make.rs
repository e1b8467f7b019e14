//! Makes the statement of a tenant from the store.

use std::collections::BTreeMap;

use taximeter_billing::{
    BillError, Hour, HourKey, PeriodError, PeriodStatus, Statement, StatementFault,
};

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
    /// What was issued is not what is recorded now.
    #[error(
        "the recorded statements of {tenant:?} were changed: {fault}; restore them from a backup"
    )]
    Damaged {
        /// The tenant.
        tenant: String,
        /// What does not fit.
        fault: String,
    },
    /// An earlier statement has amounts that only a configuration knows.
    #[error(
        "an earlier statement of this period has allowances or shares of GPUs; name the configuration \
         with --config"
    )]
    NoTerms,
    /// No such statement was issued.
    #[error("there is no statement no. {number} of this period; {issued} were issued")]
    NoNumber {
        /// The number.
        number: u32,
        /// How many were issued.
        issued: usize,
    },
    /// Others issue statements of the same period.
    #[error("other commands issue statements of this period at the same time; try again")]
    Busy,
    /// A statement cannot be written as JSON, or read.
    #[error("the statement cannot be read or written: {0}")]
    Text(String),
}

/// The statement of all that `tenant` owes for `scope`, a month of its zone. `status` was asked for
/// before: what is said to be final is in the sums.
///
/// Errors: as [`StatementError`] says.
pub(super) fn make(
    store: &mut Store,
    tenant: &str,
    terms: &Terms,
    scope: Scope<'_>,
    status: PeriodStatus,
) -> Result<Statement, StatementError> {
    let Scope { period, zone, .. } = scope;
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
    Ok(Statement::new(tenant, period, zone, status, &hours, credits)?)
}
