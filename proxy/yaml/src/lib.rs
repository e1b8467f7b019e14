//! YAML text to a tree that keeps the place of each value, and from there into types.
//!
//! [`parse`] makes the tree. Scalars stay text in it, and whoever reads it decides their types.
//! [`read`] reads a tree into a type of `serde` and stops at the first mistake; a reader that is to
//! find all mistakes at once goes through the tree itself.

mod read;
mod tree;

pub use read::{ReadError, read};
pub use tree::{Kind, MapKey, Node, SyntaxError, parse};
