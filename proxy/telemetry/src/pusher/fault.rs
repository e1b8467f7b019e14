//! Why nothing was sent.

/// Why a batch could not be sent, or no answer came. It may be told by another thread.
pub(super) type SendFault = Box<dyn std::error::Error + Send + Sync>;
