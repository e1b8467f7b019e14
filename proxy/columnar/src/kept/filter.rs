//! Which rows are asked for.

use jiff::Timestamp;

/// Some rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowFilter {
    /// Only this tenant, if set.
    pub tenant: Option<String>,
    /// Only requests that were admitted at or after this time, to the microsecond.
    pub from: Option<Timestamp>,
    /// Only requests that were admitted before this time, to the microsecond.
    pub to: Option<Timestamp>,
}

impl RowFilter {
    pub(crate) fn has_times(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    /// Whether a request that was admitted at `at` is asked for.
    pub(crate) fn takes_time(&self, at: i64) -> bool {
        self.may_take_times(at, at)
    }

    /// Whether one that was admitted from `least` to `most` may be.
    pub(crate) fn may_take_times(&self, least: i64, most: i64) -> bool {
        self.from.is_none_or(|from| most >= from.as_microsecond())
            && self.to.is_none_or(|to| least < to.as_microsecond())
    }

    pub(crate) fn takes_tenant(&self, tenant: &[u8]) -> bool {
        self.tenant.as_ref().is_none_or(|only| only.as_bytes() == tenant)
    }

    /// Whether a tenant from `least` to `most` may be. Either may be cut off: then `least` is
    /// smaller, and `most` is larger, than any tenant.
    pub(crate) fn may_take_tenants(&self, least: &[u8], most: &[u8]) -> bool {
        self.tenant.as_ref().is_none_or(|only| least <= only.as_bytes() && only.as_bytes() <= most)
    }
}
