//! The faults of a client's bytes after which nothing more is read.

use taximeter_net::framing::FramingFault;

use super::flood_guard::Excess;

/// What a client sent that it should not have. Nothing behind it is read.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// A request whose head cannot be read in one way only, and how it begins. Nobody has seen it.
    Head(FramingFault, Vec<u8>),
    /// A request whose body cannot. Whoever reads the body is told.
    Body(FramingFault),
    /// Too much HTTP/2 traffic that is good for nothing.
    Excess(Excess),
}

impl Unreadable {
    /// A fixed word for labels.
    pub(super) const fn cause(&self) -> &'static str {
        match self {
            Self::Head(fault, _) | Self::Body(fault) => fault.cause(),
            Self::Excess(excess) => excess.cause(),
        }
    }

    /// The part of the request that is at fault, as a fixed word.
    pub(super) const fn place(&self) -> Option<&'static str> {
        match self {
            Self::Head(..) => Some("head"),
            Self::Body(_) => Some("body"),
            Self::Excess(_) => None,
        }
    }
}
