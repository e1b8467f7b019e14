//! Reads JSON bytes: no tree, no copy, no recursion.
//!
//! - [`Reader`] reads a document that is in memory. The caller asks for one value after the other and
//!   gets slices of the document. The reader checks only what the caller walks through, so it also
//!   reads documents with small faults.
//! - [`StreamReader`] reads a document that arrives in pieces, and checks every byte of it by RFC 8259.
//!   It keeps one short text and one byte per level of nesting.
//! - [`Condenser`] shortens a document of any length that arrives in pieces, so that a [`Reader`] can
//!   read it.
//! - [`Value`] is a part of a document that was checked before, to be read in any order.
//! - [`Nesting`] finds the end of an object or a list in bytes that arrive in pieces.
//!
//! The crate knows no JSON schema: keys and their meaning are the caller's. It depends on no other
//! crate of the workspace.

mod condenser;
mod event;
mod nesting;
mod number;
mod reader;
mod scan;
mod stream;
mod text;
mod utf8;
mod value;

pub use condenser::{Condensed, Condenser, LeftOut};
pub use event::{Container, Event, Piece, Scalar, StreamFault};
pub use nesting::Nesting;
pub use number::Count;
pub use reader::{Malformed, Reader};
pub use stream::StreamReader;
pub use text::Text;
pub use value::Value;
