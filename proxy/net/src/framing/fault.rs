//! Lists what can be wrong with the framing of a message.

/// Why a message can be read in more than one way, or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FramingFault {
    /// The head is longer than `header_bytes_max`.
    #[error("its head is too large")]
    HeadTooLarge,
    /// The head has more fields than `headers_max`.
    #[error("it has too many fields")]
    TooManyFields,
    /// The target is longer than `uri_bytes_max`.
    #[error("its target is too long")]
    TargetTooLong,
    /// The request line cannot be read.
    #[error("it does not begin with a method, a target and a version")]
    RequestLine,
    /// The target is not a path, or has forbidden bytes.
    #[error("its target is no path")]
    Target,
    /// The HTTP version is not served.
    #[error("its version is not HTTP/1.1 or HTTP/1.0")]
    Version,
    /// The status line cannot be read.
    #[error("it does not begin with a status line")]
    StatusLine,
    /// A line does not end with CRLF.
    #[error("a line does not end with CR LF")]
    LineEnd,
    /// The name of a field has forbidden bytes.
    #[error("a field has no name, or what is none")]
    HeaderName,
    /// The value of a field has forbidden bytes.
    #[error("a field goes on in the next line, or has a control character in it")]
    HeaderValue,
    /// `content-length` is not a number, or there are two that differ.
    #[error("its length is no number, or there twice")]
    ContentLength,
    /// `transfer-encoding` is something else than `chunked` alone.
    #[error("its transfer coding is not `chunked`, once, on HTTP/1.1")]
    TransferEncoding,
    /// A transfer coding that is not served stands before `chunked`.
    #[error("its body has a transfer coding beside `chunked`, which this gateway does not undo")]
    Encoded,
    /// `content-length` and `transfer-encoding` stand together.
    #[error("it has both a length and a transfer coding")]
    ClTe,
    /// The size of a chunk cannot be read.
    #[error("a chunk's size is no hexadecimal number of 16 digits at most")]
    ChunkSize,
    /// A chunk does not end with CRLF.
    #[error("a chunk is longer than its size")]
    ChunkEnd,
}

impl FramingFault {
    /// A fixed word for labels.
    pub const fn cause(&self) -> &'static str {
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
