//! Embeddings, which are never streamed.

use std::fmt::Write;

use crate::ask::Ask;
use crate::job::Job;

/// Numbers in an embedding when the request names none.
const DIMENSIONS: usize = 16;
/// Most numbers in an embedding.
const DIMENSIONS_MAX: usize = 4096;

/// The whole answer: one embedding for each input.
pub(crate) fn whole(job: &Job, ask: &Ask) -> String {
    let Job { id, created, model_json, input, .. } = job;
    let dimensions = ask.dimensions.unwrap_or(DIMENSIONS).min(DIMENSIONS_MAX);
    let embedding = embedding(job.seed, dimensions, ask.base64());
    let mut data = String::new();
    for index in 0..ask.inputs() {
        let comma = if index > 0 { "," } else { "" };
        // Memory cannot refuse to be written to.
        _ = write!(
            data,
            r#"{comma}{{"index":{index},"object":"embedding","embedding":{embedding}}}"#
        );
    }
    let usage = if job.behaviour.no_usage {
        String::new()
    } else {
        format!(
            r#","usage":{{"prompt_tokens":{input},"total_tokens":{input},"completion_tokens":0,
               "prompt_tokens_details":null}}"#
        )
    };
    format!(
        r#"{{"id":"{id}","object":"list","created":{created},"model":{model_json},
           "data":[{data}]{usage}}}"#
    )
}

fn embedding(seed: u64, dimensions: usize, as_base64: bool) -> String {
    let numbers = (0..dimensions).map(|index| {
        // Sixteenths are exact in binary, so both encodings say the same number.
        let sixteenths = (seed.wrapping_add(index as u64).wrapping_mul(7) % 31) as i16 - 15;
        f32::from(sixteenths) / 16.0
    });
    if as_base64 {
        let bytes: Vec<u8> = numbers.flat_map(f32::to_le_bytes).collect();
        return format!(r#""{}""#, base64(&bytes));
    }
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    format!("[{}]", numbers.join(","))
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        for place in 0..4 {
            let sextet = (bits >> (18 - 6 * place)) & 63;
            match ALPHABET.get(sextet as usize) {
                Some(letter) if place <= group.len() => text.push(char::from(*letter)),
                _ => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
