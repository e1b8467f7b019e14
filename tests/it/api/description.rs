//! What the gateway says of its answers, and whether they are so.

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::http::Message;

/// `/openapi.json` of a running gateway.
pub(super) struct Description(Value);

impl Description {
    pub(super) fn of(gateway: &Gateway) -> Self {
        let answer = gateway.admin("/openapi.json");
        assert_eq!(answer.status(), 200);
        let mut document = answer.json();
        assert!(document["openapi"].as_str().is_some_and(|v| v.starts_with("3.1.")), "{document}");
        close(&mut document["components"]["schemas"]);
        Self(document)
    }

    pub(super) fn document(&self) -> &Value {
        &self.0
    }

    /// The answer's JSON, which is as described: its status, its type, each of its members.
    pub(super) fn checked(&self, path: &str, answer: &Message) -> Value {
        let status = answer.status().to_string();
        let described = &self.0["paths"][path]["get"]["responses"][&status];
        let kind = answer.header("content-type").expect("a content type");
        let bare = kind.split(';').next().expect("a type");
        let schema = &described["content"][bare]["schema"];
        assert!(schema.is_object(), "{path} {status} {kind} is not described: {described}");
        let whole = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "components": self.0["components"],
            "allOf": [schema],
        });
        let validator = jsonschema::validator_for(&whole).expect("a schema");
        let body = answer.json();
        let faults: Vec<_> = validator
            .iter_errors(&body)
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{path}: {faults:#?} in {body:#}");
        body
    }
}

/// Nothing is in an answer that is not described.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.contains_key("properties") && !members.contains_key("additionalProperties") {
                members.insert("additionalProperties".to_owned(), false.into());
            }
            members.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}
