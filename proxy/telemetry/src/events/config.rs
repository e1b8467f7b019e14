//! Events of the configuration of a running gateway.

use crate::event::Event;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::names::log_event::LogEvent;
use crate::names::{Instrument, key};

/// Problems that have a line of their own; the rest is only counted.
const LINES_MAX: usize = 9;

/// Another configuration is in force.
pub struct ConfigReloaded<'a> {
    /// Changed keys that wait for a restart.
    pub waiting: &'a [&'static str],
}

impl Event for ConfigReloaded<'_> {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::ConfigReloads, 1, &[(key::OUTCOME, "applied")]);
        to.config_is_valid(true);
    }

    fn line(&self, to: &Log) {
        to.tell(LogEvent::ConfigReloaded, []);
        if !self.waiting.is_empty() {
            let keys = self.waiting.join(", ");
            let hint = "they are read at a start only; restart for them";
            to.tell(LogEvent::ConfigWaits, [("keys", keys.into()), ("hint", hint.into())]);
        }
    }
}

/// The file has mistakes. The old configuration stays in force.
pub struct ConfigRejected<'a> {
    /// The path of the file.
    pub path: &'a str,
    /// The mistakes, at least one, each with its place.
    pub problems: &'a [String],
}

impl Event for ConfigRejected<'_> {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::ConfigReloads, 1, &[(key::OUTCOME, "rejected")]);
        to.config_is_valid(false);
    }

    fn line(&self, to: &Log) {
        for problem in self.problems.iter().take(LINES_MAX) {
            to.tell(
                LogEvent::ConfigRejected,
                [
                    ("path", self.path.into()),
                    ("problem", problem.as_str().into()),
                    ("problems", self.problems.len().into()),
                ],
            );
        }
    }
}
