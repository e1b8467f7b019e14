//! `taximeter fleet`: what engines, GPUs and hosts tell of themselves.

mod document;
mod scrape;
mod text;

use std::fs::File;
use std::io::{Read, Write};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use taximeter_control::exposition::{Bounds, Form, body, read};

use super::ledger::unless_reader_left;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  taximeter fleet read http://127.0.0.1:8000/metrics       an engine: vLLM, SGLang, llama.cpp
  taximeter fleet read http://gpu-3:9400                   an exporter, at /metrics
  curl -s http://gpu-3:9100/metrics | taximeter fleet read -
  taximeter fleet read scrape.prom --json | jq '.unknown[] | [.name, .why]'

Exit code: 0, or 1 if no known program's metrics were found, or 69 if the URL
does not answer with metrics.";

/// Shows what engines, GPUs and hosts tell of themselves
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Shows how the metrics of one program are read: which program it is and why, each quantity or why
    /// it is unknown, and the lines that were skipped
    #[command(after_help = EXAMPLES)]
    Read {
        /// URL, which is asked once and without credentials, or a file, or `-` for standard input
        #[arg(value_name = "URL|FILE")]
        from: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Reads metrics, and prints what they are in the schema.
///
/// `now` is the time of the metrics. The exit code is 1 if they are of no program that is known.
/// Errors: there is nothing to read, or nowhere to print.
pub(crate) fn run(
    args: &FleetArgs,
    now: Timestamp,
    input: &mut impl Read,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let FleetCommand::Read { from, json } = &args.command;
    let bounds = Bounds::default();
    let answer = bytes(from, &bounds, input)?;
    let answer = body(&answer);
    let exposition = read(&answer, &bounds);
    let reading = taximeter_fleet::read(&exposition.samples, now);
    let text = match json {
        true => serde_json::to_string_pretty(&document::of(&exposition, &reading))? + "\n",
        false => text::of(&exposition, &reading),
    };
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    unless_reader_left(written.map_err(crate::failure::Failure::from))?;
    if reading.programs.iter().any(|program| program.is_read) {
        return Ok(ExitCode::SUCCESS);
    }
    let why = match exposition.form {
        Form::Text => "has no metrics of a program that is read".to_owned(),
        other => format!("is {other}, and not metrics"),
    };
    writeln!(err, "taximeter: {from} {why}")?;
    Ok(Exit::Failed.into())
}

/// What is at `from`; one byte more than is read, so that more can be told.
fn bytes(from: &str, bounds: &Bounds, input: &mut impl Read) -> anyhow::Result<Vec<u8>> {
    if from.contains("://") {
        return Ok(scrape::get(from, bounds.bytes)?);
    }
    let most = bounds.bytes as u64 + 1;
    let mut bytes = Vec::new();
    let read = match from {
        "-" => input.take(most).read_to_end(&mut bytes),
        path => File::open(path).and_then(|file: File| file.take(most).read_to_end(&mut bytes)),
    };
    read.with_context(|| format!("cannot read {from}"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
