use std::io;
use std::path::PathBuf;

use super::*;

const ENGINE: &str = "\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} NaN
vllm:broken{engine=\"0\" 1
vllm:renamed{engine=\"0\"} 1
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.1\",model_name=\"m\"} 1.0
vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\",model_name=\"m\"} 2.0
vllm:time_to_first_token_seconds_count{engine=\"0\",model_name=\"m\"} 2.0
vllm:time_to_first_token_seconds_sum{engine=\"0\",model_name=\"m\"} 0.35
";

/// What the command prints for `text` on standard input, and whether it says that all is well.
fn printed(text: &str, json: bool) -> (String, ExitCode) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let at = Timestamp::UNIX_EPOCH;
    let code = read_once("-", json, at, &mut text.as_bytes(), &mut out, &mut err).unwrap();
    (String::from_utf8(out).unwrap() + &String::from_utf8(err).unwrap(), code)
}

#[test]
fn each_quantity_has_a_line_and_each_unknown_one_its_reason() {
    let (text, code) = printed(ENGINE, false);
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS));
    for line in [
        "vLLM (engine V1, 0.10 or later), because: names begin with vllm:, label model_name, \
         metric num_requests_running, 3 metrics of its table",
        "7 samples in 11 lines; 1 skipped",
        "L6 taximeter.fleet.engine.requests_running = 3 {request} {gen_ai.request.model=\"m\", \
         engine=\"0\"} from vllm:num_requests_running",
        "L6 taximeter.fleet.engine.kv_cache_usage unknown: its value is NaN",
        "L6 gen_ai.server.time_to_first_token = count 2, sum 0.35 s, p50 0.1, p95 above 0.1 \
         {gen_ai.request.model=\"m\", engine=\"0\"} from vllm:time_to_first_token_seconds",
        "L6 taximeter.fleet.engine.requests_waiting unknown: no vllm:num_requests_waiting",
        "line 5 is skipped: a label is not name=\"value\"",
        "not in the schema: vllm:renamed",
    ] {
        assert!(text.lines().any(|is| is == line), "{line}\n{text}");
    }
}

#[test]
fn the_document_has_the_same() {
    let (text, _) = printed(ENGINE, true);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let quantities = document["quantities"].as_array().unwrap();
    let running = &quantities[0];
    assert_eq!(running["name"], "taximeter.fleet.engine.requests_running");
    assert_eq!(running["value"], 3.0);
    assert_eq!(running["labels"]["gen_ai.request.model"], "m");
    assert_eq!(running["from"], "vllm:num_requests_running");
    let unknown = document["unknown"].as_array().unwrap();
    let usage = unknown.iter().find(|is| is["name"] == "taximeter.fleet.engine.kv_cache_usage");
    assert_eq!(usage.unwrap()["why"], "its value is NaN");
    assert_eq!(document["programs"][0]["name"], "vllm");
    assert_eq!(document["skipped"]["lines"][0]["line"], 5);
    assert_eq!(quantities[1]["value"]["p95"]["above"], 0.1);
}

#[test]
fn what_is_of_no_known_program_ends_with_1() {
    for (text, said) in [
        ("<html></html>", "- is a page in HTML, and not metrics"),
        ("", "- is empty, and not metrics"),
        ("go_goroutines 7\n", "- has no metrics of a program that is read"),
        ("num_requests_running 1\n", "- has no metrics of a program that is read"),
    ] {
        let (text, code) = printed(text, false);
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(1)));
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn names_of_others_cannot_move_the_cursor() {
    let (text, _) =
        printed("vllm:num_requests_running{model_name=\"\u{1b}[2J\\n\u{202e}\"} 1\n", false);
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
}

#[test]
fn a_file_that_is_not_there_is_an_error_that_names_it() {
    let from = PathBuf::from("/nowhere/at.prom").display().to_string();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let fault =
        read_once(&from, false, Timestamp::UNIX_EPOCH, &mut io::empty(), &mut out, &mut err);
    assert!(fault.unwrap_err().to_string().contains("/nowhere/at.prom"));
}
