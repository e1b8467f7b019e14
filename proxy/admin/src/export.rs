//! `/api/v1/export`: the bill or the export of a period, in any format of `taximeter bill`. The
//! answer is a stream: the client reads it while the gateway makes it.

use std::io::{self, Write};
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use clap::ValueEnum as _;
use futures_util::stream::{self, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use taximeter_billing::export::{FocusVersion, Window};
use taximeter_billing::{Period, Zone};
use taximeter_config::Config;
use taximeter_export::format::{Format, Rendering};
use taximeter_export::{Content, ExportFault, Job as ExportJob, stream as write_export};
use taximeter_gateway::gateway::Gateway;
use taximeter_store::bills::{BillJob, WIDTH};
use taximeter_store::terms::Terms;
use taximeter_store::{Location, feeds};
use taximeter_system::clock;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use utoipa::IntoParams;

use super::problem::ApiError;
use super::query::{self, Params, PeriodParams};

/// Bytes of one chunk of the answer.
const CHUNK_BYTES: usize = 64 << 10;
/// Chunks that wait for the client.
const CHUNKS_MAX: usize = 8;
/// Most queries of the store for one bill.
const PARTS_MAX: usize = 10_000;
/// The names that `by` can have.
const BY: &str = "names with commas between them, each once: tenant, model, provider, upstream, \
                  operation, route, key, label:NAME, session, agent, client, end_user, tag:NAME, \
                  month, day, hour";
/// The values of `by` in FOCUS.
const SAID: &str = "names with commas between them, each once: session, agent, client, end_user, \
                    tag:NAME";
/// The values of `zone` in an export.
const UTC: &str = "UTC in this format; only bills (table, csv, json) can have another zone";
/// The values of `by` in an export.
const WHOLE: &str = "absent in this format; only bills (table, csv, json) and FOCUS can be split";
/// The values of `focus_version` in another format.
const UNVERSIONED: &str = "absent in this format; only focus and focus-parquet have a version";
/// The values of `strict` in another format.
const EVENTLESS: &str = "false in this format; only cloudevents, stripe, lago and orb have events";
/// The values of `max_age` in another format.
const AGELESS: &str = "absent in this format; only cloudevents, stripe, lago and orb have events";
/// Longest time that a client may read nothing. Its export ends then.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The query parameters.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct ExportParams {
    /// The format. `table`, `csv` and `json` are bills, all others are exports
    #[param(required, inline, value_type = Format)]
    format: Option<String>,
    /// Calendar month, such as `2026-11`. Default: the current month, unless `from` is given
    month: Option<String>,
    /// Start of the period, included: a date, or a time with an offset
    from: Option<String>,
    /// End of the period, not included. Default with `from`: now
    to: Option<String>,
    /// Time zone of a bill's months, days and hours, such as `Europe/Berlin`. Default:
    /// `billing.zone` of the configuration. An export is always in `UTC`, as FOCUS requires
    zone: Option<String>,
    /// What the lines of a bill are split by: names with commas between them, out of `tenant`,
    /// `model`, `provider`, `upstream`, `operation`, `route`, `key`, `label:NAME`, `session`,
    /// `agent`, `client`, `end_user`, `tag:NAME`, `month`, `day`, `hour`. Default: an invoice for
    /// `table`, and `tenant,model` for `csv` and `json`. FOCUS takes `session` to `tag:NAME`, and has
    /// a column for each then
    by: Option<String>,
    /// Only this tenant
    tenant: Option<String>,
    /// Version of FOCUS, `1.2` or `1.3`. Only for `focus` and `focus-parquet`. Default: `1.2`
    focus_version: Option<String>,
    /// The invoice issuer in FOCUS. Only for `focus` and `focus-parquet`
    issuer: Option<String>,
    /// `true`: an error in place of an export with events that the receiver takes no more, because
    /// of their age. Only for `cloudevents`, `stripe`, `lago` and `orb`. Default: `false`
    strict: Option<String>,
    /// How old an event may be for your account: days or hours, such as `34d` or `12h`. Only for
    /// `cloudevents`, `stripe`, `lago` and `orb`. Default: `35d` for `stripe`, `12h` for `orb`, else
    /// no limit
    max_age: Option<String>,
}

