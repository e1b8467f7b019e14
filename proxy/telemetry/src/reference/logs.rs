//! `docs/reference/logs.md`.

use std::fmt::Write as _;

use taximeter_tests::generated::is_fresh;

use crate::names::log_event::{FIELDS, LogEvent};

const HEAD: &str = "\
# Logs

Taximeter writes its log to stderr: one JSON object per line, or text for people with `--log-format text`. A line never contains a
prompt, an answer or a credential. Texts that clients and engines choose are cut at 256 bytes, and their control characters are
escaped. This page is made from the tables in `proxy/telemetry/src/names/log_event.rs` by a test.

| field of every line | meaning |
|---|---|
| `time` | RFC 3339, UTC. |
| `level` | `info`; `warn`: something outside Taximeter went wrong; `critical`: something is broken and needs a person. |
| `event` | One of the words below. |
| `trace_id`, `span_id` | Of a request: the ids of its span, if Taximeter keeps its spans ([traces](traces.md)). If Taximeter creates no spans, `trace_id` of the caller's trace, if the caller has sampled it. |
| `left_out` | How many lines of this event are missing before this one. Each event has at most 10 lines a second, except `request`. |
| `lost` | How many lines before this one could not be written. |

No request waits for stderr. If nothing reads stderr, 8192 lines wait. Taximeter drops the rest, reports them in `lost`, and counts them
(`taximeter_log_lines_lost_total`).

## Requests

```yaml fragment
telemetry:
  access_log: all      # a line for each request when it ends; errors: only requests that failed; off, the default: none
```

With `all`, every request has one line with the event `request`, also a request that was refused or has no record. The line has the
fields that are known. The record of the request has more: see [records](records.md).
";

const PUSHED: &str = "
## By OTLP

```yaml fragment
telemetry:
  otlp: {endpoint: \"http://127.0.0.1:4317\", logs: on}
```

Taximeter pushes the same lines to a collector as log records, once a second. The event name is `taximeter.` and the event. The body is
the meaning of the event. The severity is INFO, WARN, or ERROR2 for `critical`. Fields become attributes with the names in the table
above, or `taximeter.log.` and the name of the field. Numbers stay numbers. `telemetry.genai` chooses the attribute of cache writes. If
`OTEL_EXPORTER_OTLP_ENDPOINT` names the collector and the file does not, lines are pushed without further settings.
`OTEL_LOGS_EXPORTER=none` stops this.

While a collector is down, 32 MiB of lines wait, compressed as they are sent. If there are more, Taximeter drops the oldest and counts them
(`taximeter_otlp_items_total{taximeter_otlp_signal=\"logs\",taximeter_outcome=\"dropped\"}`). Lines about the push itself (`otlp_…`) stay on
stderr, so that a push never causes another push.

`operation_failed` goes only to collectors. It is the event of the GenAI conventions for a failed call:
`gen_ai.client.operation.exception`, severity WARN. Its `exception.type` is the `error.type` of the call's span. It has no message,
because an engine may quote the prompt in it. Prompts and answers are in an event of their own, if
`telemetry.content.capture` is `events` or `both` ([traces](traces.md#prompts-and-answers)).
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    // Writing to a string cannot fail.
    page.push_str("\n| field | meaning | attribute |\n|---|---|---|\n");
    for field in LogEvent::Request.row().fields {
        let (_, key, meaning) = FIELDS.iter().find(|(name, ..)| name == field).unwrap();
        let _ = writeln!(page, "| `{field}` | {meaning} | `{key}` |");
    }
    page.push_str(PUSHED);
    page.push_str(
        "\n## Everything else\n\n| event | level | fields | meaning |\n|---|---|---|---|\n",
    );
    for row in LogEvent::ALL.iter().filter(|event| !event.is_access()).map(|event| event.row()) {
        let fields: Vec<_> = row.fields.iter().map(|field| format!("`{field}`")).collect();
        let (fields, level) = (fields.join(" "), row.level.as_str());
        let _ = writeln!(page, "| `{}` | {level} | {fields} | {} |", row.word, row.meaning);
    }
    page
}

#[test]
fn the_reference_of_logs_is_fresh() {
    assert_eq!(is_fresh("docs/reference/logs.md", |_| page()), Ok(()));
}
