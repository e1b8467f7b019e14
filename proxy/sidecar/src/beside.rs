//! What standing beside an engine, or beside an application, takes.

pub(crate) mod application;
pub(crate) mod engine;
