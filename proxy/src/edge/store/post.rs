//! What the store asks of a post: a few members, borrowed from its JSON.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use taximeter_ledger::{Fault, Framed, RequestId};
use taximeter_pricing::Source;

/// The members of a record that have columns; the others are not looked at.
#[derive(Debug, Deserialize)]
pub(super) struct Post<'a> {
    pub(super) id: RequestId,
    pub(super) started_at: Timestamp,
    #[serde(borrow)]
    pub(super) tenant: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) key_id: Option<Text<'a>>,
    /// An object, absent when it is empty.
    #[serde(borrow)]
    pub(super) labels: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) operation: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) route: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) upstream: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) provider: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) request_model: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) response_model: Option<Text<'a>>,
    pub(super) usage: Usage,
    #[serde(borrow)]
    pub(super) cost: Option<Cost<'a>>,
    /// Its entry.
    #[serde(skip)]
    pub(super) seq: u64,
    /// All of it, as it was written.
    #[serde(skip)]
    pub(super) record: &'a str,
}

#[derive(Debug, Deserialize)]
pub(super) struct Usage {
    pub(super) source: Source,
    pub(super) input_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) reasoning_output_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Cost<'a> {
    #[serde(borrow)]
    pub(super) currency: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) amount: Cow<'a, str>,
}

/// `serde` borrows through an `Option` only in a type of its own.
#[derive(Debug, Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'a> Post<'a> {
    /// Reads the payload of a post.
    ///
    /// Errors: `Unreadable`.
    pub(super) fn read(framed: &'a Framed) -> Result<Self, Fault> {
        let record = str::from_utf8(&framed.payload).map_err(|error| framed.unreadable(&error))?;
        let post: Self = serde_json::from_str(record).map_err(|e| framed.unreadable(&e))?;
        Ok(Self { seq: framed.seq, record, ..post })
    }

    /// The answer's model, or the request's when there was no answer.
    pub(super) fn model(&self) -> Option<&str> {
        self.response_model.as_ref().or(self.request_model.as_ref()).map(Text::as_str)
    }
}
