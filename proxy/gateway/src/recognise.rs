//! Recognises the engine of an upstream with `dialect: auto`: it asks for the list of models and
//! reads who owns them. Until then the gateway splices nothing into its requests.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, HOST};
use http::{HeaderValue, Method, Request};
use http_body_util::{BodyExt, Limited};
use serde::Deserialize;
use taximeter_meter::Dialect;
use taximeter_net::upstream::{Exchange, ExchangeBody, Link, RequestBody};

use crate::gateway::Gateway;

/// Pause between two questions to an upstream that has not answered.
const RETRY_PERIOD: Duration = Duration::from_secs(2);
/// Time for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest list of models that is read, in bytes.
const MODELS_BYTES_MAX: usize = 4 << 20;

/// Asks every `auto` upstream that has not shown what it is, until it has. An answer that tells nothing ends the
/// asking.
pub fn start(gateway: &Arc<Gateway>) {
    for index in 0..gateway.config.upstreams.len() {
        if gateway.dialect(index) == Dialect::Auto {
            let weak = Arc::downgrade(gateway);
            gateway.background.spawn(async move {
                while let Some(gateway) = weak.upgrade() {
                    let asked = tokio::time::timeout(ANSWER_TIMEOUT, models(&gateway, index));
                    if let Ok(Some(body)) = asked.await {
                        if let Some(dialect) = owner(&body) {
                            gateway.recognise(index, dialect);
                        }
                        return;
                    }
                    drop(gateway);
                    tokio::time::sleep(RETRY_PERIOD).await;
                }
            });
        }
    }
}

/// The body of `/v1/models`, if there is one.
async fn models(gateway: &Gateway, index: usize) -> Option<Bytes> {
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
        return None;
    }
    let body = ExchangeBody(Exchange::new(link, answer.into_body()));
    Some(Limited::new(body, MODELS_BYTES_MAX).collect().await.ok()?.to_bytes())
}

/// What the owners of an engine's models give away.
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
    Dialect::from_owners(models.data.iter().filter_map(|model| model.owned_by.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_model_gives_the_engine_away() {
        let body = br#"{"object":"list","data":[{"id":"a"},{"id":"b","owned_by":"llamacpp"}]}"#;
        assert_eq!(owner(body), Some(Dialect::LlamaCpp));
        assert_eq!(owner(br#"{"data":[{"id":"a","owned_by":"nobody known"}]}"#), None);
        assert_eq!(owner(b"<html>"), None);
    }
}
