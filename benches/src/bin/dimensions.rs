//! What it costs to find a request's session, agent, turn, client and end user.
//!
//! `dimensions` prints a row for each kind of request: instructions by callgrind and allocations by
//! DHAT, of all that is done for dimensions before a request is sent. That is reading its headers,
//! noting members of its body beside what is read of it anyway, and making the dimensions of both.
//! `benches/run --only dimensions` builds and starts it. It starts itself again to be counted:
//!   count REQUEST TIMES      does it so often
//!   without REQUEST TIMES    reads the body alone

use std::hint::black_box;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use taximeter_benches::{callgrind, say};
use taximeter_dimensions::{Hasher, Names, Place, Settings};
use taximeter_meter::Wire;
use taximeter_request::RequestReader;

/// Requests of the two runs of which the difference is told.
const TIMES: [u32; 2] = [1_000, 3_000];

/// What a client sends, besides the headers that all send.
struct Request {
    name: &'static str,
    headers: &'static [(&'static str, &'static str)],
    /// Members of its body, besides those that all have.
    members: &'static str,
}

/// What every client sends.
const HEADERS: [(&str, &str); 6] = [
    ("host", "taximeter:8080"),
    ("accept", "application/json"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("authorization", "Bearer sk-0123456789abcdef0123456789abcdef"),
    ("content-type", "application/json"),
    ("content-length", "400"),
];

const REQUESTS: [Request; 7] = [
    Request { name: "nothing", headers: &[("user-agent", "curl/8.5.0")], members: "" },
    Request { name: "a client", headers: &[("user-agent", "OpenAI/Python 3.57.0")], members: "" },
    Request {
        name: "a session",
        headers: &[
            ("user-agent", "OpenAI/Python 3.57.0"),
            ("x-session-id", "0198c0de-1111-7222-8333-444455556666"),
        ],
        members: "",
    },
    Request {
        name: "Codex, a sub-agent",
        headers: &[
            (
                "user-agent",
                "codex_exec/0.169.0 (Debian 12.0.0; x86_64) unknown (codex_exec; 0.169.0)",
            ),
            ("originator", "codex_exec"),
            ("session-id", "0198c0de-1111-7222-8333-444455556666"),
            ("thread-id", "0198c0de-7777-7222-8333-444455556666"),
            ("x-client-request-id", "0198c0de-7777-7222-8333-444455556666"),
            ("x-codex-parent-thread-id", "0198c0de-1111-7222-8333-444455556666"),
            ("x-openai-subagent", "collab_spawn"),
            (
                "x-codex-turn-metadata",
                r#"{"turn_id":"0198c0de-8888","workspaces":{"/home/a/p":{}},"request_kind":"turn"}"#,
            ),
        ],
        members: r#","prompt_cache_key":"0198c0de-1111-7222-8333-444455556666",
            "client_metadata":{"session_id":"0198c0de-1111-7222-8333-444455556666",
            "turn_id":"0198c0de-8888"}"#,
    },
    Request {
        name: "Claude Code, a sub-agent",
        headers: &[
            ("user-agent", "claude-cli/2.1.331 (external, sdk-cli)"),
            ("x-app", "cli"),
            ("x-claude-code-session-id", "0198c0de-1111-7222-8333-444455556666"),
            ("x-claude-code-agent-id", "a-2"),
            ("x-claude-code-parent-agent-id", "a-1"),
        ],
        members: r#","metadata":{"user_id":"{\"device_id\":\"d\",\"account_uuid\":\"a\",\"session_id\":\"0198c0de-1111-7222-8333-444455556666\"}"}"#,
    },
    Request {
        name: "OpenCode, a sub-agent",
        headers: &[
            ("user-agent", "opencode/1.18.33 ai-sdk/provider-utils/4.0.0 runtime/bun/1.3.0"),
            ("x-session-id", "ses_2"),
            ("x-session-affinity", "ses_2"),
            ("session-id", "ses_2"),
            ("x-parent-session-id", "ses_1"),
        ],
        members: "",
    },
    Request {
        name: "a session, an end user, tags",
        headers: &[
            ("user-agent", "OpenAI/Python 3.57.0"),
            ("session-id", "0198c0de-1111-7222-8333-444455556666"),
            ("x-team", "search"),
            ("x-feature", "completion"),
        ],
        members: r#","user":"anna@example.org""#,
    },
];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => print_all(),
        ["count", name, times] => count(request(name)?, times.parse()?, true),
        ["without", name, times] => count(request(name)?, times.parse()?, false),
        _ => bail!("usage: dimensions [count|without REQUEST TIMES]"),
    }
}

fn request(name: &str) -> Result<&'static Request> {
    REQUESTS.iter().find(|request| request.name == name).context("no such request")
}

fn print_all() -> Result<()> {
    say(&format!("{:<32}{:>14}{:>14}", "a request says", "instructions", "allocations"));
    for Request { name, .. } in &REQUESTS {
        let each = |how: fn(&Command) -> Result<f64>| {
            Ok::<_, anyhow::Error>(one(how, "count", name)? - one(how, "without", name)?)
        };
        let (instructions, blocks) =
            (each(callgrind::instructions)?, each(callgrind::allocations)?);
        say(&format!("{name:<32}{instructions:>14.0}{blocks:>14.1}"));
    }
    Ok(())
}

/// What one more request takes.
fn one(how: fn(&Command) -> Result<f64>, what: &str, name: &str) -> Result<f64> {
    let [few, many] = TIMES;
    let of = |times: u32| {
        let mut program = Command::new(std::env::current_exe()?);
        program.args([what, name, &times.to_string()]);
        how(&program)
    };
    Ok((of(many)? - of(few)?) / f64::from(many - few))
}

fn settings() -> Result<Settings> {
    let place = |name: &str| Ok::<_, anyhow::Error>(vec![Place::header(name)?]);
    let tags = [("team", "x-team"), ("feature", "x-feature")];
    let tags = tags.into_iter().map(|(name, of)| Ok((name.to_owned(), place(of)?)));
    Ok(Settings {
        tags: tags.collect::<Result<_>>()?,
        hasher: Some(Hasher::new(b"0123456789abcdef0123456789abcdef")?),
        ..Settings::default()
    })
}

/// Reads the request so often, with or without what finds its dimensions.
fn count(request: &Request, times: u32, with: bool) -> Result<()> {
    let names = Names::new(&settings()?);
    let headers: Vec<_> = HEADERS.iter().chain(request.headers).copied().collect();
    let prose = "Say what a taximeter counts, and why a passenger should trust it. ".repeat(4);
    let body = format!(
        r#"{{"model":"gpt-5.4","max_tokens":64,"stream":true,"messages":[{{"role":"user","content":"{prose}"}}]{}}}"#,
        request.members
    );
    for _ in 0..times {
        let mut reader = RequestReader::json(Wire::ChatCompletions);
        if with {
            let sent = black_box(&headers).iter().map(|(name, value)| (*name, value.as_bytes()));
            let reading = names.read_headers(sent);
            reader.note(reading.noted().clone());
            reader.push(body.as_bytes()).ok().context("a body")?;
            let facts = reader.finish().ok().context("a body")?;
            black_box(reading.finish(&facts.notes, facts.user.as_deref()));
        } else {
            reader.push(body.as_bytes()).ok().context("a body")?;
            black_box(reader.finish().ok().context("a body")?);
        }
    }
    Ok(())
}
