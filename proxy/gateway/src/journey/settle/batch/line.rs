//! Reads one result of a batch: the answer to one request, whatever route that would come from.

use bytes::Bytes;
use taximeter_json::Value;
use taximeter_meter::{Dialect, Hidden, Measurement, Meter, Setup, StreamEnd, Wire};
use taximeter_system::clock;

/// What a result says of its request.
pub(super) enum Answer<'a> {
    /// It was answered.
    Given(Value<'a>),
    /// It failed, was cancelled or came too late: nothing is owed.
    None,
}

/// The answer in a result. `None` if it is no result.
pub(super) fn answer<'a>(result: Value<'a>) -> Option<Answer<'a>> {
    let members = result.members()?;
    let member = |name: &str| {
        let found = members.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
        found.filter(|value: &Value<'a>| value.first() == Some(b'{'))
    };
    // Anthropic
    if let Some(result) = member("result") {
        return match &*inside(result, "type")?.text()? {
            "succeeded" => inside(result, "message").map(Answer::Given),
            "errored" | "canceled" | "expired" => Some(Answer::None),
            _ => None,
        };
    }
    let Some(response) = member("response") else {
        return member("error").map(|_| Answer::None);
    };
    match inside(response, "status_code") {
        Some(status) if is_success(status) => inside(response, "body").map(Answer::Given),
        Some(_) => Some(Answer::None),
        // Gemini
        None => Some(Answer::Given(response)),
    }
}

fn is_success(status: Value<'_>) -> bool {
    let status = status.as_str().trim_matches('"');
    status.parse().is_ok_and(|status: u16| (200..300).contains(&status))
}

/// A member of an object.
pub(super) fn inside<'a>(object: Value<'a>, name: &str) -> Option<Value<'a>> {
    object.members()?.into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// The wire format of an answer, by what it says.
pub(super) fn wire(answer: Value<'_>) -> Option<Wire> {
    let members = answer.members()?;
    let member = |name: &str| members.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
    let text = |name: &str| member(name).and_then(Value::text);
    Some(match (text("object").as_deref(), text("type").as_deref()) {
        (_, Some("message")) => Wire::Messages,
        (Some("response"), _) => Wire::Responses,
        (Some("list"), _) => Wire::Embeddings,
        (Some("text_completion"), _) => Wire::Completions,
        _ if member("usageMetadata").or_else(|| member("candidates")).is_some() => {
            Wire::GenerateContent
        }
        _ => Wire::ChatCompletions,
    })
}

/// Measures a whole answer.
pub(super) fn measure(wire: Wire, dialect: Dialect, answer: &[u8]) -> Measurement {
    let now = clock::now();
    let setup =
        Setup { wire, dialect, started_at: now, hidden: Hidden::default(), has_one_prompt: false };
    let mut meter = Meter::new(setup);
    meter.on_head(200, Some("application/json"), None);
    meter.on_bytes(now, Bytes::copy_from_slice(answer));
    meter.finish(now, StreamEnd::Clean)
}
