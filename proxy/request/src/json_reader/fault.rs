//! The reasons why the gateway refuses a request body.

use std::borrow::Cow;

use taximeter_json::StreamFault;

/// A request body that two readers could read differently, or not at all; each is a 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestFault {
    /// Not a JSON object by RFC 8259, in UTF-8.
    #[error("the request body is not valid JSON at byte {offset}: {what}")]
    InvalidJson {
        /// Offset of the first byte that does not fit.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// Deeper than what is read.
    #[error("the request body is nested deeper than {depth_max} levels at byte {offset}")]
    TooDeep {
        /// Offset of the first bracket that is too deep.
        offset: u64,
        /// Levels that are read.
        depth_max: usize,
    },
    /// Not a form by RFC 7578, or one that two readers could read differently.
    #[error("the form in the request body cannot be read at byte {offset}: {what}")]
    InvalidForm {
        /// Offset of the first byte that does not fit.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// A key that we act on is there twice; readers differ in which they take.
    #[error("`{key}` is given twice; send it once")]
    DuplicateKey {
        /// Its JSON path.
        key: &'static str,
    },
    /// A value that we act on is none that it may be.
    #[error("`{param}` must be {what}")]
    InvalidValue {
        /// Its JSON path.
        param: &'static str,
        /// What it must be.
        what: &'static str,
    },
}

impl From<StreamFault> for RequestFault {
    fn from(fault: StreamFault) -> Self {
        match fault {
            StreamFault::Invalid { offset, what } => Self::InvalidJson { offset, what },
            StreamFault::TooDeep { offset, depth_max } => Self::TooDeep { offset, depth_max },
        }
    }
}

impl RequestFault {
    /// `error.code`: a fixed word, safe as a metric label.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidJson { .. } | Self::TooDeep { .. } => "invalid_json",
            Self::DuplicateKey { .. } => "duplicate_key",
            Self::InvalidForm { .. } | Self::InvalidValue { .. } => "invalid_value",
        }
    }

    /// `error.param`: the JSON path of the member, or the offset of the byte that does not fit.
    #[must_use]
    pub fn param(&self) -> Cow<'static, str> {
        match self {
            Self::InvalidJson { offset, .. }
            | Self::TooDeep { offset, .. }
            | Self::InvalidForm { offset, .. } => Cow::Owned(offset.to_string()),
            Self::DuplicateKey { key } => Cow::Borrowed(key),
            Self::InvalidValue { param, .. } => Cow::Borrowed(param),
        }
    }
}
