//! How a request ends that was admitted and has used nothing: the engine refused it, no engine had
//! it, or its client left before it was sent.

use http::response;
use jiff::Timestamp;
use taximeter_ledger::{End, Entry, RefusalKind, Void, VoidReason};
use taximeter_meter::{Ending, Measurement, Meter, StreamEnd};
use taximeter_system::clock;

use super::head::read_head;
use super::in_flight::InFlight;
use super::record::{self, Outcome};
use crate::journey::report;

impl InFlight {
    /// Ends a request that has used nothing. `ended` says who ended it, and `measurement` is what
    /// was read of an answer.
    ///
    /// It leaves a record if it was admitted, unless too many like it end at once.
    pub(super) fn end_unused(
        &self,
        reason: VoidReason,
        ended: StreamEnd,
        measurement: Option<&Measurement>,
    ) {
        let now = clock::wall();
        let ended = self.call.stage_times.admitted.map(|_| {
            let nothing;
            let measurement = match measurement {
                Some(measurement) => measurement,
                None => {
                    nothing = Meter::new(self.asked.setup).finish(clock::now(), ended);
                    &nothing
                }
            };
            let outcome = self.outcome(reason, ended, measurement);
            let told = report::UnusedOutcome { end: outcome.end, told: outcome.status };
            let is_kept = self.is_kept(now, &outcome);
            (told, is_kept.then(|| record::unused(self, measurement, outcome)))
        });
        let (outcome, record) = ended.unzip();
        let entry = match record.flatten() {
            Some(record) => Entry::Post(Box::new(record)),
            None => Entry::Void(Void { id: self.call.id, reason, ended_at: now }),
        };
        self.gateway.journal.append_detached(&entry);
        self.gateway.telemetry.metrics.settlement_closed();
        report::voided(self, reason, outcome);
    }

    /// Ends a request whose engine has refused our own credential.
    pub(super) fn end_refused(&self, head: &response::Parts, body: Vec<u8>) {
        let ratio_max = self.gateway.config.limits.decode_ratio_max;
        let mut meter = Meter::new(self.asked.setup).decoding(ratio_max);
        read_head(&mut meter, head.status.as_u16(), &head.headers);
        meter.on_bytes(clock::now(), body.into());
        let measurement = meter.finish(clock::now(), StreamEnd::Clean);
        self.end_unused(VoidReason::UpstreamAuth, StreamEnd::Clean, Some(&measurement));
    }

    /// Whether it gets a record of its own. In a flood it is counted instead.
    fn is_kept(&self, now: Timestamp, outcome: &Outcome) -> bool {
        let (refusals, tenant) = (&self.gateway.refusals, &self.call.caller.tenant);
        let is_kept = refusals.has_room(clock::now(), tenant, outcome.status);
        if !is_kept {
            let kind = RefusalKind {
                tenant: Some(tenant.clone()),
                others: false,
                reason: outcome.error_type.clone().unwrap_or_default().into(),
                status: outcome.status,
                admitted: true,
            };
            refusals.count(now, kind);
        }
        is_kept
    }

    fn outcome(&self, reason: VoidReason, ended: StreamEnd, measurement: &Measurement) -> Outcome {
        let told = self.refused.map(|(status, _)| status);
        let status = told.or(self.status());
        let end = match (reason, self.status()) {
            (VoidReason::UpstreamRefused, Some(_)) | (VoidReason::UpstreamAuth, _) => {
                End::UpstreamRefused
            }
            _ => record::end(Ending::Cut(ended), None),
        };
        let error_type = match reason {
            // Who ended it instead of its client is told.
            VoidReason::ClientLeft => record::error_type(end, None, measurement),
            VoidReason::NotSent | VoidReason::UpstreamRefused | VoidReason::UpstreamAuth => {
                Some(report::unused_error(self, reason).into_owned())
            }
        };
        Outcome { status, end, error_type }
    }
}
