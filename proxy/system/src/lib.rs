//! What the operating system gives a process that runs for months: clock, threads, memory, file
//! descriptors, signals, and files that change.
//!
//! Begin with `clock.rs`: it is the only place that reads a clock.
//!
//! This crate knows no HTTP, tokens or tenants. It is not part of `net`, so that the journal is
//! built and tested without HTTP.
//!
//! - **Memory** (`memory.rs`): at nine tenths of what the container may take, the gateway refuses
//!   new requests. The figure is the memory of this process, or what its control group uses and the
//!   kernel cannot reclaim.
//! - **File descriptors** (`descriptors.rs`): the kernel gives out the lowest free number, so the
//!   number of a new socket shows how near the limit is. Sockets of clients leave room for
//!   connections to engines, and these leave room for the ledger.
//! - **Changed files** (`look.rs`): the caller compares `stat` results a few times per second.
//!   inotify would not see a ConfigMap's links change from every folder on their path, and network
//!   file systems do not report changes.
//! - **Readers** (`stdout.rs`): a command that follows ends when nobody reads its output any more.
//! - **Threads** (`thread.rs`): at the end of the process, a thread that takes too long is left
//!   behind.

pub mod clock;
pub mod descriptors;
pub mod lanes;
pub mod look;
pub mod memory;
pub mod panics;
pub mod process;
pub mod signals;
pub mod stdout;
pub mod thread;
