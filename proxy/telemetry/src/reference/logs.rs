//! `docs/reference/logs.md`.

use std::fmt::Write as _;

use super::is_fresh;
use crate::names::log_event::{FIELDS, LogEvent};

const HEAD: &str = "\
# Logs

Lines on stderr: one JSON object a line, or text for people with `--log-format text`. Never a prompt, an answer or a
credential. What clients and engines choose is cut at 256 bytes, its control characters are escaped. This page is made from
the tables in `proxy/telemetry/src/names/log_event.rs` by a test.

| field of every line | meaning |
|---|---|
| `time` | RFC 3339, UTC. |
| `level` | `info`; `warn`: something went wrong that is not ours; `critical`: something is broken and needs somebody. |
| `event` | One of the words below. |
| `trace_id`, `span_id` | Of a request: its own if its spans are kept ([traces.md](traces.md)); without spans of ours, `trace_id` if the caller keeps it. |
| `left_out` | Lines of this event that were left out before this one: of each there are at most ten a second, but for `request`. |
| `lost` | Lines before this one that could not be written. |

Nobody waits for stderr. If it takes nothing, 8192 lines wait; those beyond it are lost, told by `lost` and counted
(`taximeter_log_lines_lost_total`).

## Requests

```yaml fragment
telemetry:
  access_log: all      # a line for each request when it ends; or errors; without it none
```

Every request has one line, also one that was refused or is on no ledger: event `request`, with those of these fields that
are known. `errors` leaves out what went well. The record of the ledger says more (`taximeter records`, [records.md](records.md)).
";

const PUSHED: &str = "
## By OTLP

```yaml fragment
telemetry:
  otlp: {endpoint: \"http://127.0.0.1:4317\", logs: on}
```

The same lines go to a collector as log records, once a second: event name `taximeter.` and the event, body its meaning,
severity INFO, WARN or (for `critical`) ERROR2, trace and span as above. Fields are attributes: of the name above, or
`taximeter.log.` and the field's name; numbers are numbers. Where a collector is named by `OTEL_EXPORTER_OTLP_ENDPOINT`
alone, lines go there without further ado; `OTEL_LOGS_EXPORTER=none` is the way out. What `telemetry.genai` chooses holds for
the attribute of cache writes.

16384 lines wait for a collector that is down; those beyond it are dropped and counted
(`taximeter_otlp_items_total{taximeter_otlp_signal=\"logs\",taximeter_outcome=\"dropped\"}`). What the sender says of itself
(`otlp_…`) is on stderr alone, so that a push never causes another.

`operation_failed` goes to collectors alone, as the event that the GenAI conventions have for it:
`gen_ai.client.operation.exception`, severity WARN, with `exception.type` the `error.type` of the call's span. What an engine says
of its failure may quote the prompt, so there is no message. What is said in prompts and answers is an event of its own, where
`telemetry.content.capture` is `events` or `both` ([traces.md](traces.md)).
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
    is_fresh("logs.md", &page());
}