/// What the answer is made of.
enum Job {
    Bill(BillJob),
    Export(ExportJob),
}

/// The bill or the export of a period
///
/// The answer has the bytes of `taximeter bill --format …` with the gateway's configuration. If an
/// error comes after the first byte, the gateway closes the connection.
#[utoipa::path(get, path = "/api/v1/export", tag = "usage", params(ExportParams), responses(
    (status = 200, description = "The bill or the export", content(
        ("text/plain"), ("text/csv"), ("application/json"), ("application/x-ndjson"),
        ("application/vnd.apache.parquet")
    )),
    ApiError,
))]
pub(super) async fn export(
    State(gateway): State<Arc<Gateway>>,
    Params(asked): Params<ExportParams>,
) -> Result<Response, ApiError> {
    let job = asked.job(&gateway.config)?;
    let permits = &gateway.admin.exports;
    let permit = permits
        .take()
        .ok_or_else(|| ApiError::Busy(format!("{} exports run already", permits.most)))?;
    let kind = job.media_type();
    let (chunks, mut written) = mpsc::channel(CHUNKS_MAX);
    let (dir, runtime) = (gateway.config.data_dir.clone(), Handle::current());
    let location = Location::of(&gateway.config, &gateway.id);
    let out = Chunks { chunks: chunks.clone(), runtime: runtime.clone(), held: Vec::new() };
    thread::Builder::new()
        .name("export".to_owned())
        .spawn(move || {
            if let Err(fault) = run(&location, &dir, &job, out, permit) {
                // The client may have left.
                let _ = runtime.block_on(chunks.send(Err(fault)));
            }
        })
        .map_err(|fault| ApiError::Export(fault.to_string()))?;
    let first = match written.recv().await {
        Some(Err(fault)) => return Err(fault),
        first => first,
    };
    let rest = stream::poll_fn(move |cx| written.poll_recv(cx));
    let body = stream::iter(first).chain(rest).map(|chunk| chunk.map_err(io::Error::other));
    Ok(([(header::CONTENT_TYPE, kind)], Body::from_stream(body)).into_response())
}

fn run(
    location: &Location,
    dir: &Path,
    job: &Job,
    mut out: Chunks,
    _permit: OwnedSemaphorePermit,
) -> Result<(), ApiError> {
    let mut store = location.open()?;
    store.catch_up(&mut feeds(dir))?;
    match job {
        Job::Export(job) => {
            write_export(&mut store, job, &mut out, &mut || {})?;
        }
        Job::Bill(job) => {
            let bill = job.write::<ApiError>(&mut store, &location.to_string(), WIDTH)?;
            let written = out.write_all(bill.text.as_bytes()).and_then(|()| out.flush());
            written.map_err(|fault| ApiError::Export(fault.to_string()))?;
        }
    }
    Ok(())
}

impl ExportParams {
    fn job(self, config: &Config) -> Result<Job, ApiError> {
        let (now, terms) = (clock::wall(), Terms::of(config));
        match self.written()? {
            Rendering::Bill(form) => {
                let zone = query::zone(self.zone.as_deref(), config)?;
                let period = self.period(&zone, now)?;
                let by = query::read("by", self.by.as_deref(), BY, str::parse)?;
                self.window(false)?;
                let job = BillJob { form, by, period, zone, tenant: self.tenant, now, terms };
                // The store is asked once for each part.
                let parts = period.parts(job.unit(), &job.zone)?.len();
                if parts > PARTS_MAX {
                    return Err(ApiError::Lines { lines: parts, max: PARTS_MAX });
                }
                Ok(Job::Bill(job))
            }
            Rendering::Export(content) => {
                query::read("zone", self.zone.as_deref(), UTC, |zone| {
                    zone.parse().ok().filter(Zone::is_utc).ok_or(())
                })?;
                let split = |by: &str| {
                    let by = by.parse().map_err(|_| ())?;
                    content.split_by(Some(&by)).ok_or(())
                };
                let allowed = if matches!(content, Content::Focus { .. }) { SAID } else { WHOLE };
                let split_by = query::read("by", self.by.as_deref(), allowed, split)?;
                let split_by = split_by.unwrap_or_default();
                let period = self.period(&Zone::UTC, now)?;
                let (strict, age_max) = self.window(content.has_events())?;
                let tenant = self.tenant;
                let job =
                    ExportJob { content, period, tenant, split_by, now, age_max, strict, terms };
                Ok(Job::Export(job))
            }
        }
    }

