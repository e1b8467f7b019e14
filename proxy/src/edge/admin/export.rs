//! `/api/v1/export`: a period in any format of `taximeter bill`'s exports, as it is written.

use std::io::{self, Write};
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use serde::Deserialize;
use taximeter_billing::export::FocusVersion;
use taximeter_billing::{Period, PeriodError, instant};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};

use crate::edge::export::{Content, ExportFault, Job, stream as write_export};
use crate::edge::store::Location;
use crate::edge::{clock, journal};
use crate::gateway::Gateway;

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
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    format: String,
    month: Option<String>,
    from: Option<String>,
    to: Option<String>,
    tenant: Option<String>,
    focus_version: Option<String>,
    issuer: Option<String>,
}

/// Why there is no export; the body says it in JSON.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("{0}")]
    Query(#[from] QueryRejection),
    #[error(transparent)]
    Period(#[from] PeriodError),
    #[error("write either month, or from and to, or neither for the current month")]
    Ends,
    #[error("{0:?} is no format of exports; choose one of {names}", names = Content::NAMES.join(", "))]
    Format(String),
    #[error("{0:?} is no version of FOCUS that is written; choose 1.2 or 1.3")]
    FocusVersion(String),
    #[error("{EXPORTS_AT_ONCE_MAX} exports are running; try again when one has ended")]
    Busy,
    #[error("{0}")]
    Failed(String),
}

/// The export, streamed. What fails after the first bytes breaks the answer off.
pub(super) async fn answer(
    State(gateway): State<Arc<Gateway>>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Response {
    match start(&gateway, asked).await {
        Ok(answer) => answer,
        Err(refused) => refused.into_response(),
    }
}

async fn start(
    gateway: &Gateway,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Response, Refused> {
    let job = asked?.0.job()?;
    let permit = PERMITS.try_acquire().map_err(|_| Refused::Busy)?;
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
        .map_err(|fault| Refused::Failed(fault.to_string()))?;
    let first = match written.recv().await {
        Some(Err(fault)) => return Err(Refused::Failed(fault)),
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

impl Asked {
    fn job(self) -> Result<Job, Refused> {
        let now = clock::wall();
        let period = match (&self.month, &self.from, &self.to) {
            (Some(month), None, None) => Period::month(month)?,
            (None, Some(from), Some(to)) => Period::new(instant(from)?, instant(to)?)?,
            (None, Some(from), None) => Period::new(instant(from)?, now)?,
            (None, None, None) => Period::month_of(now)?,
            _ => return Err(Refused::Ends),
        };
        let version = match self.focus_version.as_deref() {
            None | Some("1.2") => FocusVersion::V1_2,
            Some("1.3") => FocusVersion::V1_3,
            Some(other) => return Err(Refused::FocusVersion(other.to_owned())),
        };
        let issuer = self.issuer.as_deref().unwrap_or(Content::ISSUER);
        let content = Content::named(&self.format, version, issuer)
            .ok_or_else(|| Refused::Format(self.format.clone()))?;
        Ok(Job { content, period, tenant: self.tenant, now })
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, code) = match &self {
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            Self::Failed(_) => (StatusCode::SERVICE_UNAVAILABLE, "export_failed"),
            _ => (StatusCode::BAD_REQUEST, "invalid_query"),
        };
        let error = serde_json::json!({"error": {"code": code, "message": self.to_string()}});
        (status, Json(error)).into_response()
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
