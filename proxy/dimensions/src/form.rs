//! How a text says a dimension.

use std::borrow::Cow;

use taximeter_json::{Malformed, Reader, Text};

use crate::value::{Dropped, END_USER_BYTES_MAX, TAG_BYTES_MAX, name, text};

/// How a text says a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// It is a name.
    Name,
    /// It is an end user of any alphabet.
    EndUser,
    /// It is the value of a tag, of any alphabet.
    Tag,
    /// It is what Codex notes on a turn, of which a member says the dimension.
    CodexTurn(TurnMember),
    /// It is Claude Code's `metadata.user_id`, which contains a session.
    ClaudeSession,
    /// It is an end user, unless it is Claude Code's.
    AnthropicUser,
    /// It is W3C baggage with an entry that is a name.
    Baggage(&'static str),
    /// It says whether a sub-agent asks.
    Subagent,
    /// That it is there says which client asks, and nothing more.
    Nothing,
}

/// How a client says in words that a sub-agent asks.
pub(crate) const SUBAGENT: &str = "subagent";

/// The text of a dimension, or none.
type Value<'a> = Result<Option<Cow<'a, str>>, Dropped>;

impl Form {
    /// What `given` says.
    ///
    /// # Errors
    /// It cannot be taken.
    pub(crate) fn read(self, given: &str) -> Value<'_> {
        match self {
            Self::Name => borrowed(name(given)),
            Self::EndUser => borrowed(text(given, END_USER_BYTES_MAX)),
            Self::Tag => borrowed(text(given, TAG_BYTES_MAX)),
            Self::CodexTurn(member) => CodexTurn::read(given.as_bytes())?.member(member),
            Self::ClaudeSession => claude_session(given),
            Self::AnthropicUser if is_claude_codes(given) => Ok(None),
            Self::AnthropicUser => borrowed(text(given, END_USER_BYTES_MAX)),
            Self::Baggage(entry) => borrowed(baggage(given, entry).map_or(Ok(None), name)),
            Self::Subagent => Ok(given.ends_with(SUBAGENT).then_some(Cow::Borrowed(SUBAGENT))),
            Self::Nothing => Ok(None),
        }
    }
}

fn borrowed(read: Result<Option<&str>, Dropped>) -> Value<'_> {
    Ok(read?.map(Cow::Borrowed))
}

/// Checks a name that may be our copy.
fn named(given: Option<Cow<'_, str>>) -> Value<'_> {
    let Some(given) = given else { return Ok(None) };
    Ok(name(&given)?.is_some().then_some(given))
}

/// The word of what a request is for, where that is not the next turn.
fn kind(word: &str) -> Option<Cow<'static, str>> {
    match word {
        "prewarm" => Some("prewarm".into()),
        "compact" | "compaction" => Some("compaction".into()),
        "title" => Some("title".into()),
        _ => None,
    }
}

/// A member of what Codex notes on a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnMember {
    Session,
    Thread,
    Turn,
    Kind,
}

/// What Codex notes on a turn: a JSON object that is read once for all of these members.
pub(crate) struct CodexTurn<'a>([Member<'a>; 4]);

impl<'a> CodexTurn<'a> {
    /// # Errors
    /// It is no JSON object.
    pub(crate) fn read(json: &'a [u8]) -> Result<Self, Dropped> {
        let key = |key: &[u8]| match key {
            b"session_id" => Some(TurnMember::Session as usize),
            b"thread_id" => Some(TurnMember::Thread as usize),
            b"turn_id" => Some(TurnMember::Turn as usize),
            b"request_kind" => Some(TurnMember::Kind as usize),
            _ => None,
        };
        members(json, key).map(Self)
    }

    /// What a member says.
    ///
    /// # Errors
    /// It cannot be taken.
    pub(crate) fn member(&self, member: TurnMember) -> Value<'a> {
        let found = self.0.get(member as usize).copied().unwrap_or(Member::Nothing);
        match member {
            TurnMember::Session | TurnMember::Thread | TurnMember::Turn => named(found.text()?),
            TurnMember::Kind => Ok(found.text()?.and_then(|it| kind(&it))),
        }
    }
}

/// What stands under a key of a JSON object.
#[derive(Clone, Copy)]
enum Member<'a> {
    /// No text.
    Nothing,
    /// This text, as it is written.
    Text(Text<'a>),
    /// Texts that are not the same.
    Several,
}

impl<'a> Member<'a> {
    fn and(self, text: Text<'a>) -> Self {
        match self {
            Self::Nothing => Self::Text(text),
            // What is written in two ways is compared by what it means.
            Self::Text(before) if before == text || before.decode() == text.decode() => self,
            Self::Text(_) | Self::Several => Self::Several,
        }
    }

    fn text(self) -> Value<'a> {
        match self {
            Self::Nothing => Ok(None),
            Self::Text(text) => text.decode_strictly().map(Some).ok_or(Dropped::NoJson),
            Self::Several => Err(Dropped::Disagreement),
        }
    }
}

/// The members of a JSON object whose keys have a number. Nothing else is taken of the object.
fn members<const N: usize>(
    json: &[u8],
    number: impl Fn(&[u8]) -> Option<usize>,
) -> Result<[Member<'_>; N], Dropped> {
    let mut found = [Member::Nothing; N];
    let read = Reader::new(json).document(|key, value| {
        let Some(found) = number(key).and_then(|number| found.get_mut(number)) else {
            return value.skip();
        };
        if let Some(text) = value.text()? {
            *found = found.and(text);
        }
        Ok(())
    });
    read.map_err(|Malformed| Dropped::NoJson)?;
    Ok(found)
}

