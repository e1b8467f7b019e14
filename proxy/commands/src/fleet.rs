//! `taximeter fleet`: what engines, GPUs and hosts tell of themselves.

mod document;
mod history;
mod now;
mod scrape;
mod table;
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
  taximeter fleet                                          what the gateway on this machine knows
  taximeter fleet --layer L6 --watch                       its engines, each second
  taximeter fleet --json | jq '.sources[] | [.name, .state, .why]'
  taximeter fleet history hw.power --last 24h --compare 1w what was kept of it
  taximeter fleet read http://127.0.0.1:8000/metrics       how one program's metrics are read

Exit code: 0, or 69 if the gateway does not answer.";

const READ_EXAMPLES: &str = "\
Examples:
  taximeter fleet read http://127.0.0.1:8000/metrics       an engine: vLLM, SGLang, llama.cpp
  taximeter fleet read http://gpu-3:9400                   an exporter, at /metrics
  curl -s http://gpu-3:9100/metrics | taximeter fleet read -
  taximeter fleet read scrape.prom --json | jq '.unknown[] | [.name, .why]'

Exit code: 0, or 1 if no known program's metrics were found, or 69 if the URL
does not answer with metrics.";

const HISTORY_EXAMPLES: &str = "\
Examples:
  taximeter fleet history taximeter.fleet.engine.requests_running
  taximeter fleet history hw.power --last 24h --compare 1w
  taximeter fleet history hw.power --json | jq '.series[] | [.labels, .statistic]'

Exit code: 0, or 69 if the gateway does not answer.";

/// Shows what engines, GPUs and hosts tell: a running gateway, or a URL or file
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    command: Option<FleetCommand>,
    #[command(flatten)]
    now: now::NowArgs,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Shows what the gateway has kept of one quantity, over time
    #[command(after_help = HISTORY_EXAMPLES)]
    History(history::HistoryArgs),
    /// Shows how the metrics of one program are read: which program it is and why, each quantity or why
    /// it is unknown, and the lines that were skipped
    #[command(after_help = READ_EXAMPLES)]
    Read {
        /// URL, which is asked once and without credentials, or a file, or `-` for standard input
        #[arg(value_name = "URL|FILE")]
        from: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Prints what a gateway knows, or what metrics are in the schema.
///
/// `now` is the time of the metrics. The exit code is 1 if they are of no program that is known.
/// Errors: there is nobody to ask and nothing to read, or nowhere to print.
pub(crate) fn run(
    args: &FleetArgs,
    now: Timestamp,
    input: &mut impl Read,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    match &args.command {
        None => now::run(&args.now, out)?,
        Some(FleetCommand::History(history)) => history::run(history, now, out)?,
        Some(FleetCommand::Read { from, json }) => {
            return read_once(from, *json, now, input, out, err);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn read_once(
    from: &str,
    json: bool,
    now: Timestamp,
    input: &mut impl Read,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<ExitCode> {
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
