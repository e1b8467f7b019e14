//! Instructions in place of time, where that is noisy.

use std::process::Command;

use anyhow::{Context as _, Result};

/// How many instructions `program` takes to its end, with what it was given, by callgrind.
///
/// Errors: no valgrind, or a program that it cannot run.
pub fn instructions(program: &Command) -> Result<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program.get_program())
        .args(program.get_args())
        .envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .output()
        .context("valgrind (Debian: valgrind)")?;
    let text = String::from_utf8_lossy(&output.stderr);
    let count = text.lines().find_map(|line| line.split_once("Collected : "));
    let (_, count) = count.with_context(|| format!("{program:?}: {text}"))?;
    Ok(count.trim().parse()?)
}
