//! Events of certificates that are read again while the gateway serves.

use taximeter_net::tls::Reload;

use crate::event::Event;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::names::log_event::LogEvent;

/// The files of a certificate have changed.
pub struct CertificateReloaded<'a>(pub &'a Reload<'a>);

impl Event for CertificateReloaded<'_> {
    fn count(&self, _to: &Metrics) {}

    fn line(&self, to: &Log) {
        match self.0 {
            Reload::Renewed(files) => {
                let path = files.certificate.display().to_string();
                to.tell(LogEvent::TlsRenewed, [("path", path.into())]);
            }
            Reload::Refused(fault) => {
                to.tell(LogEvent::TlsRefused, [("reason", fault.to_string().into())]);
            }
        }
    }
}
