//! The table for people.

use jiff::SignedDuration;
use taximeter_ledger::{End, RequestKind};

use crate::fixtures::{cost, of_agent, session};
use crate::request::Price;
use crate::{Request, table};

/// A root with two sub-agents, a retry and a compaction.
fn task() -> Vec<Request> {
    let root = |number, turn: &str| Request {
        turn: Some(turn.to_owned()),
        ..of_agent(number, "root", None)
    };
    let sub = |number, agent, turn: &str| Request {
        turn: Some(turn.to_owned()),
        ..of_agent(number, agent, Some("root"))
    };
    let mut failed = sub(2, "search", "s-1");
    (failed.end, failed.status) = (End::UpstreamError, Some(502));
    failed.price = cost("1.5");
    let mut compaction = root(5, "t-2");
    compaction.kind = Some(RequestKind::Compaction);
    compaction.price = cost("0.75");
    let mut dear = sub(4, "write", "w-1");
    dear.price = cost("8");
    (dear.input_tokens, dear.cache_read_input_tokens) = (Some(180_000), Some(9_000));
    dear.longest_stall = Some(4.5);
    dear.tools = [("exec".to_owned(), 3)].into();
    dear.ended_at = dear.started_at + SignedDuration::from_secs(2 * 3600 + 60);
    vec![root(1, "t-1"), failed, sub(3, "search", "s-1"), dear, compaction, root(6, "t-2")]
}

#[test]
fn the_first_lines_say_what_made_it_dear() {
    let text = table(&session(task()), 100);
    let first: Vec<_> = text.lines().take(14).collect();
    let expected = "\
Session s-1 of acme: 11.00 USD for 6 requests in 2 h 1 min
2026-11-20 09:00:01 UTC to 2026-11-20 11:01:04 UTC · codex/0.169 · m · 3 agents, 4 turns

Dearest agent  write: 8.00 USD (73 %), 1 request in 1 turn
Dearest turn   3 of write: 8.00 USD (73 %), context 180,000, 5 % from the cache
Tokens         185,000 in, 7 % from the cache, 60 out; largest input 180,000
Waste          2.25 USD (20 %) in 2 requests

waste       requests                                 input  cost (USD)
──────────────────────────────────────────────────────────────────────
retried     1: 00000000-0000-0000-0000-000000000002  1,000        1.50
compaction  1: 00000000-0000-0000-0000-000000000005  1,000        0.75
──────────────────────────────────────────────────────────────────────
total                                                2,000        2.25";
    assert_eq!(first.join("\n"), expected);
    let tree = "\
agent     turns  requests    input  cached  output  cost (USD)  with those below
────────────────────────────────────────────────────────────────────────────────
root          2         3    3,000    90 %      30        1.25             11.00
  search      1         2    2,000    90 %      20        1.75              1.75
  write       1         1  180,000     5 %      10        8.00              8.00
────────────────────────────────────────────────────────────────────────────────
total         4         6  185,000     7 %      60       11.00             11.00
";
    assert!(text.contains(tree), "{text}");
    for line in [
        "root    4 t-2 (compaction)         2    1,000      +0    90 %      20       0.50 s        1.00\n",
        "Longest stalls: 4.50 s in 00000000-0000-0000-0000-000000000004.\n",
        "Tools: exec × 3.\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn a_cost_that_is_known_in_part_is_at_least_so_much() {
    let mut all = task();
    all[0].price.is_whole = false;
    all[5].price = Price::default();
    let text = table(&session(all), 100);
    assert!(text.starts_with("Session s-1 of acme: ≥10.75 USD for 6 requests"), "{text}");
    assert!(
        text.ends_with("≥ means at least: the cost of 2 requests is unknown or known in part.\n")
    );
    let mut nothing = of_agent(1, "root", None);
    (nothing.price, nothing.input_tokens) = (Price::default(), None);
    let text = table(&session([nothing]), 100);
    assert!(text.starts_with("Session s-1 of acme: unknown cost for 1 request in 1 s\n"), "{text}");
    assert!(text.contains("Tokens         unknown in, unknown from the cache, 10 out\n"), "{text}");
}
