//! The errors between a request and its prompt.

/// Why there is no prompt. It never contains the content of the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The template is not Jinja, or larger than a MiB.
    #[error("the chat template cannot be compiled: {0}")]
    Source(String),
    /// `tokenizer_config.json` lacks something or has something wrong.
    #[error("tokenizer_config.json: {0}")]
    Config(String),
    /// The request is not a chat, or asks for something that a template cannot do.
    #[error("the request cannot be rendered: {0}")]
    Request(&'static str),
    /// The template uses something that Python does in another way than this crate.
    #[error("the chat template cannot be rendered exactly: {0}")]
    Unsupported(&'static str),
    /// The template raises an error, as it would in the engine, or needs something that this crate
    /// lacks.
    #[error("the chat template cannot render this request: {reason} (line {line})")]
    Render {
        /// What kind of fault it is.
        reason: String,
        /// Line of the template.
        line: usize,
    },
    /// A limit was reached.
    #[error("rendering stopped at its limit: {0}")]
    Limit(&'static str),
}
