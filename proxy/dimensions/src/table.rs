//! Which client says what, and where. A row is a place, what stands there, and which dimension that
//! gives. Where several rows give the same dimension, the first one counts that has a good value.
//!
//! The order is: headers that only one client sends, its members of the body, names that many
//! programs use, those of other gateways and of tracing.
//!
//! Source: requests of these clients, read in November 2026: Codex 0.169, Claude Code 2.1 and 2.0,
//! OpenCode 1.18, Kilo 7.7, Copilot CLI 1.0.

use crate::client::Client;
use crate::dimension::Dimension;
use crate::form::{Form, TurnMember};

/// Where a row looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// A header.
    Header(&'static str),
    /// Any header `x-…-session-id` that no row names.
    SessionHeader,
    /// A member of the body: `a` or `a.b`.
    Body(&'static str),
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// Whether it counts for this client only.
    pub(crate) client: Option<Client>,
    pub(crate) at: At,
    pub(crate) gives: Dimension,
    pub(crate) form: Form,
}

/// The header by which OpenCode and Kilo name the session that a sub-agent belongs to. Its own is in
/// the headers of sessions.
pub(crate) const PARENT_SESSION: &str = "x-parent-session-id";
/// The header by which Codex names its session, and others theirs.
pub(crate) const CODEX_SESSION: &str = "session-id";
/// Codex's own notes on a turn: a JSON text with paths and the state of git, and a few names.
const CODEX_TURN: &str = "x-codex-turn-metadata";
/// The member that tells a session of some clients only. Providers advise one value of it for all
/// requests that begin the same.
pub(crate) const CACHE_KEY: &str = "prompt_cache_key";

const fn header(name: &'static str, gives: Dimension) -> Row {
    Row { client: None, at: At::Header(name), gives, form: Form::Name }
}

const fn body(path: &'static str, gives: Dimension) -> Row {
    Row { client: None, at: At::Body(path), gives, form: Form::Name }
}

const fn user(at: At, form: Form) -> Row {
    Row { client: None, at, gives: Dimension::EndUser, form }
}

impl Row {
    const fn of(self, client: Client) -> Self {
        Self { client: Some(client), ..self }
    }

    const fn read(self, form: Form) -> Self {
        Self { form, ..self }
    }
}

use Client::{Codex, Copilot, OpenCode};
use Dimension::{Agent, Kind, ParentAgent, Session, Turn};

/// All rows, in the order in which they count.
pub(crate) const TABLE: &[Row] = &[
    // Claude Code, and the Agent SDKs, which start it. The agent is on calls of sub-agents only.
    header("x-claude-code-session-id", Session),
    header("x-claude-code-agent-id", Agent),
    header("x-claude-code-parent-agent-id", ParentAgent),
    // OpenCode and Kilo. Sub-agents have sessions of their own, and name the one they belong to.
    header(PARENT_SESSION, Session),
    header("x-session-id", Agent).of(OpenCode),
    header("x-session-affinity", Agent).of(OpenCode),
    header("session-id", Agent).of(OpenCode),
    header(PARENT_SESSION, ParentAgent),
    header("x-opencode-request", Turn),
    // Codex. All agents name the session of the root, whose own thread has the same name.
    header(CODEX_SESSION, Session),
    header("thread-id", Agent).of(Codex),
    header("x-codex-parent-thread-id", ParentAgent),
    body("client_metadata.session_id", Session).of(Codex),
    body("client_metadata.thread_id", Agent).of(Codex),
    body("client_metadata.turn_id", Turn).of(Codex),
    header(CODEX_TURN, Session).read(Form::CodexTurn(TurnMember::Session)),
    header(CODEX_TURN, Agent).read(Form::CodexTurn(TurnMember::Thread)),
    header(CODEX_TURN, Turn).read(Form::CodexTurn(TurnMember::Turn)),
    header(CODEX_TURN, Kind).read(Form::CodexTurn(TurnMember::Kind)),
    body(CACHE_KEY, Session).of(Codex),
    // Copilot CLI with a provider of its own.
    header("x-interaction-type", Agent).read(Form::Subagent).of(Copilot),
    header("x-initiator", Agent).read(Form::Nothing).of(Copilot),
    body(CACHE_KEY, Session).of(Copilot),
    // Claude Code's member, in its newer and its older form.
    body("metadata.user_id", Session).read(Form::ClaudeSession),
    // Names that many programs use.
    header("x-opencode-session", Session),
    header("x-session-id", Session),
    Row { client: None, at: At::SessionHeader, gives: Session, form: Form::Name },
    header("session_id", Session),
    header("x-session-affinity", Session),
    header("x-conversation-id", Session),
    header("x-agent-id", Agent),
    header("x-agent-name", Agent),
    header("x-parent-agent-id", ParentAgent),
    header("x-turn-id", Turn),
    body("client_metadata.session_id", Session),
    body("metadata.session_id", Session),
    body("metadata.sessionId", Session),
    body("metadata.conversation_id", Session),
    body("metadata.thread_id", Session),
    body("session_id", Session),
    body("metadata.agent_id", Agent),
    body("metadata.agent_name", Agent),
    body("metadata.parent_agent_id", ParentAgent),
    body("metadata.turn_id", Turn),
    // Other gateways, and tracing.
    header("x-litellm-session-id", Session),
    body("litellm_session_id", Session),
    header("helicone-session-id", Session),
    header("helicone-session-path", Agent),
    header("x-portkey-trace-id", Session),
    header("langfuse_session_id", Session),
    body("metadata.langfuse_session_id", Session),
    header("x-litellm-trace-id", Session),
    header("baggage", Session).read(Form::Baggage("session.id")),
    // End users. The provider's own member comes first.
    user(At::Body("safety_identifier"), Form::EndUser),
    user(At::Body("user"), Form::EndUser),
    user(At::Body("metadata.user_id"), Form::AnthropicUser),
    user(At::Body("metadata.end_user_id"), Form::EndUser),
    user(At::Header("x-end-user-id"), Form::EndUser),
    user(At::Header("x-user-id"), Form::EndUser),
    user(At::Header("helicone-user-id"), Form::EndUser),
    user(At::Header("langfuse_user_id"), Form::EndUser),
    user(At::Header("x-openwebui-user-id"), Form::EndUser),
];
