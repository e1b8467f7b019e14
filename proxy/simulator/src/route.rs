//! The routes that generate.

/// A route that generates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Chat,
    Completions,
    Responses,
    Messages,
    Embeddings,
}

impl Route {
    const ALL: [Self; 5] =
        [Self::Chat, Self::Completions, Self::Responses, Self::Messages, Self::Embeddings];

    pub(crate) fn from_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|route| route.path() == path)
    }

    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
            Self::Embeddings => "/v1/embeddings",
        }
    }

    pub(crate) const fn id_prefix(self) -> &'static str {
        match self {
            Self::Chat => "chatcmpl-",
            Self::Completions => "cmpl-",
            Self::Responses => "resp_",
            Self::Messages => "msg_",
            Self::Embeddings => "embd-",
        }
    }

    pub(crate) const fn has_choices(self) -> bool {
        matches!(self, Self::Chat | Self::Completions)
    }

    pub(crate) const fn reasons(self) -> bool {
        matches!(self, Self::Chat | Self::Responses | Self::Messages)
    }

    pub(crate) const fn calls_tools(self) -> bool {
        self.reasons()
    }
}
