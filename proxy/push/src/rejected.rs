//! Writes events that the receiver refuses to a file, for people to read.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use serde::Serialize;
use serde_json::value::RawValue;

/// Their file in the data directory: one JSON object a line.
const FILE: &str = "push-rejected.ndjson";

#[derive(Serialize)]
struct RejectedEvent<'a> {
    reason: &'a str,
    event: &'a RawValue,
}

/// Keeps an event, and why it was refused; on the disk when this returns.
pub(super) fn set_aside(dir: &Path, event: &[u8], reason: &str) -> io::Result<()> {
    let event = serde_json::from_slice(event)?;
    let mut line = serde_json::to_vec(&RejectedEvent { reason, event })?;
    line.push(b'\n');
    let mut file = OpenOptions::new().append(true).create(true).open(dir.join(FILE))?;
    file.write_all(&line)?;
    file.sync_data()
}
