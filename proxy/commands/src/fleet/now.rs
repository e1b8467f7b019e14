//! What a running gateway knows of its engines, GPUs and hosts.

use std::io::{IsTerminal as _, Write, stdout};
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use taximeter_top::AdminArgs;

use super::table;
use crate::failure::Failure;

/// Time between two looks.
const WATCH_PERIOD: Duration = Duration::from_secs(1);
/// Moves the cursor of a terminal to its first line, and clears what is there.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// What is asked, and how it is shown.
#[derive(Debug, Args)]
pub(super) struct NowArgs {
    #[command(flatten)]
    admin: AdminArgs,

    /// Only quantities of this layer: L1 GPUs, L3 hosts, L4 owners, L6 engines
    #[arg(long, value_parser = layers(), ignore_case = true)]
    layer: Option<String>,

    /// Ask again each second, until Ctrl-C
    #[arg(long)]
    watch: bool,

    /// Print JSON: the answer of /api/v1/fleet. With --watch, one answer a line
    #[arg(long)]
    json: bool,
}

fn layers() -> PossibleValuesParser {
    PossibleValuesParser::new(["L1", "L2", "L3", "L4", "L5", "L6", "L7", "L8"])
}

/// Asks the gateway, and prints what it knows.
///
/// Errors: the gateway does not answer, or there is nowhere to print.
pub(super) fn run(args: &NowArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let layer = args.layer.as_ref().map(|layer| layer.to_uppercase());
    let query = layer.as_ref().map(|layer| format!("layer={layer}")).unwrap_or_default();
    let timer = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let clears = args.watch && !args.json && stdout().is_terminal();
    loop {
        let answer = args.admin.ask("/api/v1/fleet", &query).map_err(Failure::from)?;
        if args.json {
            out.write_all(&answer)?;
            out.write_all(b"\n")?;
        } else {
            let fleet = serde_json::from_slice(&answer)?;
            let clear = if clears { CLEAR } else { "" };
            write!(out, "{clear}{}", table::of(&fleet, layer.as_deref()))?;
        }
        out.flush()?;
        if !args.watch {
            return Ok(());
        }
        timer.block_on(async { tokio::time::sleep(WATCH_PERIOD).await });
    }
}
