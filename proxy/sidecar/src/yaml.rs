//! YAML text that is changed where it has to be, and nowhere else.

pub(crate) mod edit;
mod render;
pub(crate) mod tree;
