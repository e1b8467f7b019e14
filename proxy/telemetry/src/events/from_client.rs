//! What requests say of themselves and is not taken.

use taximeter_ledger::TenantId;

use crate::event::Event;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::names::Instrument;
use crate::names::key;
use crate::names::log_event::LogEvent;

/// A request says something of its session, its agent or its end user that cannot be taken.
pub struct DimensionDropped {
    /// What it says that of.
    pub dimension: &'static str,
    /// Why it is dropped.
    pub reason: &'static str,
}

impl Event for DimensionDropped {
    fn count(&self, to: &Metrics) {
        let attributes = [(key::DIMENSION, self.dimension), (key::CAUSE, self.reason)];
        to.count(Instrument::DimensionsDropped, 1, &attributes);
    }
}

/// There is no key to hash names with. They are left out until the next start.
pub struct NameKeyMissing<'a> {
    /// Why it cannot be read or written.
    pub error: &'a std::io::Error,
}

impl Event for NameKeyMissing<'_> {
    fn count(&self, _: &Metrics) {}

    fn line(&self, to: &Log) {
        to.tell(LogEvent::NameKeyMissing, [("error", self.error.to_string().into())]);
    }
}

/// A client that is not trusted sent the tenant header. The gateway ignored it.
pub struct SpoofedHeader<'a> {
    /// The tenant.
    pub tenant: &'a TenantId,
}

impl Event for SpoofedHeader<'_> {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::SpoofedHeaders, 1, &[]);
    }

    fn line(&self, to: &Log) {
        to.tell(LogEvent::SpoofedHeader, [("tenant", self.tenant.as_str().into())]);
    }
}
