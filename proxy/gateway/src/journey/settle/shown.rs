//! An answer that shows what an earlier request has used: a response that was generated in the
//! background, or a batch. The first one that shows its final usage completes the request, by a
//! correction.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Method};
use taximeter_ledger::{PendingRequest, TenantId};
use taximeter_meter::{Delivery, Dialect, Hidden, Meter, Setup, StreamEnd, Wire};
use taximeter_pricing::Usage;
use taximeter_system::clock;

use super::batch::{self, Results};
use super::completing::{charge, complete, completion};
use super::head::{codings, read_head};
use super::plain::PlainBody;
use super::settling::Settling;
use crate::gateway::{Gateway, HeldText};
use crate::journey::identify::{Call, Shows};
use crate::journey::route::Chosen;

/// An answer that may show the usage of a pending request.
pub(super) struct Shown {
    gateway: Arc<Gateway>,
    tenant: TenantId,
    /// Index into the configured upstreams.
    upstream: usize,
    dialect: Dialect,
    reading: Reading,
}

/// How the answer is read.
enum Reading {
    /// It says nothing.
    Nothing,
    /// A response by its own id, or the answer to the pending request.
    Answer(Wire, Box<Meter>, Option<Box<PendingRequest>>),
    /// The object of a batch.
    Batch(PlainBody, HeldText),
    /// The results of a pending batch, of which so many are answers as far as that is known.
    Results(PlainBody, Box<Results>, Box<PendingRequest>, Option<u64>),
}

impl Shown {
    /// Reads the answer to a request; `None` if its route shows no usage, or none that anybody waits
    /// for.
    pub(super) fn new(gateway: &Arc<Gateway>, call: &Call, chosen: &Chosen) -> Option<Self> {
        let shows = call.route.shows().filter(|_| call.method != Method::HEAD)?;
        let id = call.route.parameter(call.uri.path())?;
        let (dialect, tenant) = (chosen.dialect, &call.caller.tenant);
        let upstream = &gateway.upstream(chosen.index).name;
        let pending = |id: &str| gateway.journal.pending(tenant, upstream, id);
        let answer = |wire, pending| {
            let setup = Setup {
                wire,
                dialect,
                started_at: call.started,
                hidden: Hidden::default(),
                has_one_prompt: false,
            };
            let meter = Meter::new(setup).decoding(gateway.config.limits.decode_ratio_max);
            Reading::Answer(wire, Box::new(meter), pending)
        };
        let results = |batch: &str, answered| {
            let pending = pending(batch)?;
            let results = Box::new(batch::results(gateway, &pending, dialect));
            Some(Reading::Results(PlainBody::default(), results, Box::new(pending), answered))
        };
        let reading = match shows {
            Shows::Response => answer(Wire::Responses, None),
            Shows::Deferred => answer(Wire::ChatCompletions, Some(Box::new(pending(id)?))),
            Shows::Batch => Reading::Batch(PlainBody::default(), batch::held_text(gateway)),
            Shows::Results => results(id, None)?,
            Shows::File => {
                // Most files have something else.
                let file = gateway.batch_files.find(tenant, upstream, id)?;
                results(&file.batch, file.answered)?
            }
        };
        Some(Self {
            gateway: gateway.clone(),
            tenant: tenant.clone(),
            upstream: chosen.index,
            dialect,
            reading,
        })
    }

    /// The engine's head has come.
    pub(super) fn on_head(&mut self, status: u16, headers: &HeaderMap) {
        let codings = codings(headers);
        let ratio_max = self.gateway.config.limits.decode_ratio_max;
        let is_readable = match &mut self.reading {
            Reading::Answer(_, meter, _) => {
                read_head(meter, status, headers);
                (200..300).contains(&status)
            }
            // A part of the body is not all of it.
            Reading::Batch(body, _) | Reading::Results(body, ..) if status == 200 => {
                PlainBody::new(codings.as_deref(), ratio_max).map(|coded| *body = coded).is_ok()
            }
            _ => false,
        };
        if !is_readable {
            self.reading = Reading::Nothing;
        }
    }

    /// Whether the answer has a coding.
    pub(super) const fn is_encoded(&self) -> bool {
        match &self.reading {
            Reading::Answer(_, meter, _) => meter.is_encoded(),
            Reading::Batch(body, _) | Reading::Results(body, ..) => body.is_encoded(),
            Reading::Nothing => false,
        }
    }

    /// What the meter still withholds.
    pub(super) fn take_withheld(&mut self) -> Bytes {
        match &mut self.reading {
            Reading::Answer(_, meter, _) => meter.take_withheld(),
            _ => Bytes::new(),
        }
    }

    /// Bytes of the answer. What it says was generated for another request, and is not counted.
    pub(super) fn on_bytes(&mut self, now: Instant, data: Bytes) -> Delivery {
        let mut is_readable = true;
        match &mut self.reading {
            Reading::Answer(_, meter, _) => {
                let delivery = meter.on_bytes(now, data);
                meter.fold_text(|_| {});
                return delivery;
            }
            Reading::Batch(body, text) => {
                let fed = body.feed(&data, &mut |plain| is_readable &= text.push(plain));
                is_readable &= fed.is_ok();
            }
            Reading::Results(body, results, pending, _) => {
                let price = batch::price(&self.gateway, pending);
                let fed = body.feed(&data, &mut |plain| results.push(plain, &price));
                is_readable = fed.is_ok();
            }
            Reading::Nothing => {}
        }
        if !is_readable {
            self.reading = Reading::Nothing;
        }
        Delivery { forward: data, hold: Bytes::new() }
    }

    /// Completes the request whose usage the answer has shown, if it is pending.
    pub(super) fn settle(self, end: StreamEnd) -> Settling {
        let Self { gateway, tenant, upstream, dialect, reading } = self;
        let upstream = &gateway.upstream(upstream).name;
        let find = |id: &str| gateway.journal.pending(&tenant, upstream, id);
        let settling = match reading {
            Reading::Answer(wire, meter, pending) => {
                settle_answer(&gateway, wire, *meter, end, |id| {
                    pending.map_or_else(|| find(id?), |pending| Some(*pending))
                })
            }
            Reading::Batch(body, text) if body.is_whole() => {
                batch::settle_object(&gateway, dialect, find, text.as_bytes())
            }
            Reading::Results(body, results, pending, answered)
                if end == StreamEnd::Clean && body.is_whole() =>
            {
                batch::settle_results(&gateway, &pending, *results, answered)
            }
            // A part of them, or nothing.
            Reading::Batch(..) | Reading::Results(..) | Reading::Nothing => None,
        };
        settling.unwrap_or_else(Settling::done)
    }
}

/// Completes a request by its answer, of which `find` gets the id.
fn settle_answer(
    gateway: &Gateway,
    wire: Wire,
    meter: Meter,
    end: StreamEnd,
    find: impl FnOnce(Option<&str>) -> Option<PendingRequest>,
) -> Option<Settling> {
    let measurement = meter.finish(clock::now(), end);
    let pending = find(measurement.response_id.as_deref())?;
    let completion = completion(&pending, wire, &measurement)?;
    let names = (completion.response_model.as_deref(), completion.service_tier.as_deref());
    let charge = charge(gateway, &pending, names, &Usage::from(&completion.usage));
    Some(complete(gateway, &pending, completion, charge))
}
