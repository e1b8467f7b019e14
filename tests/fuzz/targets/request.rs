//! A request's body in any bytes and any reads: nothing panics, where reads end means nothing, what
//! is taken is JSON, and a splice leaves it JSON that asks for usage.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use taximeter_meter::{Dialect, UsageAsk, Wire};
use taximeter_request::{RequestFacts, RequestFault, RequestReader, prompt_text};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_last() else { return };
    let Some((&step, body)) = rest.split_last() else { return };
    let wire = Wire::ALL[usize::from(choice) % Wire::ALL.len()];

    let whole = read(wire, body, body.len().max(1));
    assert_eq!(whole, read(wire, body, usize::from(step) % 37 + 1));
    let _ = prompt_text(wire, None, body);
    let Ok(facts) = whole else { return };
    // serde_json refuses what is nested deeper than 127, lone surrogates and numbers beyond f64.
    let Ok(Value::Object(members)) = serde_json::from_slice(body) else { return };
    assert_eq!(members.get("model").and_then(Value::as_str), facts.model.as_deref());
    for ask in [UsageAsk::Final, UsageAsk::Continuous, UsageAsk::TokenIds] {
        let question = facts.question(Dialect::Vllm, ask);
        let mut spliced = body.to_vec();
        for splice in question.splices.iter().rev() {
            let range = splice.range.start as usize..splice.range.end as usize;
            spliced.splice(range, splice.text.iter().copied());
        }
        let spliced: Value = serde_json::from_slice(&spliced).expect("a splice breaks no JSON");
        if question.hidden.usage_event {
            assert_eq!(spliced["stream_options"]["include_usage"], Value::Bool(true));
        }
    }
});

fn read(wire: Wire, body: &[u8], step: usize) -> Result<RequestFacts, RequestFault> {
    let mut reader = RequestReader::json(wire);
    for part in body.chunks(step) {
        reader.push(part)?;
    }
    reader.finish()
}
