//! Whose fault it is that a request was not served, and how its wait for a first token ended.

use std::time::Duration;

use taximeter_ledger::{End, RecordError};
use taximeter_meter::{Measurement, Output, Timing, Wire};
use taximeter_telemetry::{Fault, Wait, WaitOutcome};

use crate::journey::settle::in_flight::InFlight;

/// Types of errors inside an answer that blame the request. OpenAI, Anthropic and vLLM use them.
const CLIENTS_ERRORS: [&str; 5] = [
    "invalid_request_error",
    "not_found_error",
    "request_too_large",
    "BadRequestError",
    "NotFoundError",
];

/// How a request ended, as far as that says whose fault it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failure<'a> {
    pub(super) end: End,
    /// What the engine answered; `None` where it did not.
    pub(super) status: Option<u16>,
    /// What the engine calls its error.
    pub(super) error: Option<&'a RecordError>,
    /// Whether the engine was shown a credential of the gateway, or none at the gateway's wish.
    pub(super) credential_is_ours: bool,
}

impl Failure<'_> {
    /// Whose fault it is; `None` where nobody has failed.
    pub(super) fn fault(self) -> Option<Fault> {
        match self.end {
            End::Complete => None,
            End::ClientLeft | End::ClientStalled | End::BudgetCut => Some(Fault::Client),
            End::Shutdown | End::GatewayDied | End::Refused => Some(Fault::Gateway),
            End::Truncated | End::UpstreamStalled | End::Deadline => Some(Fault::Engine),
            End::UpstreamRefused => self.status.and_then(|status| self.of_status(status)),
            End::UpstreamError => Some(self.of_error()),
        }
    }

    fn of_status(self, status: u16) -> Option<Fault> {
        match status {
            // Whoever pays and whoever may ask is known by the credential.
            401..=403 | 407 if self.credential_is_ours => Some(Fault::Gateway),
            408 | 429 | 500.. => Some(Fault::Engine),
            400.. => Some(Fault::Client),
            // It answers with a redirection, which the client may follow.
            _ => None,
        }
    }

    /// Of an error inside an answer that began well.
    fn of_error(self) -> Fault {
        let Some(error) = self.error else { return Fault::Engine };
        let mut words = [&error.status, &error.code].into_iter().flatten();
        let status = words.find_map(|word| word.parse().ok().filter(|it| (400..600).contains(it)));
        let blames_client =
            error.error_type.as_deref().is_some_and(|it| CLIENTS_ERRORS.contains(&it));
        match status {
            Some(status) => self.of_status(status).unwrap_or(Fault::Engine),
            None if blames_client => Fault::Client,
            None => Fault::Engine,
        }
    }
}

impl InFlight {
    /// Whether the engine was shown a credential of the gateway, or none at the gateway's wish.
    pub(super) fn credential_is_ours(&self) -> bool {
        !self.gateway.upstream(self.asked.upstream).takes_clients_credential()
    }

    /// The wait of a request that was sent, for its first token.
    pub(super) fn settled_wait(
        &self,
        ended: (End, Option<Fault>),
        measurement: &Measurement,
    ) -> Option<Wait> {
        let Timing { time_to_first_token: first, duration, .. } = measurement.timing;
        let wait = self.wait(ended, first, duration)?;
        // When the content of a stream began that cannot be read is not known.
        let is_unread = wait.is_stream && first.is_none() && measurement.has_unread_output;
        (!is_unread || wait.outcome != WaitOutcome::Token).then_some(wait)
    }

    /// The wait for its first token, which came after `first` if it came. `None` if it waits for
    /// none, was refused for a mistake of its client, or was told of before.
    pub(super) fn wait(
        &self,
        (end, fault): (End, Option<Fault>),
        first: Option<Duration>,
        whole: Duration,
    ) -> Option<Wait> {
        let is_stream = self.is_stream();
        let waits = match self.call.wire().output() {
            Output::None => false,
            Output::Text => is_stream || !self.asked.background,
            Output::NotText => {
                is_stream && !matches!(self.call.wire(), Wire::Opaque | Wire::Batches)
            }
        };
        let (outcome, duration) = match (first.filter(|_| is_stream), end) {
            (Some(first), _) => (WaitOutcome::Token, first),
            // Who does not read has something to read.
            (None, End::Complete | End::ClientStalled) => (WaitOutcome::Token, whole),
            (None, End::ClientLeft) => (WaitOutcome::Left, whole),
            (None, _) => {
                fault.filter(|fault| *fault != Fault::Client)?;
                (WaitOutcome::Failed, whole)
            }
        };
        (waits && !self.told.has_wait).then_some(Wait { is_stream, outcome, duration })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(end: End, status: Option<u16>) -> Failure<'static> {
        Failure { end, status, error: None, credential_is_ours: false }
    }

    #[test]
    fn a_status_blames_the_engine_the_client_or_the_credential_s_owner() {
        let refused = |status| failure(End::UpstreamRefused, Some(status));
        for status in [408, 429, 500, 502, 503, 529] {
            assert_eq!(refused(status).fault(), Some(Fault::Engine), "{status}");
        }
        for status in [400, 401, 402, 403, 404, 407, 413, 422] {
            assert_eq!(refused(status).fault(), Some(Fault::Client), "{status}");
        }
        for status in [401, 402, 403, 407] {
            let ours = Failure { credential_is_ours: true, ..refused(status) };
            assert_eq!(ours.fault(), Some(Fault::Gateway), "{status}");
        }
        let ours = Failure { credential_is_ours: true, ..refused(404) };
        assert_eq!(ours.fault(), Some(Fault::Client));
        assert_eq!(refused(307).fault(), None);
    }

    #[test]
    fn an_error_inside_an_answer_blames_who_it_names_and_else_the_engine() {
        let named = |status: &str, error_type: &str| {
            let word = |word: &str| (!word.is_empty()).then(|| word.to_owned());
            let error =
                RecordError { status: word(status), error_type: word(error_type), code: None };
            Failure { error: Some(&error), ..failure(End::UpstreamError, Some(200)) }.fault()
        };
        for (status, error_type, fault) in [
            ("400", "BadRequestError", Fault::Client),
            ("429", "", Fault::Engine),
            ("500", "invalid_request_error", Fault::Engine),
            ("", "invalid_request_error", Fault::Client),
            ("", "overloaded_error", Fault::Engine),
            ("RESOURCE_EXHAUSTED", "", Fault::Engine),
        ] {
            assert_eq!(named(status, error_type), Some(fault), "{status} {error_type}");
        }
        assert_eq!(failure(End::UpstreamError, Some(200)).fault(), Some(Fault::Engine));
    }

    #[test]
    fn every_end_but_a_whole_answer_is_somebody_s_fault() {
        for end in End::ALL {
            let fault = failure(end, Some(500)).fault();
            assert_eq!(fault.is_none(), end == End::Complete, "{end:?}");
        }
    }
}
