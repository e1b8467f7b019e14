//! Lists what can be wrong with the framing of a message.

/// Why a message can be read in more than one way, or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FramingFault {
    /// The head is longer than `header_bytes_max`.
    #[error("its head is longer than the limit")]
    HeadTooLarge,
    /// The head has more fields than `headers_max`.
    #[error("it has more header fields than the limit")]
    TooManyFields,
    /// The target is longer than `uri_bytes_max`.
    #[error("its target is longer than the limit")]
    TargetTooLong,
    /// The request line cannot be read.
    #[error("its first line is not a method, a target and a version")]
    RequestLine,
    /// The target is not a path, or has forbidden bytes.
    #[error("its target is not a path")]
    Target,
    /// The HTTP version is not served.
    #[error("its version is not HTTP/1.1 or HTTP/1.0")]
    Version,
    /// The status line cannot be read.
    #[error("its first line is not a status line")]
    StatusLine,
    /// A line does not end with CRLF.
    #[error("a line does not end with CR LF")]
    LineEnd,
    /// The name of a field has forbidden bytes.
    #[error("a header field has no valid name")]
    HeaderName,
    /// The value of a field has forbidden bytes.
    #[error("the value of a header field has a control character or a line break")]
    HeaderValue,
    /// `content-length` is not a number, or there are two that differ.
    #[error("its `content-length` is not a number, or is given twice")]
    ContentLength,
    /// `transfer-encoding` is something else than `chunked` alone.
    #[error("its `transfer-encoding` is not exactly `chunked`, or it is HTTP/1.0")]
    TransferEncoding,
    /// A transfer coding that is not served stands before `chunked`.
    #[error("its body has another transfer coding than `chunked`, which is not supported")]
    Encoded,
    /// `content-length` and `transfer-encoding` stand together.
    #[error("it has both `content-length` and `transfer-encoding`")]
    ClTe,
    /// The size of a chunk cannot be read.
    #[error("the size of a chunk is not a hexadecimal number of at most 16 digits")]
    ChunkSize,
    /// A chunk does not end with CRLF.
    #[error("a chunk is longer than its size")]
    ChunkEnd,
}

impl FramingFault {
    /// The faults that a client's request can have, for the reference of errors.
    pub const OF_REQUESTS: [Self; 15] = [
        Self::HeadTooLarge,
        Self::TooManyFields,
        Self::TargetTooLong,
        Self::RequestLine,
        Self::Target,
        Self::Version,
        Self::LineEnd,
        Self::HeaderName,
        Self::HeaderValue,
        Self::ContentLength,
        Self::TransferEncoding,
        Self::Encoded,
        Self::ClTe,
        Self::ChunkSize,
        Self::ChunkEnd,
    ];

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

#[cfg(test)]
mod tests {
    use super::FramingFault::{self, *};

    #[test]
    fn every_fault_is_of_requests_but_the_one_of_status_lines() {
        for fault in FramingFault::OF_REQUESTS {
            // Names each fault, so that a new one does not compile until it is in the list.
            match fault {
                StatusLine => panic!("requests have no status line"),
                HeadTooLarge | TooManyFields | TargetTooLong | RequestLine | Target | Version
                | LineEnd | HeaderName | HeaderValue | ContentLength | TransferEncoding
                | Encoded | ClTe | ChunkSize | ChunkEnd => {}
            }
            let same = FramingFault::OF_REQUESTS.iter().filter(|other| **other == fault);
            assert_eq!(same.count(), 1, "{fault:?}");
        }
    }
}
