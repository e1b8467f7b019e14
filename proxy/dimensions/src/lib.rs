//! Finds what a request is part of: its session, agent, turn, client and end user, by the names that
//! clients of agents send.
//!
//! ```text
//! Names::new(&Settings)                once for each configuration
//!     .read_headers(headers) → Reading     also says which members of the body are worth noting
//!     .finish(notes, user)   → Found       the dimensions, and what was dropped
//! ```
//!
//! [`Filter`] finds requests by what they said.
//!
//! Begin with `table.rs`: it says which client sends what, and which of several names counts.
//!
//! # Invariants
//!
//! - What clients say proves nothing. It identifies nobody, and nobody pays by it.
//! - Nothing is invented. A client that names no session has none.
//! - A value that cannot be taken as it is is dropped and told, never cut or mended.
//! - Of a JSON text only named members are taken: it may contain paths and device ids.
//! - A request that says nothing costs no allocation.
//!
//! The crate knows no tenant, no socket and no clock. Chains of responses are in `gateway`, which
//! remembers them.

mod client;
mod dimension;
mod filter;
mod form;
mod keep;
mod names;
mod place;
mod reading;
mod settings;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use dimension::Dimension;
pub use filter::{Asked, Filter};
pub use keep::{Hasher, Keep};
pub use names::Names;
pub use place::{Place, PlaceError};
pub use reading::{Found, Lineage, Reading};
pub use settings::{Settings, TAGS_MAX};
pub use value::{Dropped, END_USER_BYTES_MAX, NAME_BYTES_MAX, TAG_BYTES_MAX, name};
