//! Sums of refusals as text: for people, for spreadsheets, for programs.

use clap::ValueEnum;
use comfy_table::{CellAlignment, Table, presets};
use jiff::Timestamp;
use serde::Serialize;
use taximeter_billing::{csv_cell, printable};

use super::sums::{Every, RefusalQuestion, RefusalSum, RefusalSums};

/// The format of the sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum RefusalsFormat {
    /// For people
    #[default]
    Table,
    /// For spreadsheets
    Csv,
    /// For programs
    Json,
}

/// What a table may lack.
const LATE: &str = "A gateway that runs adds its counts once a minute.\n";

impl RefusalSums {
    /// Writes the sums as text.
    pub fn write(self, format: RefusalsFormat) -> String {
        let (asked, sums) = self.into_parts();
        match format {
            RefusalsFormat::Table => table(&asked, &sums),
            RefusalsFormat::Csv => csv(&asked, &sums),
            RefusalsFormat::Json => json(&asked, &sums),
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    period: Ends<'a>,
    by: Option<Every>,
    rows: Vec<Row<'a>>,
    total: u64,
}

#[derive(Serialize)]
struct Ends<'a> {
    from: Timestamp,
    to: Timestamp,
    zone: &'a str,
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Timestamp>,
    tenant: Option<&'a str>,
    other_tenants: bool,
    reason: &'a str,
    status: Option<u16>,
    admitted: bool,
    requests: u64,
}

impl<'a> Row<'a> {
    fn of(sum: &'a RefusalSum) -> Self {
        let RefusalSum { from, kind, count } = sum;
        Self {
            from: *from,
            tenant: kind.tenant.as_ref().map(|tenant| tenant.as_str()),
            other_tenants: kind.others,
            reason: &kind.reason,
            status: kind.status,
            admitted: kind.admitted,
            requests: *count,
        }
    }
}

fn total(sums: &[RefusalSum]) -> u64 {
    sums.iter().map(|sum| sum.count).fold(0, u64::saturating_add)
}

fn table(asked: &RefusalQuestion, sums: &[RefusalSum]) -> String {
    let mut out = format!("Requests without a record: {}\n\n", asked.period.heading(&asked.zone));
    if sums.is_empty() {
        return out + "None.\n" + LATE;
    }
    let time = asked.every.map(|every| match every {
        Every::Minute => "minute",
        Every::Hour => "hour",
        Every::Day => "day",
    });
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
        .set_header(time.into_iter().chain(["tenant", "reason", "status", "admitted", "requests"]));
    for RefusalSum { from, kind, count } in sums {
        let tenant = match &kind.tenant {
            Some(tenant) => printable(tenant.as_str()),
            None if kind.others => "(other tenants)".to_owned(),
            None => "(none)".to_owned(),
        };
        let admitted = if kind.admitted { "yes" } else { "no" }.to_owned();
        let status = kind.status.map_or_else(|| "–".to_owned(), |status| status.to_string());
        let cells = [tenant, printable(&kind.reason), status, admitted, count.to_string()];
        table.add_row(from.map(|from| when(asked, from)).into_iter().chain(cells));
    }
    let columns = table.column_count();
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index + 1 == columns {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    out += &table.trim_fmt();
    out += &format!("\n\nIn all: {}\n{LATE}", total(sums));
    out
}

/// The begin of a minute, hour or day, by the clocks of the time zone.
fn when(asked: &RefusalQuestion, from: Timestamp) -> String {
    let civil = asked.zone.civil(from);
    match asked.every {
        Some(Every::Day) => civil.date().to_string(),
        _ => civil.strftime("%Y-%m-%d %H:%M").to_string(),
    }
}

fn csv(asked: &RefusalQuestion, sums: &[RefusalSum]) -> String {
    let time = if asked.every.is_some() { "from," } else { "" };
    let mut out = format!("{time}tenant,other_tenants,reason,status,admitted,requests\r\n");
    for RefusalSum { from, kind, count } in sums {
        let from = from.map(|from| format!("{from},")).unwrap_or_default();
        let tenant = kind.tenant.as_ref().map(|tenant| tenant.as_str()).unwrap_or_default();
        let status = kind.status.map(|status| status.to_string()).unwrap_or_default();
        out += &format!(
            "{from}{},{},{},{status},{},{count}\r\n",
            csv_cell(tenant),
            kind.others,
            csv_cell(&kind.reason),
            kind.admitted
        );
    }
    out
}

fn json(asked: &RefusalQuestion, sums: &[RefusalSum]) -> String {
    let (from, to) = (asked.period.from(), asked.period.to());
    let document = Document {
        period: Ends { from, to, zone: asked.zone.name() },
        by: asked.every,
        rows: sums.iter().map(Row::of).collect(),
        total: total(sums),
    };
    // The members are strings, numbers and lists of them, so this cannot fail.
    serde_json::to_string_pretty(&document).map(|text| text + "\n").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use taximeter_ledger::{RefusalKind, TenantId};

    use super::*;

    fn sum(tenant: Option<&str>, others: bool, count: u64) -> RefusalSum {
        let kind = RefusalKind {
            tenant: tenant.map(|tenant| TenantId(tenant.into())),
            others,
            reason: "concurrency_limit".into(),
            status: (count > 1).then_some(429),
            admitted: others,
        };
        RefusalSum { from: Some("2026-11-20T23:00:00Z".parse().unwrap()), kind, count }
    }

    fn asked(every: Option<Every>) -> RefusalQuestion {
        let zone: taximeter_billing::Zone = "Europe/Berlin".parse().unwrap();
        let period = "2026-11".parse::<taximeter_billing::Month>().unwrap().period(&zone).unwrap();
        RefusalQuestion { period, zone, every, tenant: None, reason: None }
    }

    #[test]
    fn each_format_tells_the_same_counts() {
        let sums = [sum(Some("a,b"), false, 40), sum(None, true, 2), sum(None, false, 1)];
        let asked = asked(Some(Every::Day));
        let table = table(&asked, &sums);
        for part in ["2026-11-21", "a,b", "(other tenants)", "(none)", "yes", "In all: 43"] {
            assert!(table.contains(part), "{part} in {table}");
        }
        let csv = csv(&asked, &sums);
        let lines: Vec<_> = csv.split("\r\n").collect();
        assert_eq!(
            lines,
            [
                "from,tenant,other_tenants,reason,status,admitted,requests",
                "2026-11-20T23:00:00Z,\"a,b\",false,concurrency_limit,429,false,40",
                "2026-11-20T23:00:00Z,,true,concurrency_limit,429,true,2",
                "2026-11-20T23:00:00Z,,false,concurrency_limit,,false,1",
                ""
            ]
        );
        let json: serde_json::Value = serde_json::from_str(&json(&asked, &sums)).unwrap();
        assert_eq!((&json["total"], &json["by"]), (&43.into(), &"day".into()));
        assert_eq!(json["period"]["zone"], "Europe/Berlin");
        assert_eq!(
            json["rows"][0],
            serde_json::json!({"from": "2026-11-20T23:00:00Z", "tenant": "a,b",
                "other_tenants": false, "reason": "concurrency_limit", "status": 429,
                "admitted": false, "requests": 40})
        );
        assert_eq!(json["rows"][2]["status"], serde_json::Value::Null);
    }

    #[test]
    fn nothing_is_told_as_nothing() {
        assert!(table(&asked(None), &[]).contains("\nNone.\n"));
        assert_eq!(csv(&asked(None), &[]).lines().count(), 1);
        let json: serde_json::Value = serde_json::from_str(&json(&asked(None), &[])).unwrap();
        assert_eq!((&json["rows"], &json["total"]), (&serde_json::json!([]), &0.into()));
    }
}
