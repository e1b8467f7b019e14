//! Events of what the gateway finds out about an upstream.

use crate::event::Event;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::names::log_event::LogEvent;

/// The engine of an upstream owns all models in its list. The configuration does not name it.
pub struct UpstreamRecognised<'a> {
    /// The name of the upstream.
    pub upstream: &'a str,
    /// The provider, as `gen_ai.provider.name` says it.
    pub provider: &'static str,
}

impl Event for UpstreamRecognised<'_> {
    fn count(&self, _to: &Metrics) {}

    fn line(&self, to: &Log) {
        let fields = [("upstream", self.upstream.into()), ("provider", self.provider.into())];
        to.tell(LogEvent::UpstreamRecognised, fields);
    }
}

/// An answer has the marks of a dialect that nothing names.
pub struct DialectGuessed<'a> {
    /// The name of the upstream.
    pub upstream: &'a str,
    /// The dialect.
    pub dialect: &'static str,
}

impl Event for DialectGuessed<'_> {
    fn count(&self, _to: &Metrics) {}

    fn line(&self, to: &Log) {
        let fields = [("upstream", self.upstream.into()), ("dialect", self.dialect.into())];
        to.tell(LogEvent::DialectGuessed, fields);
    }
}

/// An engine refused what the gateway added to a request, and took the request without it.
pub struct QuestionRefused<'a> {
    /// The name of the upstream.
    pub upstream: &'a str,
    /// The path of the request.
    pub path: &'a str,
    /// The model that the request names.
    pub model: Option<&'a str>,
    /// The member that the engine refused.
    pub member: &'static str,
}

impl Event for QuestionRefused<'_> {
    fn count(&self, _to: &Metrics) {}

    fn line(&self, to: &Log) {
        let fields = [
            ("upstream", self.upstream.into()),
            ("path", self.path.into()),
            ("model", self.model.into()),
            ("member", self.member.into()),
        ];
        to.tell(LogEvent::QuestionRefused, fields);
    }
}
