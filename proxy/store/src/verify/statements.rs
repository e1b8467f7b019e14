//! Checks the statements that were issued: none was changed, and none is missing.

use std::collections::BTreeMap;

use taximeter_billing::{Statement, check_series, printable};

use super::findings::Findings;
use crate::Store;
use crate::statements::read_recorded;

/// Reads all issued statements, and tells what is wrong with them.
pub(super) fn check_statements(store: &mut Store, findings: &mut Findings) {
    let texts = match store.database.all_statements() {
        Ok(texts) if texts.is_empty() => return,
        Ok(texts) => texts,
        Err(fault) => {
            return findings.tell(format!("the recorded statements cannot be read: {fault}"));
        }
    };
    let mut series: BTreeMap<_, Vec<Statement>> = BTreeMap::new();
    for text in &texts {
        match read_recorded(text) {
            Ok(statement) => {
                let key = (statement.tenant.clone(), statement.from, statement.to);
                series.entry(key).or_default().push(statement);
            }
            Err(fault) => findings.tell(format!("a recorded statement is wrong: {fault}")),
        }
    }
    for ((tenant, from, to), issued) in series {
        if let Err(fault) = check_series(&issued) {
            let tenant = printable(&tenant);
            findings.tell(format!("the statements of {tenant} from {from} to {to}: {fault}"));
        }
    }
    findings.hear(format!("statements: {} recorded", texts.len()));
}
