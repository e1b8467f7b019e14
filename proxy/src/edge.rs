//! Where the outside world is touched.

pub(crate) mod feeder;
pub(crate) mod journal;
pub(crate) mod store;
