//! Requests that say what they are part of, and finding it.

use std::hint::black_box;

use anyhow::{Context as _, Result, bail};
use taximeter_dimensions::{Hasher, Names, Place, Settings};
use taximeter_meter::Wire;
use taximeter_request::RequestReader;

/// What a client sends, besides the headers that all send.
pub struct Request {
    /// What it says.
    pub name: &'static str,
    headers: &'static [(&'static str, &'static str)],
    /// Members of its body, besides those that all have.
    members: &'static str,
    /// What of it is hashed.
    pub hashed: Option<&'static str>,
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

/// All of them.
pub const REQUESTS: [Request; 7] = [
    Request {
        name: "nothing",
        headers: &[("user-agent", "curl/8.5.0")],
        members: "",
        hashed: None,
    },
    Request {
        name: "a client",
        headers: &[("user-agent", "OpenAI/Python 3.57.0")],
        members: "",
        hashed: None,
    },
    Request {
        name: "a session",
        headers: &[
            ("user-agent", "OpenAI/Python 3.57.0"),
            ("x-session-id", "0198c0de-1111-7222-8333-444455556666"),
        ],
        members: "",
        hashed: None,
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
        hashed: None,
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
        hashed: None,
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
        hashed: None,
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
        hashed: Some("anna@example.org"),
    },
];

/// What is done so often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// A request's body is read.
    Body,
    /// A request's body is read, and what it is part of is found.
    Dimensions,
    /// What of it is hashed is hashed, and nothing else.
    Hashes,
}

impl Work {
    /// The work with this name.
    ///
    /// Errors: there is none.
    pub fn named(name: &str) -> Result<Self> {
        let known = [Self::Body, Self::Dimensions, Self::Hashes];
        known.into_iter().find(|work| work.as_str() == name).context("no such work")
    }

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Dimensions => "dimensions",
            Self::Hashes => "hashes",
        }
    }
}

/// Does the work of the arguments: its name, that of a request, and how often.
///
/// Errors: they are other ones.
pub fn run(arguments: &[&str]) -> Result<()> {
    let [work, name, times] = arguments else { bail!("usage: WORK REQUEST TIMES") };
    let request = REQUESTS.iter().find(|request| request.name == *name);
    let (work, request) = (Work::named(work)?, request.context("no such request")?);
    let settings = settings()?;
    let names = Names::new(&settings);
    let headers: Vec<_> = HEADERS.iter().chain(request.headers).copied().collect();
    let prose = "Say what a taximeter counts, and why a passenger should trust it. ".repeat(4);
    let body = format!(
        r#"{{"model":"gpt-5.4","max_tokens":64,"stream":true,"messages":[{{"role":"user","content":"{prose}"}}]{}}}"#,
        request.members
    );
    for _ in 0..times.parse()? {
        let mut reader = RequestReader::json(Wire::ChatCompletions);
        match work {
            Work::Dimensions => {
                let sent =
                    black_box(&headers).iter().map(|(name, value)| (*name, value.as_bytes()));
                let reading = names.read_headers(sent);
                reader.note(reading.noted().clone());
                reader.push(body.as_bytes()).ok().context("a body")?;
                let facts = reader.finish().ok().context("a body")?;
                black_box(reading.finish(&facts.notes, facts.user.as_deref()));
            }
            Work::Body => {
                reader.push(body.as_bytes()).ok().context("a body")?;
                black_box(reader.finish().ok().context("a body")?);
            }
            Work::Hashes => {
                let hashed = black_box(request.hashed).zip(names.hasher());
                black_box(hashed.map(|(name, hasher)| hasher.end_user(name)));
            }
        }
    }
    Ok(())
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
