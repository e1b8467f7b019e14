//! What was measured on: without it the numbers mean nothing.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

/// Date, processor, kernel, and how busy the machine was; `load_before` is `/proc/loadavg` as it
/// was at the start. Errors: `/proc` or a program of the system is missing.
pub fn machine(load_before: &str) -> Result<String> {
    let load = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
    let load_after = fs::read_to_string("/proc/loadavg")?;
    let cpus = fs::read_to_string("/proc/cpuinfo")?;
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name\t: ")).unwrap_or("?");
    let cores = std::thread::available_parallelism()?;
    Ok(format!(
        "{} · {cores} × {model} · {} · load average {} before, {} after",
        said("date", &["-u", "+%Y-%m-%d %H:%M UTC"])?,
        said("uname", &["-sr"])?,
        load(load_before),
        load(&load_after),
    ))
}

/// What a program says, on whichever of its outputs. Errors: it does not start.
pub fn said(program: &str, arguments: &[&str]) -> Result<String> {
    let output =
        Command::new(program).args(arguments).output().with_context(|| program.to_owned())?;
    let text = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&text).trim().to_owned())
}
