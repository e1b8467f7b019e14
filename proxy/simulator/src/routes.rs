//! Answers requests, by their route.

use std::sync::Arc;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};
use tokio::time::{Instant, sleep_until};

use crate::ask::{Ask, BODY_BYTES_MAX};
use crate::behaviour::{Behaviour, Fault};
use crate::broken::Broken;
use crate::clock::Clock;
use crate::job::{Foreman, Job};
use crate::journal::{Books, Visit};
use crate::reply::Reply;
use crate::route::Route;
use crate::served::End;
use crate::shapes;
use crate::stream::Stream;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) behaviour: Arc<Behaviour>,
    pub(crate) books: Arc<Books>,
    pub(crate) foreman: Foreman,
}

type Answer = Result<Response<Reply>, Broken>;

impl Engine {
    /// The behaviour that a request's `x-simulate` asks for.
    pub(crate) fn behaviour(&self, headers: &HeaderMap) -> Result<Arc<Behaviour>, String> {
        let Some(settings) = headers.get("x-simulate") else {
            return Ok(self.behaviour.clone());
        };
        let settings = settings.to_str().map_err(|_| "x-simulate: not text".to_owned())?;
        match self.behaviour.with(settings) {
            Ok(behaviour) => Ok(Arc::new(behaviour)),
            Err(error) => Err(format!("x-simulate: {error}")),
        }
    }

    /// Answers one request. `Err` breaks the connection.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        behaviour: Arc<Behaviour>,
    ) -> Answer {
        let route = Route::from_path(request.uri().path());
        match (request.method(), route) {
            (&Method::POST, Some(route)) => self.generate(route, request, behaviour).await,
            (_, Some(route)) => Ok(refusal(Some(route), 405, "Method Not Allowed")),
            (&Method::GET, None) => Ok(self.look(request.uri().path(), &behaviour)),
            _ => Ok(refusal(None, 404, "Not Found")),
        }
    }

    fn look(&self, path: &str, behaviour: &Behaviour) -> Response<Reply> {
        match path {
            "/health" => response(StatusCode::OK, "text/plain", String::new()),
            "/metrics" => response(
                StatusCode::OK,
                "text/plain; version=0.0.4; charset=utf-8",
                self.books.metrics.render(),
            ),
            "/v1/models" => {
                let created = self.books.clock.unix(self.books.clock.epoch).as_secs();
                let model = serde_json::Value::from(behaviour.model.as_str());
                let owner = serde_json::Value::from(behaviour.owned_by.as_str());
                json(
                    StatusCode::OK,
                    format!(
                        r#"{{"object":"list","data":[{{"id":{model},"object":"model",
                           "created":{created},"owned_by":{owner},"root":{model},"parent":null,
                           "max_model_len":131072}}]}}"#
                    ),
                )
            }
            "/simulate/served" => {
                let lines = self.books.journal.all().into_iter().filter_map(|served| {
                    let line = serde_json::to_string(&served).ok()?;
                    Some(line + "\n")
                });
                response(StatusCode::OK, "application/x-ndjson", lines.collect())
            }
            _ => refusal(None, 404, "Not Found"),
        }
    }

    async fn generate(
        &self,
        route: Route,
        request: Request<Incoming>,
        behaviour: Arc<Behaviour>,
    ) -> Answer {
        let (head, body) = request.into_parts();
        let request_id = head.headers.get("x-request-id").and_then(|id| id.to_str().ok());
        let body = match Limited::new(body, BODY_BYTES_MAX).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return Ok(refusal(Some(route), 413, "the body is too large"));
            }
            Err(_) => return Err(Broken),
        };
        let ask: Ask = match serde_json::from_slice(&body) {
            Ok(ask) => ask,
            Err(error) => return Ok(refusal(Some(route), 400, &error.to_string())),
        };
        let started = self.books.clock.now();
        let created = self.books.clock.unix(started).as_secs();
        let job = self.foreman.plan(route, &ask, behaviour, request_id, created);
        let stream = ask.streams() && route != Route::Embeddings;
        let mut visit = Visit::open(self.books.clone(), &job, stream, request_id, started);
        if let Some(status) = job.behaviour.status {
            return Ok(refused(&mut visit, route, status));
        }
        match shapes::of(route) {
            Some(shape) if stream => {
                let stream = Stream::new(job, shape, visit, self.books.clock, started);
                let mut response = Response::new(Reply::stream(stream));
                content_type(&mut response, "text/event-stream; charset=utf-8");
                Ok(response)
            }
            Some(shape) => {
                generate_whole(&job, &mut visit, self.books.clock, started).await;
                Ok(whole(&job, &mut visit, shapes::compact(&shape.whole(&job))))
            }
            None => {
                generate_whole(&job, &mut visit, self.books.clock, started).await;
                Ok(whole(&job, &mut visit, shapes::compact(&shapes::embeddings(&job, &ask))))
            }
        }
    }
}

