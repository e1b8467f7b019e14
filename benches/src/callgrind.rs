//! Instructions and allocations in place of time, where that is noisy.

use std::process::Command;

use anyhow::{Context as _, Result};

/// How many instructions `program` takes to its end, with what it was given, by callgrind.
///
/// Errors: no valgrind, or a program that it cannot run.
pub fn instructions(program: &Command) -> Result<f64> {
    let text = valgrind(&["--tool=callgrind", "--callgrind-out-file=/dev/null"], program)?;
    let count = text.lines().find_map(|line| line.split_once("Collected : "));
    let (_, count) = count.with_context(|| format!("{program:?}: {text}"))?;
    Ok(count.trim().parse()?)
}

/// How many blocks of memory `program` takes to its end, with what it was given, by DHAT.
///
/// Errors: as those of [`instructions`].
pub fn allocations(program: &Command) -> Result<f64> {
    let text = valgrind(&["--tool=dhat", "--dhat-out-file=/dev/null"], program)?;
    let total = text.lines().find(|line| line.contains("Total:"));
    let count = total.and_then(|line| line.split_once(" in ")?.1.strip_suffix(" blocks"));
    let count = count.with_context(|| format!("{program:?}: {text}"))?;
    Ok(count.replace(',', "").parse()?)
}

/// Keeps libc from filling and copying memory with one instruction, which valgrind would count once a
/// byte and no processor does.
const NO_REPEATS: (&str, &str) = (
    "GLIBC_TUNABLES",
    "glibc.cpu.x86_rep_stosb_threshold=1000000000:glibc.cpu.x86_rep_movsb_threshold=1000000000",
);

/// What valgrind says of a program.
fn valgrind(tool: &[&str], program: &Command) -> Result<String> {
    let output = Command::new("valgrind")
        .args(tool)
        .arg(program.get_program())
        .args(program.get_args())
        .env(NO_REPEATS.0, NO_REPEATS.1)
        .envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .output()
        .context("valgrind (Debian: valgrind)")?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}
