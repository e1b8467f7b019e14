//! What the operating system gives a process that runs for months: its clock, threads, memory, file
//! descriptors, signals, and files that change. Nothing in here knows HTTP, tokens or tenants.

pub mod clock;
pub mod descriptors;
pub mod lanes;
pub mod look;
pub mod memory;
pub mod panics;
pub mod process;
pub mod signals;
pub mod thread;
