//! The errors between a request and its prompt.

/// Why there is no prompt. Never carries what the request says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The template is not Jinja, or larger than a MiB.
    #[error("the chat template cannot be compiled: {0}")]
    Source(String),
    /// `tokenizer_config.json` does not say what it should.
    #[error("tokenizer_config.json: {0}")]
    TemplateConfig(String),
    /// The request has not the shape of a chat, or asks for what no template does alone.
    #[error("the request cannot be rendered: {0}")]
    Request(&'static str),
    /// The template does what Python takes otherwise than we do.
    #[error("the chat template cannot be rendered exactly: {0}")]
    Unsupported(&'static str),
    /// The template gives up, as the engine's would, or needs what we do not have.
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
