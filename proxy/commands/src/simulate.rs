//! `taximeter simulate`: runs the simulated engine.

use std::future::Future;
use std::io::Write;
use std::net::SocketAddr;

use anyhow::Context;
use clap::Args;
use taximeter_simulator::{Behaviour, Simulator};
use taximeter_system::signals::Stop;

const EXAMPLES: &str = "\
Examples:
  taximeter simulate                                    an engine on 127.0.0.1:8000
  taximeter simulate --prefill-ms 200 --gap-ms 20       a slow engine
  taximeter simulate --set die_after=10                 an engine whose streams break off
  curl 127.0.0.1:8000/simulate/served                   what the engine really served

A request can change any setting for itself: `x-simulate: gap_ms=5,output_tokens=64,status=503`.";

/// Runs a simulated engine: chat, completions, responses, messages, embeddings
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SimulateArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8000")]
    listen: SocketAddr,

    /// Milliseconds to the first token
    #[arg(long, value_name = "MS", default_value_t = 20.0)]
    prefill_ms: f64,

    /// Milliseconds between two chunks. 0 sends as fast as the client reads
    #[arg(long, value_name = "MS", default_value_t = 10.0)]
    gap_ms: f64,

    /// Largest random change of each gap, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    jitter_ms: f64,

    /// Output tokens of each answer, unless the request asks for fewer
    #[arg(long, value_name = "N", default_value_t = 64)]
    output_tokens: u64,

    /// Output tokens that are reasoning
    #[arg(long, value_name = "N", default_value_t = 0)]
    reasoning_tokens: u64,

    /// Tokens in one chunk
    #[arg(long, value_name = "N", default_value_t = 1)]
    chunk_tokens: u64,

    /// Report known beginnings of prompts as cached input
    #[arg(long)]
    prefix_cache: bool,

    /// Send the chunks of all streams at the same moments, as an engine with batches does
    #[arg(long)]
    in_step: bool,

    /// Other settings, as in `x-simulate`: die_after=10, status=503, no_usage and so on
    #[arg(long, value_name = "SETTINGS", default_value = "", value_parser = settings)]
    set: String,
}

impl SimulateArgs {
    fn behaviour(&self) -> anyhow::Result<Behaviour> {
        let Self { prefill_ms, gap_ms, jitter_ms, output_tokens, .. } = self;
        let Self { reasoning_tokens, chunk_tokens, .. } = self;
        let mut flags = format!(
            "prefill_ms={prefill_ms},gap_ms={gap_ms},jitter_ms={jitter_ms},\
             output_tokens={output_tokens},reasoning_tokens={reasoning_tokens},\
             chunk_tokens={chunk_tokens}"
        );
        for (set, flag) in [(self.prefix_cache, ",prefix_cache"), (self.in_step, ",in_step")] {
            flags += if set { flag } else { "" };
        }
        Ok(Behaviour::default().with(&flags)?.with(&self.set)?)
    }
}

/// Checks the settings.
fn settings(text: &str) -> Result<String, String> {
    match Behaviour::default().with(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Runs the engine until a signal ends it.
pub(crate) fn simulate(args: &SimulateArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut stop = Stop::new()?;
        run(args, stop.wait(), out).await
    })
}

/// Runs the engine until `stop`.
///
/// Errors: it cannot listen on the address; a setting is not valid.
async fn run(
    args: &SimulateArgs,
    stop: impl Future<Output = ()>,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let engine = Simulator::bind(args.listen, args.behaviour()?)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    writeln!(out, "simulated engine on http://{}", engine.addr())?;
    out.flush()?;
    engine.serve_until(stop).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::time::Duration;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        simulate: SimulateArgs,
    }

    #[test]
    fn flags_and_settings_make_one_behaviour() {
        let line = "simulate --gap-ms 2.5 --prefix-cache --set status=503,output_tokens=9";
        let line = Line::try_parse_from(line.split(' ')).unwrap();
        let behaviour = line.simulate.behaviour().unwrap();
        assert_eq!(behaviour.gap, Duration::from_micros(2500));
        assert!(behaviour.prefix_cache);
        assert_eq!(behaviour.status, Some(503));
        assert_eq!(behaviour.output_tokens, 9, "settings come last");
    }

    #[test]
    fn without_flags_the_engine_behaves_by_default() {
        let line = Line::try_parse_from(["simulate"]).unwrap();
        assert_eq!(line.simulate.behaviour().unwrap(), Behaviour::default());
    }

    #[test]
    fn a_setting_that_does_not_exist_stops_at_the_command_line() {
        assert!(Line::try_parse_from(["simulate", "--set", "speed=9"]).is_err());
    }
}
