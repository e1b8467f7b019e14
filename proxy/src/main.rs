//! `taximeter`: the gateway and its commands.

use std::process::ExitCode;

/// A request allocates about sixty times, and thousands of streams start and end. This allocator is
/// faster than the system's, and it returns memory after a peak.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    taximeter_commands::main()
}
