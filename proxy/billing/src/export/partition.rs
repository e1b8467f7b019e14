//! The folder of a record in an export, with names in the style of Hive that query engines
//! understand.

use std::fmt::Write as _;

use jiff::Timestamp;

use crate::period::Period;
use crate::zone::Zone;

/// How the folders of an export are nested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `tenant=…/date=…/hour=…`: each tenant has one folder.
    TenantFirst,
    /// `date=…/hour=…`: for thousands of tenants. The tenant is only a column.
    DateFirst,
}

/// The folder of a record of `tenant` that was admitted at `at`, UTC, with `/` between its parts.
///
/// In the tenant's name, every byte other than letters, digits, `-`, `_` and `.` is
/// percent-encoded.
#[must_use]
pub fn partition(layout: Layout, tenant: &str, at: Timestamp) -> String {
    let mut path = String::new();
    if layout == Layout::TenantFirst {
        path.push_str("tenant=");
        push_encoded(&mut path, tenant);
        path.push('/');
    }
    let _ = write!(path, "{}", at.strftime("date=%Y-%m-%d/hour=%H"));
    path
}

/// The name of an export's only file: `2026-11.focus.csv`. If the period is not a month, the name
/// has its start and end.
#[must_use]
pub fn file_name(period: Period, tenant: Option<&str>, extension: &str) -> String {
    let mut name = match Period::month_of(period.from(), &Zone::UTC) {
        Ok(month) if month == period => period.to_string(),
        _ => {
            let [from, to] = [period.from(), period.to()].map(|end| end.strftime("%Y%m%dT%H%M%SZ"));
            format!("{from}-{to}")
        }
    };
    if let Some(tenant) = tenant {
        name.push('.');
        push_encoded(&mut name, tenant);
    }
    format!("{name}.{extension}")
}

/// Percent-encodes every byte that is not safe in a path, a glob or a URL. A name of dots only is
/// encoded too.
pub(super) fn push_encoded(out: &mut String, text: &str) {
    let dots = text.bytes().all(|byte| byte == b'.');
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if plain && !dots {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_lies_in_the_hour_of_its_admission() {
        let at = "2028-02-29T23:59:59.999999Z".parse().unwrap();
        assert_eq!(
            partition(Layout::TenantFirst, "acme", at),
            "tenant=acme/date=2028-02-29/hour=23"
        );
        assert_eq!(partition(Layout::DateFirst, "acme", at), "date=2028-02-29/hour=23");
    }

    #[test]
    fn a_file_is_called_after_its_period_and_tenant() {
        let month = Period::month("2026-11").unwrap();
        assert_eq!(file_name(month, None, "focus.csv"), "2026-11.focus.csv");
        assert_eq!(file_name(month, Some("a/b"), "focus.csv"), "2026-11.a%2Fb.focus.csv");
        let to = "2026-11-08T00:00:00Z".parse().unwrap();
        let week = Period::new(month.from(), to).unwrap();
        let name = file_name(week, None, "focus.csv");
        assert_eq!(name, "20261101T000000Z-20261108T000000Z.focus.csv");
    }

    #[test]
    fn no_name_of_a_tenant_leaves_its_folder() {
        let at = "2026-11-20T05:00:00Z".parse().unwrap();
        let tenant = |name| partition(Layout::TenantFirst, name, at);
        assert_eq!(tenant("a/b c"), "tenant=a%2Fb%20c/date=2026-11-20/hour=05");
        assert_eq!(tenant(".."), "tenant=%2E%2E/date=2026-11-20/hour=05");
        assert_eq!(tenant("Zürich"), "tenant=Z%C3%BCrich/date=2026-11-20/hour=05");
        assert_eq!(tenant("a*b=%"), "tenant=a%2Ab%3D%25/date=2026-11-20/hour=05");
    }
}
