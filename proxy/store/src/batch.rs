//! A batch of requests, corrections and counts of refusals that is added to a store at once, and its sums per hour.

use std::collections::BTreeMap;

use jiff::Timestamp;
use taximeter_billing::{BilledRequest, Hour, HourKey, corrected};
use taximeter_ledger::{Correction, Entry, Fault, FramedEntry, Kind, Position, Refusals};

use super::post::Post;

/// Posts, corrections and counts of refusals that follow each other in one journal.
#[derive(Debug, Default)]
pub(super) struct Batch<'a> {
    pub(super) posts: Vec<Post<'a>>,
    pub(super) corrections: Vec<Amendment<'a>>,
    pub(super) refusals: Vec<Refusals>,
    /// The journal, and the last entry of it that is part of the batch.
    pub(super) end: Option<(&'a str, Position)>,
}

/// A correction, and its JSON as it was written.
#[derive(Debug)]
pub(super) struct Amendment<'a> {
    pub(super) correction: Correction,
    /// Its entry.
    pub(super) seq: u64,
    pub(super) json: &'a str,
}

/// What adding a batch did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Added {
    /// Requests that were new.
    pub(super) posts: u64,
    /// Corrections that were new.
    pub(super) corrections: u64,
}

/// Requests and corrections, added up by hour. In one order always, so that those who write several
/// rows at the same time never wait for each other in a circle.
#[derive(Debug, Default)]
pub(super) struct Hours(BTreeMap<HourKey, Vec<Hour>>);

impl<'a> Batch<'a> {
    /// Takes one more entry of `journal`; an entry of a kind that leaves nothing in the store only
    /// moves the end.
    ///
    /// Errors: `Unreadable`; the batch is as before.
    pub(super) fn push(&mut self, journal: &'a str, entry: &'a Decoded) -> Result<(), Fault> {
        let framed = &entry.framed;
        match &entry.content {
            Ok(Content::Post(json)) => {
                let post = Post::read(framed.seq, json).map_err(|e| framed.unreadable(&e))?;
                self.posts.push(post);
            }
            Ok(Content::Correction(json)) => {
                let amendment = Amendment::read(framed.seq, json);
                self.corrections.push(amendment.map_err(|error| framed.unreadable(&error))?);
            }
            Ok(Content::Refusals(refusals)) => self.refusals.push((**refusals).clone()),
            Ok(Content::Nothing) => {}
            Err(fault) => return Err(fault.clone()),
        }
        self.pass(journal, framed);
        Ok(())
    }

    /// Goes on behind an entry of `journal` that leaves nothing in the store.
    pub(super) const fn pass(&mut self, journal: &'a str, framed: &FramedEntry) {
        self.end = Some((journal, framed.position()));
    }
}

/// An entry, decoded for the store.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) framed: FramedEntry,
    content: Result<Content, Fault>,
}

/// What of an entry the store keeps.
#[derive(Debug)]
enum Content {
    /// The JSON of a record.
    Post(String),
    /// The JSON of a correction.
    Correction(String),
    Refusals(Box<Refusals>),
    Nothing,
}

impl Decoded {
    /// Decodes an entry.
    pub(super) fn new(framed: FramedEntry) -> Self {
        let content = Content::of(&framed);
        Self { framed, content }
    }

    /// Length of its JSON, in bytes.
    pub(super) const fn bytes(&self) -> usize {
        match &self.content {
            Ok(Content::Post(json) | Content::Correction(json)) => json.len(),
            _ => 0,
        }
    }
}

impl Content {
    fn of(framed: &FramedEntry) -> Result<Self, Fault> {
        if !matches!(framed.kind, Kind::Post | Kind::Correction | Kind::Refusals) {
            return Ok(Self::Nothing);
        }
        let text = |json: serde_json::Result<Vec<u8>>| {
            let json = json.map_err(|error| framed.unreadable(&error))?;
            String::from_utf8(json).map_err(|error| framed.unreadable(&error))
        };
        match framed.entry()? {
            Entry::Post(record) => text(record.to_json()).map(Self::Post),
            Entry::Correction(correction) => {
                text(serde_json::to_vec(&correction)).map(Self::Correction)
            }
            Entry::Refusals(refusals) => Ok(Self::Refusals(refusals)),
            _ => Ok(Self::Nothing),
        }
    }
}

impl<'a> Amendment<'a> {
    /// Reads the JSON of entry `seq`.
    ///
    /// Errors: it is no correction.
    pub(super) fn read(seq: u64, json: &'a str) -> Result<Self, serde_json::Error> {
        Ok(Self { correction: serde_json::from_str(json)?, seq, json })
    }
}

impl Hours {
    /// Adds a request that was not in the store. One that has used nothing is in no hour.
    pub(super) fn add_post(&mut self, post: &Post<'_>) {
        if !post.used_nothing() {
            self.add_row(&post.row());
        }
    }

    /// Adds a request, as bills see it.
    pub(super) fn add_row(&mut self, row: &BilledRequest<'_>) {
        self.add(HourKey::of(row), Hour::of(row));
    }

    /// Adds a correction that was not in the store, of the request `post`.
    pub(super) fn add_correction(&mut self, post: &Post<'_>, correction: &Correction) {
        for (key, hour) in corrected(&post.row(), correction) {
            self.add(key, hour);
        }
    }

    /// Adds `hour`. Where a sum would be too large to be kept exactly, another one is begun.
    pub(super) fn add(&mut self, key: HourKey, hour: Hour) {
        add(self.0.entry(key).or_default(), hour);
    }

    /// Adds all `parts` of a key.
    pub(super) fn add_parts(&mut self, key: HourKey, parts: Vec<Hour>) {
        let Some(known) = self.0.get_mut(&key) else {
            self.0.insert(key, parts);
            return;
        };
        parts.into_iter().for_each(|part| add(known, part));
    }

    /// The first hour of all.
    pub(super) fn first(&self) -> Option<Timestamp> {
        self.0.first_key_value().map(|(key, _)| key.hour)
    }

    /// How many sums there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes all of it out, in order.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (HourKey, Vec<Hour>)> + use<> {
        std::mem::take(&mut self.0).into_iter()
    }
}

/// Adds `hour` to the last of `parts`, or behind it.
fn add(parts: &mut Vec<Hour>, hour: Hour) {
    match parts.last_mut().map(|last| last.add(&hour)) {
        Some(Ok(())) => {}
        _ => parts.push(hour),
    }
}
