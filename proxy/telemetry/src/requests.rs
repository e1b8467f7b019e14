//! Finds the series of a request's kind by one look-up. Attributes that a client or an engine can
//! choose have a named maximum of values. Later values share `other`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::metrics::Label;
use dashmap::DashMap;
use http::{Method, Version};
use taximeter_ledger::{End, PendingRequest, Record};

use super::attributes::{
    Attributes, KeptNames, RequestKind, RequestNames, Server, http_client, http_server,
    method_label,
};
use super::bounded::Bounded;
use super::exemplar::Origin;
use super::fault::Fault;
use super::instruments::Instruments;
use super::names::key;
use super::recorded::{Completed, RecordedRequest};
use super::series::KindSeries;
use super::streams::{StreamSeries, Streams};
use super::wait::Wait;

/// Model names that get a label of their own.
pub const MODELS_MAX: usize = 200;
/// Error words of engines that get a label of their own.
const ERRORS_MAX: usize = 50;

/// A request for which an engine was called but that has no record.
#[derive(Debug, Clone, Copy)]
pub struct Failed<'a> {
    /// The operation, as `gen_ai.operation.name` says it.
    pub operation: &'a str,
    /// The name of the upstream.
    pub upstream: &'a str,
    /// The provider, as `gen_ai.provider.name` says it.
    pub provider: &'a str,
    /// The model that the client asked for.
    pub request_model: Option<&'a str>,
    /// What the engine answered.
    pub status: Option<u16>,
    /// `error.type`.
    pub error: &'a str,
    /// How it ended.
    pub end: End,
    /// The status that its client got.
    pub told: Option<u16>,
    /// Whose fault it is that it was not served.
    pub fault: Option<Fault>,
    /// The wait for its first token, if it waited for one.
    pub wait: Option<Wait>,
    /// The time since its engine was called.
    pub called: Duration,
    /// The time since the first byte was sent, or since its engine was called if nothing was sent.
    pub sent: Duration,
}

/// The series of all kinds of requests seen so far.
pub(super) struct Requests {
    kinds: DashMap<RequestKind, Arc<KindSeries>>,
    /// Kinds that have series of their own.
    kinds_max: usize,
    streams: Streams,
    tenants: Bounded,
    models: Bounded,
    errors: Bounded,
    servers: Mutex<Vec<Server>>,
    /// Of what clients ask.
    scheme: &'static str,
}

impl Requests {
    pub(super) fn new(
        tenants_max: usize,
        kinds_max: usize,
        servers: Vec<Server>,
        scheme: &'static str,
    ) -> Self {
        Self {
            kinds: DashMap::new(),
            kinds_max,
            streams: Streams::new(kinds_max),
            tenants: Bounded::new(key::TENANT, tenants_max),
            models: Bounded::new(key::GEN_AI_REQUEST_MODEL, MODELS_MAX),
            errors: Bounded::new(key::ERROR_TYPE, ERRORS_MAX),
            servers: Mutex::new(servers),
            scheme,
        }
    }

    /// Where upstreams are from now on. Series of those that have moved go on under the new place.
    pub(super) fn served_by(&self, servers: Vec<Server>) {
        let mut before = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if *before != servers {
            *before = servers;
            self.kinds.clear();
            self.streams.clear();
        }
    }

