use std::collections::HashSet;

use super::*;

#[test]
fn names_become_prometheus_names_by_the_specification() {
    for (instrument, name) in [
        (Instrument::TokenUsage, "gen_ai_client_token_usage"),
        (Instrument::OperationDuration, "gen_ai_client_operation_duration_seconds"),
        (Instrument::TimePerOutputChunk, "gen_ai_client_operation_time_per_output_chunk_seconds"),
        (Instrument::InferenceInputTokens, "gen_ai_client_inference_usage_input_tokens"),
        (Instrument::ServerTimeToFirstToken, "gen_ai_server_time_to_first_token_seconds"),
        (Instrument::HttpServerRequestDuration, "http_server_request_duration_seconds"),
        (Instrument::Cost, "taximeter_cost"),
        (Instrument::RequestsOpen, "taximeter_requests_open"),
        (Instrument::StoreLag, "taximeter_store_lag"),
        (Instrument::ProcessCpuTime, "process_cpu_time_seconds"),
        (Instrument::ProcessMemory, "process_memory_usage_bytes"),
        (Instrument::ProcessFiles, "process_open_fds"),
    ] {
        assert_eq!(instrument.spec().prometheus(), name);
    }
}

#[test]
fn every_name_is_there_once_every_bound_rises_and_every_key_is_in_the_table() {
    let names: HashSet<_> = Instrument::ALL.iter().map(|i| i.spec().prometheus()).collect();
    assert_eq!(names.len(), Instrument::ALL.len());
    for instrument in Instrument::ALL {
        let spec = instrument.spec();
        assert_eq!(Instrument::named(spec.name), Some(*instrument));
        if let InstrumentKind::Histogram(bounds) = spec.kind {
            assert!(bounds.is_sorted(), "{instrument:?}");
        }
        for key in spec.attributes.concat() {
            assert!(key::ALL.iter().any(|(known, ..)| *known == key), "{instrument:?}: {key}");
        }
    }
}
