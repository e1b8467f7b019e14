//! Bills as JSON for programs. Money is an exact decimal string. Unknown is `null`.

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::bill::Bill;
use crate::closing::PeriodStatus;
use crate::credit::Credit;
use crate::group::Grouping;
use crate::sums::Sums;

/// The bill as one JSON object over several lines, exact.
///
/// `{"period": {"from", "to", "zone", "status"}, "currency", "by": [names], "rows": [...], "credits": [...],
/// "total": {...}}`. A row has one member for each dimension, with its name, and then the sums.
#[must_use]
pub fn json(bill: &Bill) -> String {
    let document = Document {
        period: Ends {
            from: bill.period.from(),
            to: bill.period.to(),
            zone: bill.zone.name(),
            status: bill.status.as_ref(),
        },
        currency: bill.currency.as_deref(),
        by: bill.by.dimensions().iter().map(ToString::to_string).collect(),
        rows: bill
            .rows
            .iter()
            .map(|line| JsonRow { keys: Keys { by: &bill.by, keys: &line.keys }, sums: &line.sums })
            .collect(),
        credits: &bill.credits,
        total: &bill.total,
    };
    // The members are strings, numbers and lists of them, so this cannot fail.
    serde_json::to_string_pretty(&document).map(|text| text + "\n").unwrap_or_default()
}

#[derive(Serialize)]
struct Document<'a> {
    period: Ends<'a>,
    currency: Option<&'a str>,
    by: Vec<String>,
    rows: Vec<JsonRow<'a>>,
    credits: &'a [Credit],
    total: &'a Sums,
}

#[derive(Serialize)]
struct Ends<'a> {
    from: Timestamp,
    to: Timestamp,
    zone: &'a str,
    #[serde(flatten)]
    status: Option<&'a PeriodStatus>,
}

#[derive(Serialize)]
struct JsonRow<'a> {
    #[serde(flatten)]
    keys: Keys<'a>,
    #[serde(flatten)]
    sums: &'a Sums,
}

struct Keys<'a> {
    by: &'a Grouping,
    keys: &'a [Option<String>],
}

impl Serialize for Keys<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.by.dimensions().iter().map(ToString::to_string).zip(self.keys))
    }
}
