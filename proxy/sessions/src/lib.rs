//! What a task of coding agents cost: the requests of one session → its tree of agents, its turns in
//! order, and what was wasted.
//!
//! ```text
//! Request… ─▶ SessionBuilder ─▶ Session      one session, opened
//! Session ─▶ table                           for a terminal; as JSON it is what the API answers
//! DaySum… ─▶ Top ─▶ Listing                  what sessions add up to, by day; the dearest ones
//! DaySum… ─▶ SessionsWriter                  those of a day that is closed, in a file (`day_file.rs`)
//! ```
//!
//! Begin with `request.rs` (what is read of a request), then `session.rs`. `tree.rs` has the rule for
//! agents, `turns.rs` that for turns, `waste.rs` those for waste.
//!
//! # Invariants
//!
//! - The sums of the session are those of its turns, of its agents, and of its requests, to the last
//!   digit. A cost that is unknown, or known in part, makes the sum an "at least".
//! - Nothing is invented. A request whose client names no agent belongs to the agent without a name, and
//!   one that names no turn is a turn of its own.
//! - Each request is in at most one kind of waste, so that their costs can be added up.
//! - Whatever clients claim of agents and parents, there is a tree: `ParentState` says what was wrong.
//! - A session has at most [`REQUESTS_MAX`] requests here. Further ones are only in its sums.
//!
//! This crate knows no store and no journal: it is told the requests of one session of one tenant.

mod agent_set;
mod codec;
mod day_file;
mod day_sum;
mod listing;
mod listing_table;
mod request;
mod session;
mod spread;
mod stalls;
mod sums;
mod table;
mod tree;
mod turns;
mod waste;
mod words;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;

pub use codec::Malformed;
pub use day_file::{
    SealedSessions, SessionRow, SessionRows, SessionsFile, SessionsFooter, SessionsWriter,
    check_sessions,
};
pub use day_sum::{DaySum, DueSum, RunningRequest};
pub use listing::{Listed, Listing, Top, TopBy};
pub use listing_table::listing_table;
pub use request::{Price, Request};
pub use session::{REQUESTS_MAX, Session, SessionBuilder};
pub use spread::Spread;
pub use stalls::{STALLS_MAX, Stall};
pub use sums::Sums;
pub use table::table;
pub use tree::{Agent, ParentState};
pub use turns::Turn;
pub use waste::{Waste, WasteKind, WastedRequest};
