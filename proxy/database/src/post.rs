//! Reads the few members of a request that bills need.

use jiff::{SignedDuration, Timestamp};
use taximeter_billing::BilledRequest;
use taximeter_ledger::{DecodeError, Place, PostView, Record, RecordCost, RequestId, used_nothing};
use taximeter_pricing::Flag;

/// A request: the members that are added up or searched. The others are not read.
#[derive(Debug)]
pub struct Post<'a> {
    /// Its entry.
    pub place: Place,
    /// The complete payload of its entry.
    pub payload: &'a [u8],
    view: PostView<'a>,
}

impl<'a> Post<'a> {
    /// Reads the payload of an entry.
    ///
    /// Errors: it is no record.
    pub fn read(place: Place, payload: &'a [u8]) -> Result<Self, DecodeError> {
        Ok(Self { place, payload, view: PostView::read(payload)? })
    }

    /// Reads the whole record.
    ///
    /// Errors: it is no record.
    pub fn whole(&self) -> Result<Record, DecodeError> {
        Record::decode(self.place.seq, self.payload)
    }

    /// The id.
    pub const fn id(&self) -> RequestId {
        self.view.id
    }

    /// The gateway that carried the request.
    pub const fn gateway(&self) -> &'a str {
        self.view.gateway
    }

    /// Its members.
    pub const fn view(&self) -> &PostView<'a> {
        &self.view
    }

    /// The cost, or the known part of it; `None` if nothing of it is known.
    #[must_use]
    pub const fn owed(&self) -> Option<&RecordCost> {
        self.view.owed.as_ref()
    }

    /// Whether the request has used nothing, so that no bill counts it.
    pub fn used_nothing(&self) -> bool {
        used_nothing(self.view.source, self.owed())
    }

    /// The answer's model, or the request's when there was no answer.
    pub fn model(&self) -> Option<&'a str> {
        self.view.response_model.or(self.view.request_model)
    }

    /// The end of the request by the clock of its beginning, also if the clock was set meanwhile.
    pub fn ended_at(&self) -> Timestamp {
        let is_set = self.view.flags.contains(&Flag::Clock);
        let duration = SignedDuration::try_from_secs_f64(self.view.duration).ok();
        let ended_at =
            duration.and_then(|duration| self.view.started_at.checked_add(duration).ok());
        ended_at.filter(|_| is_set).unwrap_or(self.view.ended_at)
    }

    /// The request as a row of bills.
    pub fn row(&self) -> BilledRequest<'_> {
        let view = &self.view;
        let row = BilledRequest {
            started_at: view.started_at,
            tenant: view.tenant,
            model: self.model(),
            provider: view.provider,
            upstream: view.upstream,
            operation: view.operation,
            route: view.route,
            key_id: view.key_id.as_deref(),
            labels: &view.labels,
            source: view.source,
            input_tokens: view.input_tokens,
            cache_read_input_tokens: view.cache_read_input_tokens,
            output_tokens: view.output_tokens,
            reasoning_output_tokens: view.reasoning_output_tokens,
            cost: self.owed(),
            dimensions: view.dimensions.as_deref(),
        };
        if view.flags.contains(&Flag::Pending) { row.pending() } else { row }
    }
}
