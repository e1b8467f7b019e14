//! The coding agent of the demo: one task with a sub-agent, as Codex sends it. Its context grows from
//! turn to turn, one answer breaks off and is asked for again, and the context is compacted once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

use super::client::{Client, Patience};

/// The tenant that the agent works for, one of the traffic.
const TENANT: &str = "initech";
/// Its API key, one of those of the traffic.
const KEY: &str = "demo-initech";
const MODEL: &str = "gpt-5.4";
const PATH: &str = "/v1/responses";
const CLIENT: &str = "codex_exec/0.169.0 (Debian 12; x86_64)";
/// Words of the instructions and tools with which every request begins.
const INSTRUCTIONS_WORDS: usize = 6000;
/// The sub-agent.
const EXPLORER: &str = "explore-tests";

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is answered with a call of this tool.
    Calls(&'static str),
    /// It is answered with text.
    Says,
    /// Its answer breaks off.
    Breaks,
    /// It makes the context shorter: the answer stands for all that was before.
    Compacts,
}

use Fate::{Breaks, Calls, Compacts, Says};

/// One request of the task.
struct Step {
    /// The sub-agent, or the root.
    agent: Option<&'static str>,
    turn: &'static str,
    /// Words that are new in the context: what the user wants, or what a tool found.
    heard: usize,
    /// Words of the answer.
    said: usize,
    prefill_ms: u64,
    fate: Fate,
}

const fn root(turn: &'static str, heard: usize, said: usize, prefill_ms: u64, fate: Fate) -> Step {
    Step { agent: None, turn, heard, said, prefill_ms, fate }
}

const fn explorer(heard: usize, said: usize, prefill_ms: u64, fate: Fate) -> Step {
    Step { agent: Some(EXPLORER), turn: "find-the-cause", heard, said, prefill_ms, fate }
}

/// The whole task.
const STEPS: [Step; 16] = [
    root("look-around", 60, 90, 180, Calls("shell")),
    root("look-around", 2400, 70, 60, Calls("read_file")),
    root("look-around", 3800, 120, 70, Calls("spawn_agent")),
    explorer(180, 60, 90, Calls("shell")),
    explorer(2900, 60, 60, Calls("read_file")),
    explorer(5200, 400, 80, Breaks),
    explorer(0, 80, 90, Calls("read_file")),
    explorer(4100, 350, 80, Says),
    root("fix", 420, 520, 60, Calls("apply_patch")),
    root("fix", 150, 60, 40, Calls("shell")),
    root("fix", 9800, 480, 110, Calls("apply_patch")),
    root("fix", 9100, 60, 120, Calls("shell")),
    root("compact", 40, 640, 130, Compacts),
    root("check", 300, 240, 70, Calls("apply_patch")),
    root("check", 1900, 60, 50, Calls("shell")),
    root("check", 700, 260, 50, Says),
];

/// Works on the task until it is done or stopped.
///
/// Errors: a request fails that should not.
pub(super) async fn run(
    mut client: Client,
    session: String,
    stops: Arc<AtomicBool>,
) -> anyhow::Result<()> {
    let (mut of_root, mut of_explorer) = (Vec::new(), Vec::new());
    for (number, step) in STEPS.iter().enumerate() {
        if stops.load(Ordering::Relaxed) {
            break;
        }
        let context = if step.agent.is_none() { &mut of_root } else { &mut of_explorer };
        if step.heard > 0 {
            let said = json!({"role": "user", "content": words(number, step.heard)});
            context.push(said);
        }
        let answer = client.call(step.request(&session, context)?, Patience::Stays).await;
        match step.fate {
            // The agent asks again with the same context.
            Breaks => continue,
            Compacts => context.clear(),
            Calls(_) | Says => {}
        }
        answer.with_context(|| format!("{TENANT} ({PATH}, request {number} of the session)"))?;
        context.push(json!({"role": "assistant", "content": words(number + 7, step.said)}));
    }
    Ok(())
}

impl Step {
    fn request(&self, session: &str, context: &[Value]) -> anyhow::Result<Request<Full<Bytes>>> {
        let kind = if self.fate == Compacts { "compaction" } else { "turn" };
        let turn = json!({"turn_id": self.turn, "request_kind": kind}).to_string();
        let mut request = Request::post(PATH)
            .header("host", "taximeter.demo")
            .header("authorization", format!("Bearer {KEY}"))
            .header("content-type", "application/json")
            .header("user-agent", CLIENT)
            .header("session-id", session)
            .header("thread-id", self.agent.unwrap_or(session))
            .header("x-codex-turn-metadata", turn)
            .header("x-simulate", self.engine());
        if self.agent.is_some() {
            request = request.header("x-codex-parent-thread-id", session);
        }
        let body = json!({
            "model": MODEL,
            "instructions": words(0, INSTRUCTIONS_WORDS),
            "input": context,
            "stream": true,
            "prompt_cache_key": session,
        });
        Ok(request.body(Full::from(body.to_string()))?)
    }

    /// The settings of the simulated engine.
    fn engine(&self) -> String {
        let (prefill, said) = (self.prefill_ms, self.said);
        let fate = match self.fate {
            Calls(tool) => format!(",tool={tool}"),
            Breaks => ",die_after=20".to_owned(),
            Says | Compacts => String::new(),
        };
        format!(
            "prefix_cache,prefill_ms={prefill},gap_ms=4,jitter_ms=3,chunk_tokens=8,\
             output_tokens={said}{fate}"
        )
    }
}

/// A text with this many words. Texts with other numbers begin with other words.
fn words(number: usize, count: usize) -> String {
    const WORDS: [&str; 13] = [
        "the", "login", "test", "fails", "when", "a", "session", "is", "old", "so", "check", "its",
        "time",
    ];
    let words: Vec<&str> = WORDS.into_iter().cycle().skip(number).take(count).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use taximeter_simulator::{Behaviour, End, Simulator};

    use super::*;

    #[tokio::test]
    async fn the_context_grows_breaks_off_once_and_is_compacted() {
        let engine = Simulator::bind("127.0.0.1:0", Behaviour::default()).await.unwrap();
        let stops = Arc::new(AtomicBool::new(false));
        run(Client::new(engine.addr()), "fix-login".to_owned(), stops).await.unwrap();
        let served = engine.journal();
        assert_eq!(served.len(), STEPS.len());
        let ended: Vec<_> = served.iter().map(|served| served.end == End::Finished).collect();
        assert_eq!(ended, STEPS.map(|step| step.fate != Breaks));
        let input: Vec<_> = served.iter().map(|served| served.input_tokens).collect();
        let at = |fate| STEPS.iter().position(|step| step.fate == fate).unwrap();
        assert_eq!(input[at(Breaks)], input[at(Breaks) + 1], "the same again");
        assert!(input[at(Compacts) + 1] < input[at(Compacts)] / 2, "{input:?}");
        let mut before = [0; 2];
        for (step, input) in STEPS.iter().zip(&input) {
            let before = &mut before[usize::from(step.agent.is_some())];
            assert!(*input >= *before, "{input}");
            *before = if step.fate == Compacts { 0 } else { *input };
        }
        let cached: u64 = served.iter().map(|served| served.cached_tokens).sum();
        assert!(cached * 2 > input.iter().sum::<u64>(), "most of it was sent before");
    }

    #[test]
    fn a_task_that_is_stopped_asks_nothing_more() {
        let nobody = std::net::SocketAddr::from(([127, 0, 0, 1], 9));
        let stops = Arc::new(AtomicBool::new(true));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run(Client::new(nobody), "fix-login".to_owned(), stops)).unwrap();
    }
}