    /// Names that become labels also where no engine has answered to them in this process: the first so
    /// many.
    pub(super) fn know_models<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        names.into_iter().for_each(|name| {
            self.models.label(name);
        });
    }

    /// What a tenant is called in labels.
    pub(super) fn tenant<'a>(&self, tenant: &'a str) -> &'a str {
        self.tenants.label(tenant)
    }

    /// Attributes of an HTTP request that is no kind of ours.
    pub(super) fn http(
        &self,
        (method, version): (&Method, Version),
        route: Option<&str>,
        status: Option<u16>,
        tenant: Option<&str>,
    ) -> Vec<Label> {
        let tenant = tenant.map_or("", |tenant| self.tenants.label(tenant));
        http_server((self.scheme, method_label(method), version), route, (status, None), tenant)
    }

    /// Attributes of an HTTP request to an engine that is no kind of ours.
    pub(super) fn http_client(
        &self,
        method: &Method,
        upstream: &str,
        outcome: (Option<u16>, Option<&str>),
    ) -> Vec<Label> {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let server = servers.iter().find(|server| server.name == upstream);
        http_client(method_label(method), server.map(Server::labels), outcome)
    }

    /// Records one request everywhere.
    pub(super) fn record(
        &self,
        (method, version): (&Method, Version),
        request: RecordedRequest<'_>,
    ) {
        let record = request.record;
        // Names that no engine has answered to never become a label.
        let served = record.status.is_some_and(|status| status < 400);
        let kind = RequestKind {
            names: self.names_of(record, |name| {
                if served { self.models.label(name) } else { self.models.label_if_known(name) }
            }),
            error_type: record.error_type.as_deref().map(|word| self.errors.label(word).into()),
            end: Some(record.end),
            told: record.status,
            fault: request.fault,
            method: method_label(method),
            version,
            route: record.route.as_str().into(),
            status: record.status,
        };
        self.series(kind).record(request);
    }

    /// The labels for the names of a record, and for those of its models what `model` says.
    fn names_of<'a>(&'a self, record: &'a Record, model: impl Fn(&'a str) -> &'a str) -> KeptNames {
        RequestNames {
            tenant: self.tenants.label(record.tenant.as_str()),
            operation: record.operation.as_str(),
            upstream: record.upstream.as_str(),
            provider: record.provider.as_str(),
            request_model: record.request_model.as_deref().map(&model),
            response_model: record.response_model.as_deref().map(&model),
        }
        .into()
    }

    /// The series of a stream that an engine has answered well and that still runs.
    pub(super) fn stream(&self, names: RequestNames<'_>) -> Arc<StreamSeries> {
        let request_model = names.request_model.map(|model| self.models.label(model));
        let response_model = match names.response_model {
            // Most engines answer with the name that they were asked for.
            same if same == names.request_model => request_model,
            other => other.map(|model| self.models.label(model)),
        };
        let tenant = self.tenants.label(names.tenant);
        let names = RequestNames { tenant, request_model, response_model, ..names };
        self.streams.series(names, || {
            let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
            servers.iter().find(|server| *server.name == *names.upstream).map(Server::labels)
        })
    }

    /// Records what a request has used that was pending when it ended.
    pub(super) fn complete(&self, to: &Instruments, completed: &Completed<'_>, origin: Origin) {
        let PendingRequest { tenant, operation, upstream, provider, route, request_model, .. } =
            completed.request;
        let kind = RequestKind {
            names: RequestNames {
                tenant: self.tenants.label(tenant.as_str()),
                operation: operation.as_str(),
                upstream: upstream.as_str(),
                provider: provider.as_str(),
                request_model: request_model.as_deref().map(|name| self.models.label(name)),
                response_model: completed.response_model.map(|name| self.models.label(name)),
            }
            .into(),
            error_type: None,
            end: None,
            told: None,
            fault: None,
            // Its HTTP request is counted where it is answered.
            method: method_label(&Method::POST),
            version: Version::HTTP_11,
            route: route.as_str().into(),
            status: None,
        };
        self.series(kind).complete(to, completed, origin);
    }

    /// Records a request that was open when the gateway died: what it owes, as far as that is known.
    pub(super) fn died(&self, to: &Instruments, record: &Record) {
        let kind = RequestKind {
            names: self.names_of(record, |name| self.models.label_if_known(name)),
            error_type: record.error_type.as_deref().map(|word| self.errors.label(word).into()),
            end: Some(record.end),
            told: record.status,
            fault: Some(Fault::Gateway),
            method: method_label(&Method::POST),
            version: Version::HTTP_11,
            route: record.route.as_str().into(),
            status: record.status,
        };
        let origin = Origin { request: record.id, trace: None, at: record.ended_at };
        self.series(kind).died(to, record, origin);
    }

    /// Records a request that used nothing.
    pub(super) fn fail(
        &self,
        to: &Instruments,
        method: &Method,
        tenant: &str,
        failed: &Failed<'_>,
        took: Duration,
        origin: Origin,
    ) {
        let kind = RequestKind {
            names: RequestNames {
                tenant: self.tenants.label(tenant),
                operation: failed.operation,
                upstream: failed.upstream,
                provider: failed.provider,
                request_model: failed.request_model.map(|name| self.models.label_if_known(name)),
                response_model: None,
            }
            .into(),
            error_type: Some(failed.error.into()),
            end: Some(failed.end),
            told: failed.told,
            fault: failed.fault,
            method: method_label(method),
            // Its HTTP request is counted where it is answered.
            version: Version::HTTP_11,
            route: "".into(),
            status: failed.status,
        };
        let series = self.series(kind);
        series.fail(to, [took, failed.called, failed.sent], origin);
        series.count(to);
        series.wait(to, failed.wait, origin);
    }

    fn series(&self, mut kind: RequestKind) -> Arc<KindSeries> {
        if let Some(series) = self.kinds.get(&kind) {
            return series.clone();
        }
        if self.kinds.len() >= self.kinds_max {
            kind.collapse();
        }
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let names = kind.names.get();
        let server = servers.iter().find(|server| *server.name == *names.upstream);
        let series = Arc::new(KindSeries::new(Attributes::new(&kind, server, self.scheme)));
        drop(servers);
        self.kinds.entry(kind).or_insert(series).clone()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use taximeter_config::GenAi;
    use taximeter_ledger::RequestId;

    use super::super::bounded::OTHER;
    use super::*;

    #[test]
    fn a_million_names_that_nobody_serves_change_nothing() {
        let instruments = Instruments::new(GenAi::Both, false);
        let requests = Requests::new(3, 2_000, Vec::new(), "http");
        let id = RequestId(uuid::Uuid::nil());
        let origin = Origin { request: id, trace: None, at: Timestamp::UNIX_EPOCH };
        let fail = |nth: usize| {
            let (tenant, model) = (format!("tenant-{nth}"), format!("model-{nth}"));
            let failed = Failed {
                operation: "chat",
                upstream: "e",
                provider: "vllm",
                request_model: Some(&model),
                status: Some(404),
                error: "404",
                end: End::UpstreamRefused,
                told: Some(404),
                fault: Some(Fault::Client),
                wait: None,
                called: Duration::ZERO,
                sent: Duration::ZERO,
            };
            let took = Duration::ZERO;
            requests.fail(&instruments, &Method::POST, &tenant, &failed, took, origin);
        };
        (0..10).for_each(fail);
        let series = instruments.readings().len();
        // Three tenants and the rest, of whom each has the same few instruments.
        assert_eq!((requests.kinds.len(), series % 4), (4, 0));
        (10..1_000_000).for_each(fail);
        assert_eq!((requests.kinds.len(), instruments.readings().len()), (4, series));
        assert!(requests.models.label_if_known("model-7") == OTHER);
        requests.know_models(["model-7"]);
        assert_eq!(requests.models.label_if_known("model-7"), "model-7");
        fail(7);
        assert!(instruments.readings().len() > series, "it has series of its own");
    }
}
