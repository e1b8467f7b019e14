//! The gateway.

mod commands;
mod edge;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::Parser;

/// Meters and prices inference.
#[derive(Debug, Parser)]
#[command(name = "taximeter", version)]
enum Command {
    Bill(commands::bill::BillArgs),
    Records(commands::records::RecordsArgs),
}

fn main() -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut err = io::stderr();
    let mut read = |_from| Ok(Box::new(std::iter::empty()) as edge::store::Entries);
    let outcome = match Command::parse() {
        Command::Bill(args) => {
            commands::bill::run(&args, jiff::Timestamp::UNIX_EPOCH, &mut read, &mut out)
        }
        Command::Records(args) => commands::records::run(&args, &mut read, &mut out, &mut err),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(err, "taximeter: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
