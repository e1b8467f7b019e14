use super::*;

fn problem(text: &str) -> String {
    match read("overrides", "prices.yaml", text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn probe() {
    for text in [
        "models:\n- model: m\n  rates: {input: 1, output: 2}\n  colour: red\n",
        "models:\n- model: m\n  rates: {input: -1, output: 2}\n",
        "models:\n- model: m\n  rates: {input: 1e-3, output: 2}\n",
        "models:\n- model: m\n  rates: {input: , output: 2}\n",
        "models:\n- model: m\n  rates: {input: 1}\n",
        "models:\n- model: m\n  rates: {input: 1, output: 2}\n- model: m\n  rates: {input: 1, output: 2}\n",
        "currency: EUR\nmodels: []\n",
        "version: 2026-13-20\nmodels: []\n",
        "models:\n- model: m\n  rates: {input: 1, output: 2}\n  tiers: {gold: {input: 1}}\n",
        "models:\n- model: m\n  rates: {input: 1, output: 2}\n  long_context:\n  - over: 5\n    at_least: 6\n    rates: {input: 1}\n",
        "models:\n- model: m\n  rates: {input: 1, output: 2}\n  off_peak:\n    rates: {input: 1}\n    windows:\n    - {days: [mon], hours: [\"22:00-06:00\"]}\n",
        "models:\n- model: m\n  rates: {input: 1, output: [2]}\n",
        "models:\n- model: m\n  rates: {input: 1, input: 3, output: 2}\n",
        "models:\n- rates: {input: 1, output: 2}\n",
        "",
        "models: [\n",
        "models:\n- model: m\n  rates: {input: 0.0000000000000000000000001, output: 2}\n",
        "models:\n- model: m\n  rates: {input: \".\", output: 2}\n",
    ] {
        eprintln!("{}\n", problem(text));
    }
}
