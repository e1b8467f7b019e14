//! What it costs to find a request's session, agent, turn, client and end user.
//!
//! `dimensions` prints a row for each kind of request: instructions by callgrind and allocations by
//! DHAT, of all that is done for dimensions before a request is sent. That is reading its headers,
//! noting members of its body beside what is read of it anyway, and making the dimensions of both.
//! `benches/run --only dimensions` builds and starts it.
//!
//! It starts itself again to be counted, with the allocator of the program: an allocation is counted
//! as what it takes there. DHAT sees none of these, so `dimensions_blocks` counts them.
//!
//! valgrind shows a program no instructions for SHA. So a hash is counted as what it takes without
//! them, several times as much as with them, and has a column of its own.

use std::process::Command;

use anyhow::Result;
use taximeter_benches::dimensions::{REQUESTS, Request, Work, run};
use taximeter_benches::{callgrind, say};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Requests of the two runs of which the difference is told.
const TIMES: [u32; 2] = [1_000, 3_000];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => print_all(),
        arguments => run(arguments),
    }
}

fn print_all() -> Result<()> {
    let heads = ["instructions", "of them hashes", "allocations"];
    let [instructions, hashes, blocks] = heads;
    say(&format!("{:<32}{instructions:>14}{hashes:>16}{blocks:>14}", "a request says"));
    for Request { name, hashed, .. } in &REQUESTS {
        let each = |how: fn(&Command) -> Result<f64>, program: &str| {
            let of = |work| one(how, program, work, name);
            Ok::<_, anyhow::Error>(of(Work::Dimensions)? - of(Work::Body)?)
        };
        let instructions = each(callgrind::instructions, "dimensions")?;
        let blocks = each(callgrind::allocations, "dimensions_blocks")?;
        let hash = || one(callgrind::instructions, "dimensions", Work::Hashes, name);
        let hashes = hashed.map_or(Ok(0.0), |_| hash())?;
        say(&format!("{name:<32}{instructions:>14.0}{hashes:>16.0}{blocks:>14.1}"));
    }
    say(&format!("hashes: in software; {}", processor()));
    Ok(())
}

/// How the program hashes on this processor.
fn processor() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sha") {
        return "outside valgrind the crate sha2 takes this processor's instructions for SHA";
    }
    "outside valgrind it depends on the processor"
}

/// What one more request takes.
fn one(how: fn(&Command) -> Result<f64>, program: &str, work: Work, name: &str) -> Result<f64> {
    let [few, many] = TIMES;
    let program = std::env::current_exe()?.with_file_name(program);
    let of = |times: u32| {
        let mut program = Command::new(&program);
        program.args([work.as_str(), name, &times.to_string()]);
        how(&program)
    };
    Ok((of(many)? - of(few)?) / f64::from(many - few))
}
