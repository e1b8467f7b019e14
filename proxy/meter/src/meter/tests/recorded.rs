//! Tests streams that others recorded, where the machine has them. They are no part of this
//! repository.

use std::path::Path;

use serde_json::Value;

use super::*;

/// Bodies in one recording (YAML), each with the wire format of its route and who answered.
fn bodies(recording: &str) -> Vec<(Wire, Dialect, String)> {
    let mut bodies = Vec::new();
    let (mut wire, mut dialect) = (Wire::Opaque, Dialect::Auto);
    let mut lines = recording.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(uri) = line.trim().strip_prefix("uri: ") {
            wire = match uri.split('?').next().unwrap().rsplit('/').next().unwrap() {
                "completions" => Wire::ChatCompletions,
                "responses" => Wire::Responses,
                "messages" => Wire::Messages,
                method if method.ends_with("GenerateContent") => Wire::GenerateContent,
                _ => Wire::Opaque,
            };
            dialect = of_host(uri);
        }
        if line.trim_start().starts_with("string: |") {
            let mut body = String::new();
            while let Some(text) =
                lines.next_if(|line| line.is_empty() || line.starts_with("        "))
            {
                body.push_str(text.strip_prefix("        ").unwrap_or_default());
                body.push('\n');
            }
            bodies.push((wire, dialect, body));
        } else if let Some(begun) = line.trim_start().strip_prefix("string: \"data") {
            // In quotes, folded; its escapes are JSON's.
            let rest = std::iter::from_fn(|| lines.next_if(|line| line.starts_with("        ")));
            let rest: Vec<_> = rest.map(str::trim).collect();
            let quoted = format!("\"data{begun} {}", rest.join(" "));
            bodies.push((wire, dialect, serde_json::from_str(&quoted).unwrap()));
        }
    }
    bodies
}

/// Input and output of the last usage object, read the slow way.
fn usage(wire: Wire, body: &str) -> Option<(u64, u64)> {
    let events = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let last = events
        .filter_map(|data| serde_json::from_str::<Value>(data).ok())
        .filter_map(|event| {
            let usage = [&event["usage"], &event["response"]["usage"], &event["usageMetadata"]];
            usage.into_iter().find(|usage| usage.is_object()).cloned()
        })
        .next_back()?;
    let number = |name: &str| last[name].as_u64().unwrap_or(0);
    Some(match wire {
        Wire::ChatCompletions => (number("prompt_tokens"), number("completion_tokens")),
        Wire::Messages => (
            number("input_tokens")
                + number("cache_creation_input_tokens")
                + number("cache_read_input_tokens"),
            number("output_tokens"),
        ),
        Wire::GenerateContent => (number("promptTokenCount"), number("candidatesTokenCount")),
        _ => (number("input_tokens"), number("output_tokens")),
    })
}

/// Whose answers a host gives.
fn of_host(uri: &str) -> Dialect {
    match uri.split('/').nth(2).unwrap_or_default() {
        "api.openai.com" => Dialect::OpenAi,
        "api.anthropic.com" => Dialect::Anthropic,
        "api.deepseek.com" => Dialect::Deepseek,
        "openrouter.ai" => Dialect::OpenRouter,
        "generativelanguage.googleapis.com" => Dialect::Gemini,
        _ => Dialect::Auto,
    }
}

#[test]
fn recorded_streams_report_what_their_last_usage_says() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folders = [beside.as_path(), Path::new("/work/shared")];
    let folder =
        folders.iter().map(|at| at.join("data/streams-pydantic-ai")).find(|at| at.is_dir());
    let Some(folder) = folder else { return };
    let mut streams = 0;
    for recording in folder.read_dir().unwrap() {
        let path = recording.unwrap().path();
        for (wire, dialect, body) in bodies(&std::fs::read_to_string(&path).unwrap()) {
            let exchange = Exchange { wire, ..Exchange::chat() };
            let ride = exchange.ride(epoch(), body.as_bytes().chunks(1000));
            assert_eq!(ride.bytes, body.as_bytes(), "{}", path.display());
            let found = ride.measurement;
            // Google's last event may say less than those before.
            let usage_fell = found.counts.usage_fell;
            let counts = Counts { usage_fell: 0, ..found.counts };
            assert_eq!(counts, Counts::default(), "{}", path.display());
            assert!(usage_fell == 0 || dialect == Dialect::Gemini, "{}", path.display());
            if wire == Wire::Opaque {
                continue;
            }
            assert!(found.timing.output_chunks > 0, "{}", path.display());
            let unknowing = Exchange { wire, dialect: Dialect::Auto, ..Exchange::chat() };
            let shown = measure(unknowing, &body).dialect;
            let tells = matches!(dialect, Dialect::OpenRouter | Dialect::Gemini);
            assert!(shown == dialect || !tells && shown == Dialect::Auto, "taken for {shown:?}");
            let reported = found
                .reported
                .map(|reported| (reported.usage.input_tokens, reported.usage.output_tokens));
            let expected = usage(wire, &body).map(|(input, output)| (Some(input), Some(output)));
            assert_eq!(reported, expected, "{}", path.display());
            streams += 1;
        }
    }
    assert!(streams > 10, "only {streams} streams were found in {}", folder.display());
}
