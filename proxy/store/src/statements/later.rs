//! Whether a statement is still all that is owed: what was issued after it, and what is due.

use taximeter_billing::{SplitBy, Statement, Unit, Zone};

use jiff::Timestamp;

use super::issue::{amounts, check_terms, issued};
use super::make::{StatementError, make};
use crate::Store;
use crate::terms::{Scope, Terms};

/// What a ledger knows of a final statement.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Later {
    /// What is wrong: the ledger has issued another statement with this number.
    pub wrong: Vec<String>,
    /// What came later, one line each.
    pub notes: Vec<String>,
}

impl Later {
    /// The ledger cannot say, for this reason.
    pub fn unknown(why: &str) -> Self {
        let note = format!("Whether a further statement came later is not known: {why}.");
        Self { wrong: Vec::new(), notes: vec![note] }
    }
}

/// What came after the final `statement`: the statements that were issued, and the difference that a
/// further one would state now. Nothing is said of a provisional one.
///
/// Errors: as [`StatementError`] says.
pub fn later(
    store: &mut Store,
    statement: &Statement,
    terms: &Terms,
    now: Timestamp,
) -> Result<Later, StatementError> {
    let mut later = Later::default();
    if statement.provisional {
        return Ok(later);
    }
    let zone: Zone = statement.zone.parse().unwrap_or_default();
    let (period, tenant) = (statement.period()?, statement.tenant.as_str());
    let scope = Scope {
        period,
        zone: &zone,
        unit: Unit::Month,
        tenant: Some(tenant),
        now,
        split_by: SplitBy::NONE,
    };
    let (mut issued, _) = issued(store, tenant, scope)?;
    if let Some(number) = statement.number {
        let is_this = |issued: &&Statement| issued.number == Some(number);
        match issued.iter().find(is_this) {
            None => {
                later.notes.push(format!("This ledger has not recorded statement no. {number}."))
            }
            Some(recorded) if recorded != statement => {
                later
                    .wrong
                    .push(format!("this ledger has recorded another statement no. {number}"));
            }
            Some(_) => {}
        }
        let after = issued.iter().filter(|issued| issued.number > Some(number));
        later.notes.extend(after.map(|issued| {
            format!(
                "Statement no. {} came later, {}.",
                issued.number.unwrap_or_default(),
                amounts(issued)
            )
        }));
    }
    if issued.is_empty() {
        issued.push(statement.clone());
    }
    let status = store.status(period, now)?;
    let words = status.words(&zone);
    let whole = match make(store, tenant, terms, scope, status) {
        // The ledger is another one, or has lost the month.
        Err(StatementError::NoRequest { .. }) => {
            later.notes.push("This ledger has no request of the statement.".to_owned());
            return Ok(later);
        }
        made => made?,
    };
    check_terms(&issued, &whole, terms)?;
    if let Some(due) = whole.beyond(&issued)? {
        let number = due.number.map_or_else(
            || "A further statement".to_owned(),
            |number| format!("Statement no. {number}"),
        );
        later.notes.push(format!("{number} is due, {}; it is {words}.", amounts(&due)));
    }
    Ok(later)
}