    fn window(&self, has_events: bool) -> Result<(bool, Option<SignedDuration>), ApiError> {
        let allowed = if has_events { "true or false" } else { EVENTLESS };
        let strict =
            query::read("strict", self.strict.as_deref(), allowed, |strict| match strict {
                "true" if has_events => Ok(true),
                "false" => Ok(false),
                _ => Err(()),
            })?;
        let allowed = if has_events { Window::AGE } else { AGELESS };
        let age_max = query::read("max_age", self.max_age.as_deref(), allowed, |age| {
            Window::age(age).filter(|_| has_events).ok_or(())
        })?;
        Ok((strict.unwrap_or_default(), age_max))
    }

    fn written(&self) -> Result<Rendering, ApiError> {
        let names = Format::value_variants().iter().filter_map(Format::to_possible_value);
        let names: Vec<_> = names.map(|name| name.get_name().to_owned()).collect();
        let allowed = format!("one of {}", names.join(", "));
        let format = query::read("format", self.format.as_deref(), &allowed, |format| {
            Format::from_str(format, false)
        })?;
        let format = format.ok_or(ApiError::Missing { name: "format", allowed })?;
        let allowed = if format.is_focus() { "1.2 or 1.3" } else { UNVERSIONED };
        let version =
            query::read("focus_version", self.focus_version.as_deref(), allowed, |version| {
                match version {
                    "1.2" if format.is_focus() => Ok(FocusVersion::V1_2),
                    "1.3" if format.is_focus() => Ok(FocusVersion::V1_3),
                    _ => Err(()),
                }
            })?;
        let issuer = self.issuer.as_deref().unwrap_or(Content::ISSUER);
        Ok(format.written(version.unwrap_or(FocusVersion::V1_2), issuer))
    }

    fn period(&self, zone: &Zone, now: Timestamp) -> Result<Period, ApiError> {
        let ends = PeriodParams {
            zone,
            month: self.month.as_deref(),
            from: self.from.as_deref(),
            to: self.to.as_deref(),
        };
        ends.or_this_month(now)
    }
}

impl Job {
    const fn media_type(&self) -> &'static str {
        match self {
            Self::Bill(job) => job.form.media_type(),
            Self::Export(job) => job.content.media_type(),
        }
    }
}

impl From<ExportFault> for ApiError {
    fn from(fault: ExportFault) -> Self {
        match fault {
            ExportFault::Store(fault) => fault.into(),
            ExportFault::Bill(fault) => fault.into(),
            ExportFault::Period(fault) => fault.into(),
            ExportFault::OutsideWindow(_) => Self::Outside(fault.to_string()),
            fault => Self::Export(fault.to_string()),
        }
    }
}

/// Writes the answer in chunks. A write waits until the client reads, but not forever.
struct Chunks {
    chunks: mpsc::Sender<Result<Bytes, ApiError>>,
    runtime: Handle,
    held: Vec<u8>,
}

impl Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        if self.held.len() >= CHUNK_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let chunk = mem::take(&mut self.held).into();
        let sent = self.chunks.send_timeout(Ok(chunk), STALL_TIMEOUT);
        self.runtime.block_on(sent).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

#[cfg(test)]
mod tests {
    use taximeter_billing::export::{EventSpan, OutsideWindow};

    use super::*;

    #[test]
    fn a_strict_export_that_is_refused_is_422_and_says_how_many_events_are_too_old() {
        let now = Timestamp::UNIX_EPOCH;
        let outside = OutsideWindow {
            receiver: "Stripe",
            takes_from: Some(now),
            takes_to: None,
            older: Some(EventSpan { events: 7, first: now, last: now }),
            newer: None,
        };
        let problem = ApiError::from(ExportFault::OutsideWindow(Box::new(outside))).problem();
        assert_eq!((problem.status, &*problem.kind), (422, "urn:taximeter:problem:outside_window"));
        assert!(
            problem.detail.contains("7 events are older than Stripe takes"),
            "{}",
            problem.detail
        );
    }
}
