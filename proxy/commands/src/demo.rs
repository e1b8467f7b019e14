//! `taximeter demo`: runs a simulated engine, the gateway, the clients of three tenants and a coding
//! agent. It shows a live table, and the bill at the end.

mod client;
mod gateway;
mod live;
mod task;
mod traffic;

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use sha2::{Digest, Sha256};
use taximeter_simulator::{Behaviour, Simulator};
use taximeter_system::clock;
use taximeter_system::signals::Stop;
use taximeter_system::stdout;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use self::gateway::Gateway;
use self::live::Screen;
use self::traffic::{HABITS, Traffic};

/// Time for clients to read the rest of their answers at the end.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// Time for the coding agent to end its task, which takes some seconds from the start on.
const LAST_TURNS: Duration = Duration::from_secs(20);

const EXAMPLES: &str = "\
Examples:
  taximeter demo                            ten seconds of traffic, then the bill
  taximeter demo --keep                     keep it running for your own requests
  taximeter demo --data-dir ./demo          keep the ledger: taximeter records --data-dir ./demo";

/// Shows Taximeter at work, without any setup: engine, gateway, three tenants, live table, bill
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Seconds of traffic
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u64,

    /// Keep the gateway and the engine running until Ctrl-C
    #[arg(long)]
    keep: bool,

    /// Directory for the ledger [default: a temporary directory, removed at the end]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Runs the demo until its time is over or the user stops it.
///
/// Errors: something cannot start; a request fails.
pub(crate) fn demo(args: &DemoArgs) -> anyhow::Result<()> {
    let home = Home::new(args)?;
    // One thread is enough for engine, clients and table. The gateway has its own runtime, so it
    // starts and stops outside of this one.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let engine = runtime
        .block_on(Simulator::bind("127.0.0.1:0", Behaviour::default()))
        .context("cannot start the simulated engine")?;
    let gateway = Gateway::start(&configuration(engine.addr(), home.path()))?;
    let outcome = show(args, &home, &runtime, &gateway);
    gateway.stop();
    outcome
}

/// Everything that happens while the gateway runs.
fn show(args: &DemoArgs, home: &Home, runtime: &Runtime, gateway: &Gateway) -> anyhow::Result<()> {
    let mut out = io::stdout();
    let seconds = Duration::from_secs(args.seconds);
    writeln!(out, "{}", opening(gateway))?;
    let mut screen = Screen::new(io::stdout(), out.is_terminal());
    let session = format!("fix-login-{}", clock::wall().strftime("%Y%m%d-%H%M%S"));
    let end = runtime.block_on(drive(gateway, &session, &mut screen, seconds))?;
    writeln!(out, "\nThe bill:\n")?;
    gateway.bill(&mut out)?;
    writeln!(out, "\n{}", where_to_look(gateway, home, &session, args.keep))?;
    if args.keep && end == End::TimeOver {
        runtime.block_on(async {
            tokio::select! {
                () = stopped() => {}
                () = stdout::reader_left() => {}
            }
        });
    }
    Ok(())
}

/// Why the traffic ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    TimeOver,
    Stopped,
}

/// Runs the clients, and shows what the gateway measures.
async fn drive(
    gateway: &Gateway,
    session: &str,
    screen: &mut Screen<impl Write>,
    seconds: Duration,
) -> anyhow::Result<End> {
    let mut traffic = Traffic::start(gateway.listen(), session);
    let mut ticks = tokio::time::interval(screen.period());
    let started = ticks.tick().await;
    let mut stop = std::pin::pin!(stopped());
    let mut left = std::pin::pin!(stdout::reader_left());
    let mut over = std::pin::pin!(tokio::time::sleep_until(started + seconds));
    let end = loop {
        tokio::select! {
            now = ticks.tick() => screen.update(&gateway.rows(), now - started)?,
            failure = traffic.failure() => failure?,
            () = &mut over => break End::TimeOver,
            () = &mut stop => break End::Stopped,
            () = &mut left => return Err(io::Error::from(io::ErrorKind::BrokenPipe).into()),
        }
    };
    match end {
        End::TimeOver => traffic.finish(LAST_TURNS).await?,
        End::Stopped => {
            traffic.stop_task();
            traffic.finish(LAST_ANSWERS).await?;
        }
    }
    ticks.reset_immediately();
    let now = ticks.tick().await;
    screen.last(&gateway.rows(), now - started)?;
    Ok(end)
}

