//! Reads what the object of a batch says beside its usage: how many requests it has, and where
//! their results are.

use serde_json::value::RawValue;
use taximeter_json::Value;

use super::line::inside;

/// What the object of a batch says.
#[derive(Debug, Default)]
pub(super) struct BatchObject<'a> {
    /// `id` of the file with the results.
    pub(super) file: Option<String>,
    /// The results, where they are in the object.
    pub(super) results: Option<Vec<Value<'a>>>,
    /// Number of requests.
    pub(super) requests: Option<u64>,
    /// Number of those that were answered.
    pub(super) answered: Option<u64>,
}

/// Where the number of requests is: OpenAI, Mistral, Gemini.
const REQUESTS: [&[&str]; 3] = [&["request_counts", "total"], &["total_requests"], GEMINI_REQUESTS];

/// Where the number of those that were answered is: the same, and Anthropic.
const ANSWERED: [&[&str]; 4] = [
    &["request_counts", "completed"],
    &["request_counts", "succeeded"],
    &["succeeded_requests"],
    GEMINI_ANSWERED,
];

/// Gemini leaves out a zero.
const GEMINI_ANSWERED: &[&str] = &["metadata", "batchStats", "successfulRequestCount"];
const GEMINI_REQUESTS: &[&str] = &["metadata", "batchStats", "requestCount"];

/// Where the name of the file is: OpenAI, Mistral, Gemini.
const FILE: [&[&str]; 4] = [
    &["output_file_id"],
    &["output_file"],
    &["response", "responsesFile"],
    &["metadata", "output", "responsesFile"],
];

/// Where the results are: Mistral, OpenRouter, Gemini.
const RESULTS: [&[&str]; 4] = [
    &["outputs"],
    &["results"],
    &["response", "inlinedResponses", "inlinedResponses"],
    &["metadata", "output", "inlinedResponses", "inlinedResponses"],
];

/// What Anthropic counts apart. Together they are all requests.
const PARTS: [&str; 5] = ["processing", "succeeded", "errored", "canceled", "expired"];

impl<'a> BatchObject<'a> {
    /// Reads a whole object; `None` if it is no JSON.
    pub(super) fn read(text: &'a [u8]) -> Option<Self> {
        let whole: &'a RawValue = serde_json::from_slice(text.trim_ascii()).ok()?;
        let object = Value::checked(whole.get());
        let number = |path: &&[&str]| number(at(object, path)?);
        let none = || number(&GEMINI_REQUESTS).map(|_| 0);
        let parts = PARTS.iter().map(|part| number(&&["request_counts", part][..]));
        let file = FILE.iter().find_map(|path| at(object, path)?.text());
        let results = RESULTS.iter().find_map(|path| at(object, path)?.elements());
        Some(Self {
            file: file.map(|name| name.strip_prefix("files/").unwrap_or(&name).to_owned()),
            results: results.filter(|results| !results.is_empty()),
            requests: REQUESTS.iter().find_map(number).or_else(|| parts.sum()),
            answered: ANSWERED.iter().find_map(number).or_else(none),
        })
    }

    /// Whether it ended for `reasons` and none of its requests was answered. A batch that did not fail
    /// and has no requests at all does not know their number.
    pub(super) fn is_nothing_answered(&self, reasons: &[String]) -> bool {
        let has_failed = reasons.iter().any(|reason| reason.eq_ignore_ascii_case("failed"));
        let is_counted = has_failed || self.requests > Some(0);
        self.answered == Some(0) && is_counted
    }
}

fn at<'a>(object: Value<'a>, path: &[&str]) -> Option<Value<'a>> {
    path.iter().try_fold(object, |value, name| inside(value, name))
}

/// A number, which Gemini writes as a string.
fn number(value: Value<'_>) -> Option<u64> {
    value.as_str().trim_matches('"').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_provider_says_in_its_own_words_where_the_results_are_and_how_many() {
        for (text, file, inline, requests, answered) in [
            (
                r#"{"id":"b","output_file_id":"file-2","request_counts":{"total":3,"completed":2,"failed":1}}"#,
                Some("file-2"),
                None,
                Some(3),
                Some(2),
            ),
            (
                r#"{"id":"b","output_file":"f2","total_requests":4,"succeeded_requests":3,"outputs":[]}"#,
                Some("f2"),
                None,
                Some(4),
                Some(3),
            ),
            (
                r#"{"request_counts":{"processing":0,"succeeded":1,"errored":1,"canceled":2,"expired":0}}"#,
                None,
                None,
                Some(4),
                Some(1),
            ),
            (
                r#"{"name":"batches/b","metadata":{"batchStats":{"requestCount":"2","successfulRequestCount":"1"}},"response":{"responsesFile":"files/f3"}}"#,
                Some("f3"),
                None,
                Some(2),
                Some(1),
            ),
            (
                r#"{"response":{"inlinedResponses":{"inlinedResponses":[{"response":{}},{"error":{}}]}}}"#,
                None,
                Some(2),
                None,
                None,
            ),
            (
                r#"{"metadata":{"batchStats":{"requestCount":"2","failedRequestCount":"2"}}}"#,
                None,
                None,
                Some(2),
                Some(0),
            ),
            (r#"{"results":[{}],"outputs":null}"#, None, Some(1), None, None),
            (
                r#"{"output_file_id":null,"request_counts":null,"metadata":{"output":"x"}}"#,
                None,
                None,
                None,
                None,
            ),
        ] {
            let object = BatchObject::read(text.as_bytes()).unwrap();
            let told = (object.file.as_deref(), object.results.map(|results| results.len()));
            assert_eq!(told, (file, inline), "{text}");
            assert_eq!((object.requests, object.answered), (requests, answered), "{text}");
        }
        assert!(BatchObject::read(br#"{"id":"b""#).is_none());
    }

    #[test]
    fn nothing_was_answered_only_where_the_batch_counts_its_requests_or_failed() {
        let read = |total: &str, completed: &str| {
            let text =
                format!(r#"{{"request_counts":{{"total":{total},"completed":{completed}}}}}"#);
            let object = BatchObject::read(text.as_bytes()).unwrap();
            ["failed", "FAILED", "cancelled"]
                .map(|reason| object.is_nothing_answered(&[reason.to_owned()]))
        };
        assert_eq!(read("3", "0"), [true; 3]);
        assert_eq!(read("0", "0"), [true, true, false]);
        assert_eq!(read("3", "1"), [false; 3]);
        assert_eq!(read("3", "null"), [false; 3]);
    }
}
