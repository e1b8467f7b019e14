//! Statements: the operator makes and signs them, and the tenant checks them.

mod make;
mod signed;

pub use self::make::{StatementError, make};
pub use self::signed::Signed;
