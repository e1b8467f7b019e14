//! Issues final statements. Each one is recorded before it is given out, so it never changes: what
//! comes later is in a further one.

use taximeter_billing::{Statement, StatementJournal, check_series};

use super::make::{StatementError, make};
use super::signed::Signed;
use crate::signing::SigningKey;
use crate::terms::{Scope, Terms};
use crate::{Store, StoreError};

/// How often a number is taken by somebody else at the same time.
const ATTEMPTS_MAX: u32 = 8;
/// The meter of shares of GPUs.
const GPU: &str = "gpu";

/// A statement that was made.
#[derive(Debug)]
pub struct MadeStatement {
    /// The text of its file.
    pub text: String,
    /// What whoever made it should know.
    pub note: Option<String>,
}

/// Makes the statement of `tenant` for `scope`, a month of its zone, and signs it with `key`.
///
/// While the period is not closed, it is provisional. After that, the first one is recorded and given
/// out; the same one is given out each time after, with what differs from it in the next one.
/// `journals` reads the state of the journals, after the store.
///
/// Errors: as [`StatementError`] says.
pub fn issue<E: From<StatementError>>(
    store: &mut Store,
    tenant: &str,
    terms: &Terms,
    scope: Scope<'_>,
    key: &SigningKey,
    mut journals: impl FnMut() -> Result<Vec<StatementJournal>, E>,
) -> Result<MadeStatement, E> {
    for _ in 0..ATTEMPTS_MAX {
        let (issued, texts) = issued(store, tenant, scope)?;
        let status = store.status(scope.period, scope.now).map_err(StatementError::from)?;
        let words = status.words(scope.zone);
        let whole = make(store, tenant, terms, scope, status)?;
        check_terms(&issued, &whole, terms)?;
        let next = whole.beyond(&issued).map_err(StatementError::from)?;
        let Some(mut next) = next else {
            let last = texts.last().map(String::as_str).unwrap_or_default();
            return Ok(given_out_again(last, key)?);
        };
        if next.provisional
            && let Some(last) = texts.last()
        {
            let made = given_out_again(last, key)?;
            return Ok(MadeStatement { note: Some(due(&next, &words)), ..made });
        }
        next.journals = journals()?;
        if next.provisional {
            let note = Some(format!("The statement is {words}."));
            next.number = None;
            return Ok(MadeStatement { text: text(&Signed::new(next, key))?, note });
        }
        let number = next.number.unwrap_or(1);
        let signed = text(&Signed::new(next.clone(), key))?;
        match store.issue_statement(tenant, scope, number, &signed) {
            Ok(true) => {
                let note = next.follows.as_ref().map(|before| {
                    format!(
                        "This is statement no. {number}: the difference to no. {}.",
                        before.number
                    )
                });
                return Ok(MadeStatement { text: signed, note });
            }
            Ok(false) => {}
            Err(fault) => return Ok(unrecorded(next, key, &fault)?),
        }
    }
    Err(StatementError::Busy.into())
}

/// The recorded statement with this number.
///
/// Errors: as [`StatementError`] says; `NoNumber` if there is none.
pub fn recorded(
    store: &mut Store,
    tenant: &str,
    scope: Scope<'_>,
    number: u32,
    key: &SigningKey,
) -> Result<MadeStatement, StatementError> {
    let (_, texts) = issued(store, tenant, scope)?;
    let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    match index.and_then(|index| texts.get(index)) {
        Some(text) => given_out_again(text, key),
        None => Err(StatementError::NoNumber { number, issued: texts.len() }),
    }
}

