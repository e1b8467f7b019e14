//! The kinds of frames.

/// The kind of a frame.
///
/// A kind from 0x40 on has no number of its own: its frame has that of the entry before it. A kind
/// from 0x80 on is not part of the chain either. So a reader can skip kinds that it does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A [`Reserve`](crate::Reserve).
    Reserve = 1,
    /// A [`Record`](crate::Record).
    Post = 2,
    /// A [`Void`](crate::Void).
    Void = 3,
    /// A [`Progress`](crate::Progress).
    Progress = 4,
    /// A [`Correction`](crate::Correction).
    Correction = 5,
    /// A [`Checkpoint`](crate::Checkpoint). Strings begin anew.
    Checkpoint = 6,
    /// A [`Refusals`](crate::Refusals).
    Refusals = 7,
}

/// Strings begin anew. It is not an entry.
pub(crate) const BLOCK: u8 = 0x41;
/// A [`SyncMark`](crate::SyncMark).
pub(crate) const SYNC_MARK: u8 = 0x81;
/// The strings of the entries before a segment that begins behind a checkpoint.
pub(crate) const TABLE: u8 = 0x82;
/// The reservation of a request that is open at the next checkpoint.
pub(crate) const CARRIED_RESERVE: u8 = 0x83;
/// The last progress of a request that is open at the next checkpoint.
pub(crate) const CARRIED_PROGRESS: u8 = 0x84;

/// Whether frames of this kind have a number of their own.
pub(crate) const fn is_numbered(kind: u8) -> bool {
    kind < 0x40
}

/// Whether frames of this kind are part of the chain.
pub(crate) const fn is_chained(kind: u8) -> bool {
    kind < 0x80
}

impl Kind {
    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Reserve),
            2 => Some(Self::Post),
            3 => Some(Self::Void),
            4 => Some(Self::Progress),
            5 => Some(Self::Correction),
            6 => Some(Self::Checkpoint),
            7 => Some(Self::Refusals),
            _ => None,
        }
    }
}
