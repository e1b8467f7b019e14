//! What is true of every session, and of the tree and the turns.

mod bounds;
mod day_file;
mod days;
mod sums;
mod table;
mod tree;
mod turns;
mod waste;
