//! Finds what a request says of a context that it does not contain: an earlier response, a
//! conversation, a stored prompt, cached content.

use taximeter_json::Scalar;

use super::parameter::Parent;
use taximeter_meter::Wire;

/// What a prompt has beside what the request contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Context {
    /// All that was said up to this response, by its `id`.
    Response(String),
    /// All that was said in this conversation, by its `id`.
    Conversation(String),
    /// Something else that the provider keeps or adds.
    Kept,
}

/// A member that names such a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContextMember {
    Response,
    Conversation,
    Kept,
}

/// All contexts that a request names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Contexts {
    /// The `id`. `None` if it cannot be read.
    response: Option<Option<String>>,
    conversation: Option<Option<String>>,
    keeps: bool,
}

impl ContextMember {
    /// The member at the top of a body with this key.
    pub(super) fn named(wire: Wire, key: &str) -> Option<Self> {
        match (wire, key) {
            (Wire::Responses, "previous_response_id") => Some(Self::Response),
            (Wire::Responses, "conversation") => Some(Self::Conversation),
            (Wire::Responses, "prompt")
            // What a search or a plugin finds becomes part of the prompt.
            | (
                Wire::ChatCompletions | Wire::ChatBatch | Wire::Invocations,
                "data_sources" | "plugins" | "preset" | "search_parameters",
            )
            | (Wire::Responses | Wire::Messages, "plugins" | "preset")
            | (Wire::Messages, "container" | "mcp_servers")
            | (Wire::GenerateContent, "cachedContent" | "cached_content")
            | (Wire::Converse, "promptVariables") => Some(Self::Kept),
            _ => None,
        }
    }

    /// What a container of it is.
    pub(super) const fn parent(self) -> Option<Parent> {
        match self {
            Self::Response => None,
            Self::Conversation => Some(Parent::Conversation),
            Self::Kept => Some(Parent::Kept),
        }
    }
}

impl Contexts {
    /// Notes a scalar of a member.
    pub(super) fn add_scalar(&mut self, member: ContextMember, kind: Scalar, text: Option<&str>) {
        let id = match (kind, text) {
            (Scalar::Null | Scalar::False, _) | (Scalar::String, Some("")) => return,
            (Scalar::String, Some(text)) => Some(text.to_owned()),
            _ => None,
        };
        self.add(member, id);
    }

    /// Notes an object or a list that has something in it; the `id` of one may follow.
    pub(super) fn add_container(&mut self, member: ContextMember) {
        self.add(member, None);
    }

    fn add(&mut self, member: ContextMember, id: Option<String>) {
        let slot = match member {
            ContextMember::Response => &mut self.response,
            ContextMember::Conversation => &mut self.conversation,
            ContextMember::Kept => {
                self.keeps = true;
                return;
            }
        };
        // Of two that are given nobody knows which one is meant.
        self.keeps |= matches!(slot, Some(Some(_)));
        *slot = Some(id);
    }

    /// What they are together.
    pub(super) fn context(&self) -> Option<Context> {
        Some(match (&self.response, &self.conversation, self.keeps) {
            (None, None, false) => return None,
            (Some(Some(id)), None, false) => Context::Response(id.clone()),
            (None, Some(Some(id)), false) => Context::Conversation(id.clone()),
            _ => Context::Kept,
        })
    }
}

