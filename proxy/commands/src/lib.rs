//! The commands of `taximeter`, one file each.
//!
//! A command reads its arguments, asks the crates that know the matter, and prints. `serve` starts and
//! stops the gateway. What ends a command is in `exit.rs`, and which errors lead there in `failure.rs`.
//!
//! This crate is not part of the program's own, because it is small rather than fast: nothing here runs
//! for each request.

mod against;
mod backup;
mod bill;
mod check;
mod completions;
mod convert;
mod count;
mod demo;
mod exit;
mod export;
mod failure;
mod fleet;
mod healthy;
mod hex;
mod inject;
mod keys;
mod ledger;
mod load;
mod model_files;
mod period;
mod prices;
mod progress;
mod records;
mod refusals;
mod rerate;
mod schema;
mod serve;
mod sessions;
mod sidecar;
mod simulate;
mod verify;
mod webhook;

use std::io::{self, BufWriter, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use taximeter_system::clock;

use self::exit::{Exit, complain, text};
use self::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  taximeter demo                                     see it work, without any setup
  taximeter serve --upstream http://127.0.0.1:8000   meter an engine
  taximeter top                                      watch the gateway live
  taximeter records --follow                         print each request when it ends
  taximeter bill                                     show what each tenant owes this month";

/// Meters the tokens between your clients and your inference engines, and prices every request.
#[derive(Debug, Parser)]
#[command(name = "taximeter", version, after_help = EXAMPLES, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::ServeArgs),
    Demo(demo::DemoArgs),
    Simulate(simulate::SimulateArgs),
    Top(taximeter_top::TopArgs),
    Fleet(fleet::FleetArgs),
    Healthy(healthy::HealthyArgs),
    Check(check::CheckArgs),
    Schema(schema::SchemaArgs),
    Completions(completions::CompletionsArgs),
    Man(completions::ManArgs),
    Bill(bill::BillArgs),
    Records(records::RecordsArgs),
    Sessions(sessions::SessionsArgs),
    Refusals(refusals::RefusalsArgs),
    Rerate(rerate::RerateArgs),
    Verify(verify::VerifyArgs),
    Backup(backup::BackupArgs),
    Convert(convert::ConvertArgs),
    Prices(prices::PricesArgs),
    Count(count::CountArgs),
    Keys(keys::KeysArgs),
    Inject(inject::InjectArgs),
    Webhook(webhook::WebhookArgs),
}

/// Runs the command that the arguments of the process name, and maps its errors to exit codes.
#[must_use]
pub fn main() -> ExitCode {
    if let Err(fault) = taximeter_resident::outlive_full_volumes() {
        complain(&format!("taximeter: a full volume may end the process: {fault}"));
    }
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(fault) if is_broken_pipe(&fault) => ExitCode::SUCCESS,
        Err(fault) => {
            complain(&format!("taximeter: {}", text(&fault)));
            fault.downcast_ref::<Failure>().map_or(Exit::Failed, Failure::exit).into()
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    let mut out = BufWriter::new(io::stdout());
    let mut err = io::stderr();
    let code = match command {
        Command::Serve(args) => return serve::run(&args),
        Command::Webhook(args) => return webhook::run(&args),
        Command::Healthy(args) => return healthy::run(&args),
        Command::Demo(args) => {
            demo::demo(&args)?;
            ExitCode::SUCCESS
        }
        Command::Simulate(args) => {
            simulate::simulate(&args, &mut out)?;
            ExitCode::SUCCESS
        }
        Command::Top(args) => {
            taximeter_top::run(&args, &mut out).map_err(Failure::from)?;
            ExitCode::SUCCESS
        }
        Command::Verify(args) => verify::run(&args, clock::wall(), &mut out)?,
        Command::Check(args) => check::run(&args, clock::wall(), &mut out, &mut err)?,
        Command::Schema(schema::SchemaArgs {}) => {
            schema::run(&mut out)?;
            ExitCode::SUCCESS
        }
        Command::Completions(args) => {
            completions::completions(&args, Cli::command(), &mut out)?;
            ExitCode::SUCCESS
        }
        Command::Man(args) => {
            completions::man(&args, Cli::command(), &mut out)?;
            ExitCode::SUCCESS
        }
        Command::Keys(args) => keys::run(&args, &mut out, &mut err)?,
        Command::Fleet(args) => {
            fleet::run(&args, clock::wall(), &mut io::stdin().lock(), &mut out, &mut err)?
        }
        Command::Inject(args) => inject::run(&args, &mut io::stdin().lock(), &mut out, &mut err)?,
        Command::Count(args) => {
            count::run(&args, clock::wall(), &mut io::stdin().lock(), &mut out)?
        }
        Command::Prices(args) => prices::run(&args, clock::wall(), &mut out, &mut err)?,
        Command::Rerate(args) => rerate::run(&args, clock::wall(), &mut out)?,
        Command::Bill(args) => {
            let ledger = args.ledger.find()?;
            bill::run(&args, &ledger, clock::wall(), &mut ledger.feeds(), &mut out)?;
            ExitCode::SUCCESS
        }
        Command::Backup(args) => {
            backup::run(&args, &mut out, &mut err)?;
            ExitCode::SUCCESS
        }
        Command::Convert(args) => convert::run(&args, clock::wall(), &mut out, &mut err)?,
        Command::Records(args) => {
            let ledger = args.ledger.find()?;
            records::run(&args, &ledger, &mut ledger.feeds(), &mut out, &mut err)?;
            ExitCode::SUCCESS
        }
        Command::Sessions(args) => {
            let ledger = args.ledger.find()?;
            sessions::run(&args, &ledger, clock::wall(), &mut ledger.feeds(), &mut out)?;
            ExitCode::SUCCESS
        }
        Command::Refusals(args) => {
            let ledger = args.ledger.find()?;
            refusals::run(&args, &ledger, clock::wall(), &mut ledger.feeds(), &mut out)?;
            ExitCode::SUCCESS
        }
    };
    out.flush()?;
    Ok(code)
}

/// Whether the reader of the output has left, as in `taximeter records | head`.
fn is_broken_pipe(fault: &anyhow::Error) -> bool {
    fault.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    })
}
