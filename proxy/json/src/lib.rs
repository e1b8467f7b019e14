//! Reads JSON bytes without a tree, without copies and without recursion.
//!
//! - [`Reader`] reads a document that is in memory. The caller asks for one value after the other
//!   and gets slices of the document. The reader checks only the parts that the caller reads, so it
//!   also reads documents with small faults.
//! - [`StreamReader`] reads a document that arrives in pieces, and checks every byte of it by RFC
//!   8259. It keeps one short text, and one byte for each level of nesting.
//! - [`Condenser`] shortens a document of any length that arrives in pieces, so that a [`Reader`] can
//!   read it.
//! - [`Value`] is a part of a document that was checked before. It can be read in any order.
//! - [`Nesting`] finds the end of an object or an array in bytes that arrive in pieces.
//!
//! The crate knows no JSON schema: the caller knows the keys and their meaning. It depends on no
//! other crate of the workspace.

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

pub use condenser::{Condensed, Condenser};
pub use event::{Container, Event, Piece, Scalar, StreamFault};
pub use nesting::Nesting;
pub use number::Count;
pub use reader::{Malformed, Reader};
pub use stream::StreamReader;
pub use text::Text;
pub use value::Value;
