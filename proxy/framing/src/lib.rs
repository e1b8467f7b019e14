//! Cuts a body that arrives in pieces into the parts that mean something: server-sent events, lines
//! of JSON, messages of AWS event streams, elements of a JSON list, or one document.
//!
//! - [`Sniffer`] tells what a body is by its content type and its first bytes. [`FirstLine`] tells
//!   one document from many, one a line.
//! - [`Blocks`] cuts a stream into blocks. An [`Event`] is what a block says.
//! - [`Body`] gathers one document.
//! - [`Decoder`] undoes content codings, within limits.
//!
//! A read may begin and end anywhere: that never changes the result. A part that one read holds
//! whole is not copied. A long one is condensed while it arrives, so that its length has no limit.
//! The crate knows no wire format: it does not read what the parts say.

mod blocks;
mod body;
mod decode;
mod elements;
mod first_line;
mod frames;
mod lines;
mod partial;
mod sniff;
mod sse;

pub use blocks::Blocks;
pub use body::Body;
pub use decode::{DecodeFault, Decoder, RATIO_MAX, is_identity, is_readable};
pub use first_line::FirstLine;
pub use frames::exception;
pub use partial::Data;
pub use sniff::{BodyKind, Sniffer};
pub use sse::{Block, Event};