/// Takes the time that an answer takes that is not a stream.
async fn generate_whole(job: &Job, visit: &mut Visit, clock: Clock, started: Instant) {
    let behaviour = &job.behaviour;
    if let Some(Fault::StallAfter(_)) = behaviour.fault {
        std::future::pending::<()>().await;
    }
    let first = started + behaviour.prefill;
    let gaps = u32::try_from(job.chunks().saturating_sub(1)).unwrap_or(u32::MAX);
    let last = first + behaviour.gap.saturating_mul(gaps);
    let generating = Generating { job, visit, clock, first };
    if last > started {
        sleep_until(last).await;
    }
    drop(generating);
}

/// An answer on its way to be whole. Whoever ends the wait, what was generated until then counts.
struct Generating<'a> {
    job: &'a Job,
    visit: &'a mut Visit,
    clock: Clock,
    first: Instant,
}

impl Drop for Generating<'_> {
    fn drop(&mut self) {
        let Some(since) = self.clock.now().checked_duration_since(self.first) else { return };
        let Self { job, visit, .. } = self;
        let gap = job.behaviour.gap.as_nanos();
        let chunks = since
            .as_nanos()
            .checked_div(gap)
            .map_or(u64::MAX, |gaps| u64::try_from(gaps).unwrap_or(u64::MAX).saturating_add(1));
        let (output, reasoning) = job.tokens_of(chunks);
        if output > 0 {
            visit.first_token_at(self.first);
        }
        visit.generated(output, reasoning);
    }
}

/// The head and body of an answer that is not a stream.
fn whole(job: &Job, visit: &mut Visit, mut text: String) -> Response<Reply> {
    let length = text.len() as u64;
    match job.behaviour.fault {
        Some(Fault::ErrorEventAfter(_)) => return refused(visit, job.route, 500),
        Some(Fault::DieAfter(_)) => {
            visit.answered(200);
            visit.close(End::Failed);
            text.truncate(text.floor_char_boundary(text.len() / 2));
            return promising(length, Reply::short(text));
        }
        _ => {}
    }
    visit.answered(200);
    visit.close(End::Finished);
    if job.behaviour.wrong_length > 0 {
        return promising(length + job.behaviour.wrong_length, Reply::short(text));
    }
    json(StatusCode::OK, text)
}

fn refused(visit: &mut Visit, route: Route, status: u16) -> Response<Reply> {
    visit.answered(status);
    visit.close(End::Failed);
    let mut response = refusal(Some(route), status, "refused, as the simulation was told to");
    if status == 429 || status == 503 {
        response.headers_mut().insert(RETRY_AFTER, 1.into());
    }
    response
}

/// A JSON answer whose head promises `length` bytes, however many come.
fn promising(length: u64, reply: Reply) -> Response<Reply> {
    let mut response = Response::new(reply);
    content_type(&mut response, "application/json");
    response.headers_mut().insert(CONTENT_LENGTH, length.into());
    response
}

pub(crate) fn refusal(route: Option<Route>, status: u16, message: &str) -> Response<Reply> {
    let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    json(code, shapes::refusal(route, status, message))
}

fn json(status: StatusCode, text: String) -> Response<Reply> {
    response(status, "application/json", text)
}

fn response(status: StatusCode, kind: &'static str, text: String) -> Response<Reply> {
    let mut response = Response::new(Reply::whole(text));
    *response.status_mut() = status;
    content_type(&mut response, kind);
    response
}

fn content_type(response: &mut Response<Reply>, kind: &'static str) {
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
}
