//! `/api/v1/export`: a period in any format of `taximeter bill`'s exports, as it is written.

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
use futures_util::stream::{self, StreamExt as _};
use serde::Deserialize;
use taximeter_billing::Zone;
use taximeter_billing::export::FocusVersion;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use utoipa::IntoParams;

use super::problem::Refused;
use super::query::{self, Asked, Ends};
use crate::edge::export::{Content, ExportFault, Job, stream as write_export};
use crate::edge::store::Location;
use crate::edge::{clock, journal};
use crate::gateway::Gateway;
use crate::terms::Terms;

/// Exports at once, each on a thread of its own; more are answered 503.
const EXPORTS_AT_ONCE_MAX: usize = 2;
/// Bytes handed on at once.
const CHUNK_BYTES: usize = 64 << 10;
/// Chunks that wait for the client.
const CHUNKS_MAX: usize = 8;
/// How long a client may not read before its export ends.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

static PERMITS: Semaphore = Semaphore::const_new(EXPORTS_AT_ONCE_MAX);

/// What is asked for.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct ExportParams {
    /// `focus`, `focus-parquet`, `parquet`, `ndjson`, `cloudevents`, `stripe`, `lago` or `orb`
    #[param(required)]
    format: Option<String>,
    /// Calendar month in UTC, `2026-11`; the current one where no end is given
    month: Option<String>,
    /// Start, included: a date, or a time with offset
    from: Option<String>,
    /// End, not included; now where only the start is given
    to: Option<String>,
    /// Only this tenant
    tenant: Option<String>,
    /// Version of FOCUS, `1.2` (by default) or `1.3`
    focus_version: Option<String>,
    /// Who sends the invoices, in FOCUS
    issuer: Option<String>,
}

/// A period in any of the exports' formats, as it is written
///
/// The bytes are those of `taximeter bill --format …`. What fails after the first of them breaks
/// the answer off.
#[utoipa::path(get, path = "/api/v1/export", tag = "usage", params(ExportParams), responses(
    (status = 200, description = "The export", content(
        ("text/csv"), ("application/x-ndjson"), ("application/vnd.apache.parquet")
    )),
    Refused,
))]
pub(super) async fn export(
    State(gateway): State<Arc<Gateway>>,
    Asked(asked): Asked<ExportParams>,
) -> Result<Response, Refused> {
    let job = asked.job(Terms::of(&gateway.config))?;
    let permit = PERMITS
        .try_acquire()
        .map_err(|_| Refused::Busy(format!("{EXPORTS_AT_ONCE_MAX} exports are running")))?;
    let kind = job.content.media_type();
    let (chunks, mut written) = mpsc::channel(CHUNKS_MAX);
    let (dir, runtime) = (gateway.config.data_dir.clone(), Handle::current());
    let location = Location::of(&gateway.config, &gateway.id);
    let out = Chunks { chunks: chunks.clone(), runtime: runtime.clone(), held: Vec::new() };
    thread::Builder::new()
        .name("export".to_owned())
        .spawn(move || {
            if let Err(fault) = run(&location, &dir, &job, out, permit) {
                // A client that has left needs no word of it.
                let _ = runtime.block_on(chunks.send(Err(fault.to_string())));
            }
        })
        .map_err(|fault| Refused::Export(fault.to_string()))?;
    let first = match written.recv().await {
        Some(Err(fault)) => return Err(Refused::Export(fault)),
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
    out: Chunks,
    _permit: SemaphorePermit<'_>,
) -> Result<(), ExportFault> {
    let mut store = location.open()?;
    store.catch_up(&mut journal::feeds(dir))?;
    write_export(&mut store, job, out, &mut || {})?;
    Ok(())
}

impl ExportParams {
    fn job(self, terms: Terms) -> Result<Job, Refused> {
        let now = clock::wall();
        // Exports are by UTC, as FOCUS wants it.
        let ends = Ends {
            zone: &Zone::UTC,
            month: self.month.as_deref(),
            from: self.from.as_deref(),
            to: self.to.as_deref(),
        };
        let period = ends.or_this_month(now)?;
        let version =
            query::read("focus_version", self.focus_version.as_deref(), "1.2 or 1.3", |version| {
                match version {
                    "1.2" => Ok(FocusVersion::V1_2),
                    "1.3" => Ok(FocusVersion::V1_3),
                    _ => Err(()),
                }
            })?;
        let version = version.unwrap_or(FocusVersion::V1_2);
        let issuer = self.issuer.as_deref().unwrap_or(Content::ISSUER);
        let allowed = format!("one of {}", Content::NAMES.join(", "));
        let content = query::read("format", self.format.as_deref(), &allowed, |format| {
            Content::named(format, version, issuer).ok_or(())
        })?;
        let content = content.ok_or(Refused::Missing { name: "format", allowed })?;
        Ok(Job { content, period, tenant: self.tenant, now, terms })
    }
}

/// What is written, in chunks for the answer. Waits for the client, but not for ever.
struct Chunks {
    chunks: mpsc::Sender<Result<Bytes, String>>,
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