/// What stands before the session in the older form of Claude Code's `user_id`.
const BEFORE_SESSION: &str = "_session_";

/// Whether a `user_id` is Claude Code's: it contains a device and an account.
fn is_claude_codes(user_id: &str) -> bool {
    let is_older = || user_id.starts_with("user_") && user_id.contains(BEFORE_SESSION);
    user_id.trim_start().starts_with('{') || is_older()
}

fn claude_session(user_id: &str) -> Value<'_> {
    if !is_claude_codes(user_id) {
        return Ok(None);
    }
    match user_id.strip_prefix("user_").and_then(|it| it.rsplit_once(BEFORE_SESSION)) {
        Some((_, session)) => borrowed(name(session)),
        None => {
            let session = |key: &[u8]| (key == b"session_id").then_some(0);
            let [session] = members(user_id.as_bytes(), session)?;
            named(session.text()?)
        }
    }
}

/// An entry of W3C baggage, without its properties.
fn baggage<'a>(all: &'a str, entry: &str) -> Option<&'a str> {
    let value = |member: &'a str| {
        let (key, value) = member.split_once('=')?;
        let value = value.split(';').next().unwrap_or_default();
        (key.trim() == entry).then_some(value.trim())
    };
    all.split(',').find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: Form, given: &str) -> Result<Option<String>, Dropped> {
        form.read(given).map(|read| read.map(Cow::into_owned))
    }

    fn some(text: &str) -> Result<Option<String>, Dropped> {
        Ok(Some(text.to_owned()))
    }

    #[test]
    fn of_claude_codes_user_only_the_session_is_taken() {
        let json = r#"{"device_id":"d","account_uuid":"a","session_id":"s-1"}"#;
        assert_eq!(read(Form::ClaudeSession, json), some("s-1"));
        assert_eq!(read(Form::AnthropicUser, json), Ok(None));
        let older = "user_0f_account_11_session_s-1";
        assert_eq!(read(Form::ClaudeSession, older), some("s-1"));
        assert_eq!(read(Form::AnthropicUser, older), Ok(None));
        for other in ["anna@example.org", "user_1", "user-_session_x"] {
            assert_eq!(read(Form::ClaudeSession, other), Ok(None));
            assert_eq!(read(Form::AnthropicUser, other), some(other));
        }
        assert_eq!(read(Form::ClaudeSession, "{}"), Ok(None));
        assert_eq!(read(Form::ClaudeSession, r#"{"session_id":7}"#), Ok(None));
        for (broken, why) in [
            ("{", Dropped::NoJson),
            (r#"{"session_id":"s""#, Dropped::NoJson),
            (r#"{"session_id":"s"} more"#, Dropped::NoJson),
            (r#"{"session_id":"\u12"}"#, Dropped::NoJson),
            (r#"{"session_id":"a b"}"#, Dropped::Characters),
            (r#"{"session_id":"a","session_id":"b"}"#, Dropped::Disagreement),
            ("user_1_account_2_session_a b", Dropped::Characters),
        ] {
            assert_eq!(read(Form::ClaudeSession, broken), Err(why), "{broken}");
            assert_eq!(read(Form::AnthropicUser, broken), Ok(None), "{broken}");
        }
    }

    #[test]
    fn of_a_json_text_only_the_named_member_is_taken() {
        let turn = r#"{"workspaces":{"/home/anna":{"session_id":"no"}},"turn_id":"t\u002d1",
            "request_kind":"prewarm"}"#;
        let [of_session, of_thread, of_turn, of_kind] =
            [TurnMember::Session, TurnMember::Thread, TurnMember::Turn, TurnMember::Kind]
                .map(Form::CodexTurn);
        assert_eq!(read(of_turn, turn), some("t-1"));
        assert_eq!(read(of_session, turn), Ok(None));
        assert_eq!(read(of_kind, turn), some("prewarm"));
        for kind in ["turn", "", "other"] {
            let turn = format!(r#"{{"request_kind":"{kind}"}}"#);
            assert_eq!(read(of_kind, &turn), Ok(None));
        }
        assert_eq!(read(of_turn, "[]"), Err(Dropped::NoJson));
        assert_eq!(read(of_kind, "no"), Err(Dropped::NoJson));
        // A member that cannot be taken leaves the others as they are.
        let turn = r#"{"session_id":"a","thread_id":"\x","session_id":"\u0061","turn_id":"t",
            "request_kind":7,"turn_id":"u"}"#;
        assert_eq!(read(of_session, turn), some("a"));
        assert_eq!(read(of_thread, turn), Err(Dropped::NoJson));
        assert_eq!(read(of_turn, turn), Err(Dropped::Disagreement));
        assert_eq!(read(of_kind, turn), Ok(None));
    }

    #[test]
    fn an_entry_of_baggage_has_no_properties() {
        let session = Form::Baggage("session.id");
        assert_eq!(read(session, "a=b, session.id = s1;ttl=3 ,c=d"), some("s1"));
        assert_eq!(read(session, "session.idx=s1,xsession.id=s2"), Ok(None));
        assert_eq!(read(session, "session.id=a%20b"), Err(Dropped::Characters));
        assert_eq!(read(session, ""), Ok(None));
    }

    #[test]
    fn a_sub_agent_of_copilot_is_told_from_its_conversation() {
        assert_eq!(read(Form::Subagent, "conversation-subagent"), some("subagent"));
        assert_eq!(read(Form::Subagent, "conversation-agent"), Ok(None));
    }
}
