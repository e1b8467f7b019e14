//! Benches: every claim of speed or memory and the command that prints it.
