//! Recognises the engine of an upstream that the configuration does not name: it asks for the list
//! of models and reads who owns them.
//!
//! Any answer ends the question. It never goes to a public host without a key: that host is nobody
//! whom the operator has an account with.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, HOST};
use http::{HeaderValue, Method, Request};
use http_body_util::{BodyExt, Limited};
use serde::Deserialize;
use taximeter_config::Upstream;
use taximeter_meter::Dialect;
use taximeter_net::upstream::{Exchange, ExchangeBody, Link, RequestBody};

use crate::gateway::Gateway;

/// The first pause after a question without an answer; each one is twice the one before.
const PAUSE_MIN: Duration = Duration::from_secs(2);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// Time for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest list of models that is read, in bytes.
const MODELS_BYTES_MAX: usize = 4 << 20;

/// Asks each upstream that nothing names for its list of models, until it answers.
pub fn start(gateway: &Arc<Gateway>) {
    for index in 0..gateway.config.upstreams.len() {
        if !gateway.known_dialect(index).wants_list() || !may_be_asked(gateway.upstream(index)) {
            continue;
        }
        let weak = Arc::downgrade(gateway);
        gateway.background.spawn(async move {
            let mut pause = PAUSE_MIN;
            while let Some(gateway) = weak.upgrade() {
                let asked = tokio::time::timeout(ANSWER_TIMEOUT, models(&gateway, index));
                if let Ok(Some(answer)) = asked.await {
                    gateway.list_answered(index, answer.as_deref().and_then(owner));
                    return;
                }
                drop(gateway);
                tokio::time::sleep(pause).await;
                pause = longer(pause);
            }
        });
    }
}

/// Whether an upstream may be asked without a client's request: it is not public, or there is a key
/// for it.
fn may_be_asked(upstream: &Upstream) -> bool {
    upstream.credential.is_some() || !upstream.url.is_public()
}

fn longer(pause: Duration) -> Duration {
    (pause * 2).min(PAUSE_MAX)
}

/// The answer to `/v1/models`: its body, if it is a success. `None` where nothing answers.
async fn models(gateway: &Gateway, index: usize) -> Option<Option<Bytes>> {
    let upstream = gateway.upstream(index);
    let mut request = Request::new(RequestBody::default());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = format!("{}/v1/models", upstream.url.prefix).parse().ok()?;
    let headers = request.headers_mut();
    headers.insert(HOST, gateway.host(index)?.clone());
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    if let Some(credential) = &upstream.credential {
        let mut value = HeaderValue::try_from(format!("Bearer {}", credential.expose())).ok()?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let mut link = Link::new(gateway.dialer.dial(&upstream.url).await.ok()?).await.ok()?;
    let answer = link.send(request).await.ok()?;
    if !answer.status().is_success() {
        return Some(None);
    }
    let body = ExchangeBody(Exchange::new(link, answer.into_body()));
    Some(Limited::new(body, MODELS_BYTES_MAX).collect().await.ok().map(|body| body.to_bytes()))
}

/// The dialect that the owner of all models gives away.
pub fn owner(body: &[u8]) -> Option<Dialect> {
    #[derive(Deserialize)]
    struct Models {
        data: Vec<Model>,
    }
    #[derive(Deserialize)]
    struct Model {
        owned_by: Option<String>,
    }
    let models: Models = serde_json::from_slice(body).ok()?;
    Dialect::from_owners(models.data.iter().map(|model| model.owned_by.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_every_model_gives_the_engine_away() {
        let of = |models: &str| owner(format!(r#"{{"object":"list","data":{models}}}"#).as_bytes());
        assert_eq!(of(r#"[{"id":"a","owned_by":"llamacpp"}]"#), Some(Dialect::LlamaCpp));
        for models in [
            r#"[{"id":"a"},{"id":"b","owned_by":"llamacpp"}]"#,
            r#"[{"id":"a","owned_by":"vllm"},{"id":"b","owned_by":"openai"}]"#,
            r#"[{"id":"a","owned_by":"nobody known"}]"#,
            "[]",
        ] {
            assert_eq!(of(models), None, "{models}");
        }
        assert_eq!(owner(b"<html>"), None);
    }

    #[test]
    fn pauses_double_up_to_five_minutes() {
        let pauses: Vec<_> =
            std::iter::successors(Some(PAUSE_MIN), |pause| Some(longer(*pause))).take(10).collect();
        let seconds: Vec<_> = pauses.iter().map(Duration::as_secs).collect();
        assert_eq!(seconds, [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    }
}