/// The statements that were issued, and their texts.
pub(super) fn issued(
    store: &mut Store,
    tenant: &str,
    scope: Scope<'_>,
) -> Result<(Vec<Statement>, Vec<String>), StatementError> {
    let texts = store.issued_statements(tenant, scope)?;
    let damaged = |fault: String| StatementError::Damaged { tenant: tenant.to_owned(), fault };
    let issued: Result<Vec<_>, _> = texts.iter().map(|text| read_recorded(text)).collect();
    let issued = issued.map_err(damaged)?;
    check_series(&issued).map_err(|fault| damaged(fault.to_string()))?;
    let is_of = |statement: &Statement| {
        statement.tenant == tenant && statement.period().as_ref() == Ok(&scope.period)
    };
    if issued.iter().all(is_of) {
        return Ok((issued, texts));
    }
    Err(damaged("it is of another tenant or period".to_owned()))
}

/// The statement in a recorded text.
///
/// Errors: why it is not what was recorded.
pub(crate) fn read_recorded(text: &str) -> Result<Statement, String> {
    let signed = Signed::parse(text).map_err(|fault| fault.to_string())?;
    match signed.own_faults().into_iter().next() {
        Some(fault) => Err(fault),
        None => Ok(signed.statement),
    }
}

/// Errors: the statements before this one have amounts of a configuration, and now there is none.
pub(super) fn check_terms(
    issued: &[Statement],
    whole: &Statement,
    terms: &Terms,
) -> Result<(), StatementError> {
    let has_terms = |statement: &Statement| {
        !statement.credits.is_empty() || statement.lines.iter().any(|line| line.meter == GPU)
    };
    if terms.add_nothing() && !has_terms(whole) && issued.iter().any(has_terms) {
        return Err(StatementError::NoTerms);
    }
    Ok(())
}

/// What is said of a further statement that is not final yet.
fn due(next: &Statement, words: &str) -> String {
    let number = next.number.unwrap_or_default();
    format!("Statement no. {number} is due, {}; it is {words}.", amounts(next))
}

/// What a difference comes to.
pub(super) fn amounts(difference: &Statement) -> String {
    let totals = difference.totals.iter();
    let mut amounts: Vec<_> =
        totals.map(|(currency, total)| format!("{total} {currency}")).collect();
    if amounts.is_empty() {
        amounts.push("nothing to pay".to_owned());
    }
    let requests = difference.requests;
    let s = if requests == 1 { "" } else { "s" };
    format!("with a difference of {} and {requests} request{s}", amounts.join(", "))
}

/// The same bytes each time, unless the key is another one.
fn given_out_again(recorded: &str, key: &SigningKey) -> Result<MadeStatement, StatementError> {
    let signed =
        Signed::parse(recorded).map_err(|fault| StatementError::Text(fault.to_string()))?;
    if signed.faults(&key.public()).is_empty() {
        return Ok(MadeStatement { text: recorded.to_owned(), note: None });
    }
    let note = "The statement was recorded with another key; it is signed anew, and nothing else of \
                it changes.";
    let text = text(&Signed::new(signed.statement, key))?;
    Ok(MadeStatement { text, note: Some(note.to_owned()) })
}

/// A statement that could not be recorded is not final: the next one could have other sums.
fn unrecorded(
    statement: Statement,
    key: &SigningKey,
    fault: &StoreError,
) -> Result<MadeStatement, StatementError> {
    let statement = Statement { provisional: true, unrecorded: true, number: None, ..statement };
    let note =
        Some(format!("The statement is provisional, because it cannot be recorded: {fault}."));
    Ok(MadeStatement { text: text(&Signed::new(statement, key))?, note })
}

fn text(signed: &Signed) -> Result<String, StatementError> {
    signed.text().map_err(|fault| StatementError::Text(fault.to_string()))
}

impl Store {
    fn issued_statements(
        &mut self,
        tenant: &str,
        scope: Scope<'_>,
    ) -> Result<Vec<String>, StoreError> {
        self.database.statements(tenant, scope.period)
    }

    fn issue_statement(
        &mut self,
        tenant: &str,
        scope: Scope<'_>,
        number: u32,
        signed: &str,
    ) -> Result<bool, StoreError> {
        self.database.issue(tenant, scope.period, number, signed)
    }
}
