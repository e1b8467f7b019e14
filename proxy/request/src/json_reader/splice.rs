//! Adds the gateway's question for usage to a request body, and changes no other byte.

use std::ops::Range;

use bytes::Bytes;

use taximeter_meter::{Hidden, UsageAsk};

/// One change of a body: `text` takes the place of `range`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// Bytes of the body that `text` replaces, by offset; empty where it is only put in.
    pub range: Range<u64>,
    /// What to send there.
    pub text: Bytes,
}

/// What is asked on a client's behalf.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BodyEdits {
    /// Changes of the body, in order of offset; none overlaps another.
    pub splices: Vec<Splice>,
    /// What of the answer only we asked for.
    pub hidden: Hidden,
    /// Names of members that only we have put in, so that an engine that refuses one of them refuses
    /// our question and not the client's.
    pub added: Vec<&'static str>,
}

/// What the body says already, and where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// Offset of the first byte inside the outermost object.
    pub(super) members: u64,
    pub(super) options: Options,
    /// `stream_options.include_usage`.
    pub(super) include_usage: Flag,
    /// `stream_options.continuous_usage_stats`.
    pub(super) continuous_usage: Flag,
    /// `return_token_ids`.
    pub(super) token_ids: Flag,
}

/// What stands for `stream_options`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Options {
    #[default]
    Absent,
    /// Null, at these offsets.
    Null { start: u64, end: u64 },
    /// An object; its members begin at `inside`.
    Object { inside: u64, empty: bool },
    /// Something else; the engine decides.
    Odd,
}

/// What stands for a flag.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Flag {
    #[default]
    Absent,
    On,
    /// False or null, at these offsets.
    Off {
        start: u64,
        end: u64,
    },
    /// Something else; the engine decides.
    Odd,
}

impl Places {
    /// What to change in order to ask so. The object has members: a request for a stream names at
    /// least that.
    pub(super) fn question(&self, ask: UsageAsk, runs: bool) -> BodyEdits {
        let mut edits = BodyEdits::default();
        let BodyEdits { splices, hidden, added } = &mut edits;
        // Only the engine knows what an odd value means, and so what the client expects to see.
        if self.options != Options::Odd && self.include_usage.can_be_set() {
            let continuous = ask == UsageAsk::Continuous && self.continuous_usage.can_be_set();
            let mut missing = Vec::new();
            self.include_usage.set("include_usage", &mut missing, splices);
            if continuous {
                self.continuous_usage.set("continuous_usage_stats", &mut missing, splices);
            }
            splices.extend(self.options.insert(self.members, &missing));
            if !missing.is_empty() && !matches!(self.options, Options::Object { .. }) {
                added.push("stream_options");
            }
            added.append(&mut missing);
            hidden.usage_event = self.include_usage != Flag::On;
            // Running totals come only where usage was asked for.
            let will_run = continuous || runs && self.continuous_usage == Flag::On;
            let would_run = self.include_usage == Flag::On && self.continuous_usage == Flag::On;
            hidden.running_usage = will_run && !would_run;
        }
        if ask == UsageAsk::TokenIds && self.token_ids.can_be_set() {
            let mut missing = Vec::new();
            self.token_ids.set("return_token_ids", &mut missing, splices);
            if !missing.is_empty() {
                splices.push(Splice::put(self.members, written(&missing)));
            }
            added.append(&mut missing);
            hidden.token_ids = self.token_ids != Flag::On;
        }
        splices.sort_by_key(|splice| splice.range.start);
        edits
    }
}

/// The members, each true and with a comma behind it.
fn written(members: &[&str]) -> Vec<u8> {
    members.iter().flat_map(|name| format!("\"{name}\":true,").into_bytes()).collect()
}

impl Options {
    /// Puts `members` into the object.
    fn insert(self, outside: u64, members: &[&str]) -> Option<Splice> {
        let members = written(members);
        let bare = members.strip_suffix(b",")?;
        let splice = match self {
            Self::Absent => Splice::put(outside, [b"\"stream_options\":{", bare, b"},"].concat()),
            Self::Null { start, end } => {
                Splice { range: start..end, text: [b"{", bare, b"}"].concat().into() }
            }
            Self::Object { inside, empty: true } => Splice::put(inside, bare.to_vec()),
            Self::Object { inside, empty: false } => Splice::put(inside, members),
            Self::Odd => return None,
        };
        Some(splice)
    }
}

impl Flag {
    /// Whether the flag is on, or can be made so.
    const fn can_be_set(self) -> bool {
        !matches!(self, Self::Odd)
    }

    /// Makes it true: where it stands, or else as one of the members that are missing.
    fn set(self, name: &'static str, missing: &mut Vec<&'static str>, splices: &mut Vec<Splice>) {
        match self {
            Self::Absent => missing.push(name),
            Self::Off { start, end } => {
                splices.push(Splice { range: start..end, text: Bytes::from_static(b"true") });
            }
            Self::On | Self::Odd => {}
        }
    }
}

impl Splice {
    fn put(at: u64, text: Vec<u8>) -> Self {
        Self { range: at..at, text: text.into() }
    }
}
