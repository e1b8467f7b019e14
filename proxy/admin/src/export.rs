//! `/api/v1/export`: a period in any format of `taximeter bill`, as it is written.

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
use jiff::Timestamp;
use serde::Deserialize;
use taximeter_billing::export::FocusVersion;
use taximeter_billing::{Period, Zone};
use taximeter_config::Config;
use taximeter_gateway::gateway::Gateway;
use taximeter_store::bills::{BillJob, WIDTH};
use taximeter_store::export::{Content, ExportFault, Job as ExportJob, stream as write_export};
use taximeter_store::format::{Format, Rendering};
use taximeter_store::terms::Terms;
use taximeter_store::{Location, feeds};
use taximeter_system::clock;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use utoipa::IntoParams;

use super::problem::Refused;
use super::query::{self, Asked, Ends};

/// Bytes handed on at once.
const CHUNK_BYTES: usize = 64 << 10;
/// Chunks that wait for the client.
const CHUNKS_MAX: usize = 8;
/// Most questions to the store for one bill.
const PARTS_MAX: usize = 10_000;
/// What a bill can be split by.
const BY: &str = "names with commas between them, each once: tenant, model, provider, upstream, \
                  operation, route, key, label:NAME, month, day, hour";
/// The zone of exports.
const UTC: &str = "UTC in this format, whose periods are by UTC; bills (table, csv, json) have any";
const WHOLE: &str = "nothing in this format, which is not split; bills (table, csv, json) are";
const UNVERSIONED: &str = "nothing in this format; focus and focus-parquet have versions";
/// How long a client may not read before its export ends.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// What is asked for.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct ExportParams {
    /// How it is written: `table`, `csv` and `json` are bills, the others exports
    #[param(required, inline, value_type = Format)]
    format: Option<String>,
    /// Calendar month, `2026-11`; the current one where no end is given
    month: Option<String>,
    /// Start, included: a date, or a time with offset
    from: Option<String>,
    /// End, not included; now where only the start is given
    to: Option<String>,
    /// Time zone of a bill's months, days and hours, `Europe/Berlin`; `billing.zone` of the
    /// configuration by default. Exports are by `UTC`, as FOCUS wants it
    zone: Option<String>,
    /// One line of a bill for each, with commas between them: `tenant`, `model`, `provider`,
    /// `upstream`, `operation`, `route`, `key`, `label:NAME`, `month`, `day`, `hour`; by default a
    /// `table` is an invoice, and `csv` and `json` are by `tenant,model`
    by: Option<String>,
    /// Only this tenant
    tenant: Option<String>,
    /// Version of FOCUS, `1.2` (by default) or `1.3`; only where the format is one of FOCUS
    focus_version: Option<String>,
    /// Who sends the invoices, in FOCUS
    issuer: Option<String>,
}

/// What is written.
enum Job {
    Bill(BillJob),
    Export(ExportJob),
}

/// A period in any format of `taximeter bill`, as it is written
///
/// The bytes are those of `taximeter bill --format …` with the gateway's configuration. What fails
/// after the first of them breaks the answer off.
#[utoipa::path(get, path = "/api/v1/export", tag = "usage", params(ExportParams), responses(
    (status = 200, description = "The bill or the export", content(
        ("text/plain"), ("text/csv"), ("application/json"), ("application/x-ndjson"),
        ("application/vnd.apache.parquet")
    )),
    Refused,
))]
pub(super) async fn export(
    State(gateway): State<Arc<Gateway>>,
    Asked(asked): Asked<ExportParams>,
) -> Result<Response, Refused> {
    let job = asked.job(&gateway.config)?;
    let permits = &gateway.admin.exports;
    let permit = permits
        .take()
        .ok_or_else(|| Refused::Busy(format!("{} exports are running", permits.most)))?;
    let kind = job.media_type();
    let (chunks, mut written) = mpsc::channel(CHUNKS_MAX);
    let (dir, runtime) = (gateway.config.data_dir.clone(), Handle::current());
    let location = Location::of(&gateway.config, &gateway.id);
    let out = Chunks { chunks: chunks.clone(), runtime: runtime.clone(), held: Vec::new() };
    thread::Builder::new()
        .name("export".to_owned())
        .spawn(move || {
            if let Err(fault) = run(&location, &dir, &job, out, permit) {
                // A client that has left needs no word of it.
                let _ = runtime.block_on(chunks.send(Err(fault)));
            }
        })
        .map_err(|fault| Refused::Export(fault.to_string()))?;
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
) -> Result<(), Refused> {
    let mut store = location.open()?;
    store.catch_up(&mut feeds(dir))?;
    match job {
        Job::Export(job) => {
            write_export(&mut store, job, out, &mut || {})?;
        }
        Job::Bill(job) => {
            let text = job.write::<Refused>(&mut store, &location.to_string(), WIDTH)?;
            let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            written.map_err(|fault| Refused::Export(fault.to_string()))?;
        }
    }
    Ok(())
}

impl ExportParams {
    fn job(self, config: &Config) -> Result<Job, Refused> {
        let (now, terms) = (clock::wall(), Terms::of(config));
        match self.written()? {
            Rendering::Bill(form) => {
                let zone = query::zone(self.zone.as_deref(), config)?;
                let period = self.period(&zone, now)?;
                let by = query::read("by", self.by.as_deref(), BY, str::parse)?;
                let job = BillJob { form, by, period, zone, tenant: self.tenant, now, terms };
                // Each is a question of its own to the store.
                let parts = period.parts(job.unit(), &job.zone)?.len();
                if parts > PARTS_MAX {
                    return Err(Refused::Lines { lines: parts, max: PARTS_MAX });
                }
                Ok(Job::Bill(job))
            }
            Rendering::Export(content) => {
                query::read("zone", self.zone.as_deref(), UTC, |zone| {
                    zone.parse().ok().filter(Zone::is_utc).ok_or(())
                })?;
                query::read("by", self.by.as_deref(), WHOLE, |_| Err::<(), ()>(()))?;
                let period = self.period(&Zone::UTC, now)?;
                Ok(Job::Export(ExportJob { content, period, tenant: self.tenant, now, terms }))
            }
        }
    }

    fn written(&self) -> Result<Rendering, Refused> {
        let names = Format::value_variants().iter().filter_map(Format::to_possible_value);
        let names: Vec<_> = names.map(|name| name.get_name().to_owned()).collect();
        let allowed = format!("one of {}", names.join(", "));
        let format = query::read("format", self.format.as_deref(), &allowed, |format| {
            Format::from_str(format, false)
        })?;
        let format = format.ok_or(Refused::Missing { name: "format", allowed })?;
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

    fn period(&self, zone: &Zone, now: Timestamp) -> Result<Period, Refused> {
        let ends = Ends {
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

impl From<ExportFault> for Refused {
    fn from(fault: ExportFault) -> Self {
        match fault {
            ExportFault::Store(fault) => fault.into(),
            ExportFault::Bill(fault) => fault.into(),
            ExportFault::Period(fault) => fault.into(),
            fault => Self::Export(fault.to_string()),
        }
    }
}

/// What is written, in chunks for the answer. Waits for the client, but not for ever.
struct Chunks {
    chunks: mpsc::Sender<Result<Bytes, Refused>>,
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
