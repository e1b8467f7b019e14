//! What `dimensions` counts, with the allocator of the C library, whose calls DHAT sees.

use anyhow::Result;
use taximeter_benches::dimensions::run;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}