/// Ready when the user ends the demo.
async fn stopped() {
    match Stop::new() {
        Ok(mut stop) => stop.wait().await,
        Err(_) => std::future::pending().await,
    }
}

/// The directory of the ledger.
enum Home {
    Given(PathBuf),
    Temporary(TempDir),
}

impl Home {
    fn new(args: &DemoArgs) -> anyhow::Result<Self> {
        if let Some(path) = &args.data_dir {
            return Ok(Self::Given(path.clone()));
        }
        let mut directory = tempfile::Builder::new()
            .prefix("taximeter-demo-")
            .tempdir()
            .context("cannot make a temporary directory; name a directory with --data-dir")?;
        directory.disable_cleanup(args.keep);
        Ok(Self::Temporary(directory))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Temporary(directory) => directory.path(),
        }
    }
}

/// The configuration of the demo.
fn configuration(engine: SocketAddr, data_dir: &Path) -> String {
    let data_dir = serde_json::Value::from(data_dir.to_string_lossy());
    let mut text = format!(
        r#"listen: 127.0.0.1:0
admin: 127.0.0.1:0
data_dir: {data_dir}
upstreams:
  - {{name: openai, url: "http://{engine}", dialect: openai, models: ["gpt-*"]}}
  - {{name: anthropic, url: "http://{engine}", dialect: anthropic, models: ["claude-*"]}}
  - name: openai-reasoning
    url: "http://{engine}"
    dialect: openai
    models: ["o4-*", "text-embedding-*"]
tenants:
  unknown: refuse
  keys:
"#
    );
    let mut told = Vec::new();
    for habit in &HABITS {
        if !told.contains(&habit.tenant) {
            told.push(habit.tenant);
            let hash = Sha256::digest(habit.key);
            let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            let (tenant, team) = (habit.tenant, habit.team);
            text += &format!(
                "    - {{id: {tenant}-demo, tenant: {tenant}, sha256: \"{hash}\", \
                 labels: {{team: {team}}}}}\n"
            );
        }
    }
    text
}

fn opening(gateway: &Gateway) -> String {
    format!(
        "The gateway runs on http://{}, with a simulated engine and three tenants:\n\
         acme streams chat and sometimes hangs up, globex caches prompts, initech uses reasoning\n\
         and has a coding agent at work on one task, with a sub-agent.\n",
        gateway.listen()
    )
}

fn where_to_look(gateway: &Gateway, home: &Home, session: &str, keep: bool) -> String {
    let path = home.path().display();
    let (listen, admin) = (gateway.listen(), gateway.admin());
    let ledger = format!(
        "Records: taximeter records --data-dir {path}\n\
         What the agent's task cost, and why: taximeter sessions {session} --data-dir {path}"
    );
    match home {
        _ if keep => {
            let key = HABITS.first().map_or("", |habit| habit.key);
            format!(
                "Console: http://{admin}/\nMetrics: http://{admin}/metrics\n{ledger}\n\
                 The same in the console: http://{admin}/session?name={session}\n\n\
                 The gateway runs until Ctrl-C. Send it a request:\n  \
                 curl http://{listen}/v1/chat/completions -H 'authorization: Bearer {key}' \\\n    \
                 -H 'content-type: application/json' \
                 -d '{{\"model\": \"gpt-5.4-mini\", \"messages\": \
                 [{{\"role\": \"user\", \"content\": \"hi\"}}]}}'"
            )
        }
        Home::Given(_) => {
            format!("{ledger}\nUse --keep to keep the console running at http://{admin}/.")
        }
        Home::Temporary(_) => "\
Use --data-dir DIR to keep the ledger for `taximeter records`, `taximeter bill`, and
`taximeter sessions`, which tells what the agent's task cost, and why.
Use --keep to keep the gateway and its console running."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_names_every_tenant_once_and_no_key() {
        let engine = SocketAddr::from(([127, 0, 0, 1], 9));
        let text = configuration(engine, Path::new("/tmp/a \"b\""));
        assert!(text.contains(r#"data_dir: "/tmp/a \"b\"""#), "{text}");
        for tenant in ["acme", "globex", "initech"] {
            assert_eq!(text.matches(&format!("tenant: {tenant},")).count(), 1, "{text}");
        }
        assert!(HABITS.iter().all(|habit| !text.contains(habit.key)));
    }
}
