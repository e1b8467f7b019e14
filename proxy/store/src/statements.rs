//! Statements: the operator makes and signs them, and the tenant checks them.
//!
//! A final statement is recorded in the data directory or in the database before it is given out
//! (`issue.rs`). It never changes. What comes later is in a further one (`later.rs`).

mod issue;
mod later;
mod make;
mod signed;
mod summary;

pub(crate) use self::issue::read_recorded;
pub use self::issue::{MadeStatement, issue, recorded};
pub use self::later::{Later, later};
pub use self::make::StatementError;
pub use self::signed::Signed;
pub use self::summary::summary;