/// Whether the name of a model brings a prompt, or search results, that the request does not contain:
/// a prompt of Bedrock's, a preset or `:online` of OpenRouter's.
#[must_use]
pub fn names_context(model: &str) -> bool {
    model.contains("@preset/")
        || model.starts_with("arn:") && model.contains(":prompt/")
        || model.contains('/') && model.ends_with(":online")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RequestReader;

    fn context(wire: Wire, body: &str) -> Option<Context> {
        let read = |pieces: &[&[u8]]| {
            let mut reader = RequestReader::json(wire);
            pieces.iter().for_each(|piece| reader.push(piece).unwrap());
            reader.finish().unwrap().context()
        };
        let whole = read(&[body.as_bytes()]);
        let noted = {
            let mut reader = RequestReader::json(wire).with_parameters();
            reader.push(body.as_bytes()).unwrap();
            reader.finish().unwrap().context()
        };
        assert_eq!(noted, whole, "{body}");
        for at in 0..=body.len() {
            let (head, tail) = body.as_bytes().split_at(at);
            assert_eq!(read(&[head, tail]), whole, "{body} cut at {at}");
        }
        whole
    }

    #[test]
    fn a_response_names_what_was_said_before() {
        use Context::{Conversation, Kept, Response};
        for (body, expected) in [
            (r#"{"input":"x"}"#, None),
            (r#"{"previous_response_id":null,"conversation":null,"prompt":null}"#, None),
            (r#"{"previous_response_id":""}"#, None),
            (r#"{"previous_response_id":"resp_1"}"#, Some(Response("resp_1".to_owned()))),
            (r#"{"previous_response_id":"\u0072esp_1"}"#, Some(Response("resp_1".to_owned()))),
            (r#"{"conversation":"conv_1"}"#, Some(Conversation("conv_1".to_owned()))),
            (
                r#"{"conversation":{"x":[{"id":"no"}],"id":"conv_1","y":{"id":"no"}},"input":[]}"#,
                Some(Conversation("conv_1".to_owned())),
            ),
            (r#"{"conversation":{}}"#, Some(Kept)),
            (r#"{"conversation":{"id":7}}"#, Some(Kept)),
            (r#"{"prompt":{"id":"pmpt_1","version":"2","variables":{"id":"x"}}}"#, Some(Kept)),
            (r#"{"prompt":{"id":"pmpt_1"},"previous_response_id":"resp_1"}"#, Some(Kept)),
            (r#"{"previous_response_id":"resp_1","conversation":"conv_1"}"#, Some(Kept)),
            (r#"{"previous_response_id":"a","previous_response_id":"b"}"#, Some(Kept)),
            (r#"{"metadata":{"previous_response_id":"a"},"input":[{"prompt":{"id":"x"}}]}"#, None),
        ] {
            assert_eq!(context(Wire::Responses, body), expected, "{body}");
        }
        let long = format!(r#"{{"previous_response_id":"{}"}}"#, "x".repeat(300));
        assert_eq!(context(Wire::Responses, &long), Some(Kept));
    }

    #[test]
    fn other_apis_have_their_own_words_for_what_they_keep() {
        for (wire, body) in [
            (Wire::ChatCompletions, r#"{"data_sources":[{"type":"azure_search"}]}"#),
            (Wire::ChatCompletions, r#"{"plugins":[{"id":"web"}]}"#),
            (Wire::ChatCompletions, r#"{"preset":"mail"}"#),
            (Wire::ChatCompletions, r#"{"search_parameters":{"mode":"auto"}}"#),
            (Wire::Messages, r#"{"container":"container_1"}"#),
            (Wire::Messages, r#"{"container":{"id":"c","skills":[]}}"#),
            (Wire::Messages, r#"{"mcp_servers":[{"url":"https://e.org"}]}"#),
            (Wire::GenerateContent, r#"{"cachedContent":"cachedContents/1"}"#),
            (Wire::GenerateContent, r#"{"cached_content":"cachedContents/1"}"#),
            (Wire::Converse, r#"{"promptVariables":{"x":{"text":"y"}}}"#),
        ] {
            assert_eq!(context(wire, body), Some(Context::Kept), "{body}");
        }
        for (wire, body) in [
            (Wire::ChatCompletions, r#"{"data_sources":[],"plugins":[],"preset":null}"#),
            (Wire::Messages, r#"{"container":null,"mcp_servers":[]}"#),
            (Wire::Completions, r#"{"prompt":"x"}"#),
            (Wire::Completions, r#"{"prompt":["x"]}"#),
            (Wire::OllamaGenerate, r#"{"prompt":"x","context":[1]}"#),
        ] {
            assert_eq!(context(wire, body), None, "{body}");
        }
    }

    #[test]
    fn a_model_may_bring_a_prompt_of_its_own() {
        for (model, brings) in [
            ("@preset/mail", true),
            ("openai/gpt-4o@preset/mail", true),
            ("openai/gpt-4o:online", true),
            ("arn:aws:bedrock:us-east-1:1:prompt/ABC:1", true),
            ("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude", false),
            ("gpt-4o", false),
            ("llama3:online", false),
        ] {
            assert_eq!(names_context(model), brings, "{model}");
        }
    }
}
