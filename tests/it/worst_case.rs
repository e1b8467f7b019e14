//! What is reserved for a request: its worst case, as far as its own limits tell one.

use taximeter_ledger::Entry;

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::Gateway;
use crate::http::json_answer;
use crate::segments::{read, segments};

/// USD for a token of output of the model that `CHAT` asks for.
const OUTPUT_PRICE: f64 = 0.000_000_6;

/// The amount that the latest reservation holds back.
fn reserved(gateway: &Gateway) -> Option<f64> {
    let entries = segments(&gateway.data_dir()).into_iter().flat_map(|path| read(&path));
    let mut reserves = entries.filter_map(|framed| match framed.entry() {
        Ok(Entry::Reserve(reserve)) => Some(reserve),
        _ => None,
    });
    let amount = reserves.next_back().expect("a reservation").amount?;
    Some(amount.to_string().parse().expect("an amount"))
}

#[test]
fn a_limit_that_only_the_engine_can_judge_passes_and_reserves_no_wrong_amount() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for (members, tokens) in [
        (r#""max_tokens":100"#, Some(100.0)),
        (r#""max_tokens":100.0,"n":1.0"#, Some(100.0)),
        (r#""max_tokens":99.5"#, Some(100.0)),
        (r#""max_completion_tokens":100,"max_tokens":1"#, Some(100.0)),
        (r#""max_tokens":100,"n":2,"best_of":3"#, Some(300.0)),
        (r#""max_tokens":100,"n_predict":200"#, Some(200.0)),
        (r#""max_tokens":99999999999"#, Some(99_999_999_999.0)),
        (r#""max_tokens":-1"#, None),
        (r#""max_tokens":0"#, None),
        (r#""max_tokens":-1.5"#, None),
        (r#""max_tokens":null"#, None),
        (r#""max_output_tokens":-1"#, None),
        (r#""max_tokens":100,"n_predict":-1"#, None),
        (r#""max_completion_tokens":-1,"max_tokens":100"#, None),
        (r#""max_tokens":100,"n":-1"#, None),
        (r#""max_tokens":100,"n":0"#, None),
        (r#""max_tokens":100,"best_of":-1"#, None),
    ] {
        let body = CHAT.replacen('{', &format!("{{{members},"), 1);
        let mut client = gateway.chat("Connection: close\r\n", &body);
        let (mut connection, request) = engine.request();
        let amount = reserved(&gateway);
        assert_eq!(request.text(), body);
        match tokens {
            None => assert_eq!(amount, None, "{members}"),
            Some(tokens) => {
                let output = tokens * OUTPUT_PRICE;
                let amount = amount.unwrap_or_else(|| panic!("nothing is reserved: {members}"));
                // At the price of its dearest service tier, and with a short prompt.
                assert!(output < amount && amount < 2.0 * output + 0.001, "{members}: {amount}");
            }
        }
        connection.send(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200, "{members}");
    }
    assert!(gateway.records().iter().all(|record| record["cost"]["amount"] == "0.00018"));
}
