//! What can be wrong with a message.

/// Why a message can be read in more than one way, or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FramingFault {
    #[error("its head is too large")]
    HeadTooLarge,
    #[error("it has too many fields")]
    TooManyFields,
    #[error("its target is too long")]
    TargetTooLong,
    #[error("it does not begin with a method, a target and a version")]
    RequestLine,
    #[error("its target is no path")]
    Target,
    #[error("its version is not HTTP/1.1 or HTTP/1.0")]
    Version,
    #[error("it does not begin with a status line")]
    StatusLine,
    #[error("a line does not end with CR LF")]
    LineEnd,
    #[error("a field has no name, or what is none")]
    HeaderName,
    #[error("a field goes on in the next line, or has a control character in it")]
    HeaderValue,
    #[error("its length is no number, or there twice")]
    ContentLength,
    #[error("its transfer coding is not `chunked`, once, on HTTP/1.1")]
    TransferEncoding,
    #[error("its body has a transfer coding beside `chunked`, which this gateway does not undo")]
    Encoded,
    #[error("it has both a length and a transfer coding")]
    ClTe,
    #[error("a chunk's size is no hexadecimal number of 16 digits at most")]
    ChunkSize,
    #[error("a chunk is longer than its size")]
    ChunkEnd,
}

impl FramingFault {
    /// A fixed word for labels.
    pub(crate) const fn cause(&self) -> &'static str {
        match self {
            Self::HeadTooLarge => "head_too_large",
            Self::TooManyFields => "too_many_headers",
            Self::TargetTooLong => "target_too_long",
            Self::RequestLine => "request_line",
            Self::Target => "target",
            Self::Version => "version",
            Self::StatusLine => "status_line",
            Self::LineEnd => "line_end",
            Self::HeaderName => "header_name",
            Self::HeaderValue => "header_value",
            Self::ContentLength => "content_length",
            Self::TransferEncoding | Self::Encoded => "transfer_encoding",
            Self::ClTe => "cl_te",
            Self::ChunkSize | Self::ChunkEnd => "chunk",
        }
    }
}
