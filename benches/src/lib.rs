//! Benches: every claim of speed or memory and the command that prints it.
//!
//! `benches/run` is the command; it says what each number is. The pieces here are shared by its
//! three programs: `engine` answers, `load` asks, `compare` starts everything, counts and prints.
//! Engine and load are far cheaper than what stands between them, so they parse the least that
//! HTTP allows and render nothing twice.

pub mod about;
pub mod answer;
pub mod callgrind;
pub mod clock;
pub mod dimensions;
pub mod load;
pub mod month;
pub mod process;
pub mod record;
pub mod report;
pub mod wire;

/// Prints one line on standard output: the benches' only way to speak.
#[expect(
    clippy::print_stdout,
    reason = "the table and the numbers are what these programs are for"
)]
pub fn say(line: &str) {
    println!("{line}");
}
