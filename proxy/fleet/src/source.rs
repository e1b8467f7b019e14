//! What each program calls the quantities: one file with one table for each. A renamed metric is one
//! more name in its row, a new program one more file and its line here.

mod amd;
mod dcgm;
mod llama_cpp;
mod node;
mod proc;
mod sglang;
mod vllm;

use crate::row::Source;

pub use self::proc::{PROC_FILES, PROC_NEVER, PROC_ROWS, ProcRow, read_proc};

/// All programs that are read.
pub const SOURCES: &[&Source] = &[
    &vllm::SOURCE,
    &sglang::SOURCE,
    &llama_cpp::SOURCE,
    &dcgm::SOURCE,
    &amd::SOURCE,
    &node::SOURCE,
];
