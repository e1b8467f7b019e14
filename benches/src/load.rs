//! Load on a server under measurement: what is asked, what came, and what it cost.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::clock::pause;
use crate::process::Process;

/// Left to a server after a load, so that work it put off is counted too.
pub const SETTLE: Duration = Duration::from_millis(500);

/// How the load generator is to ask; its `--help` says what each is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Load {
    /// Connections, each with one request at a time.
    pub connections: u32,
    /// No request starts later than this.
    pub seconds: f64,
    /// Chunks of a stream; answers are plain JSON without it.
    pub chunks: Option<u32>,
    /// Between two chunks, in milliseconds.
    pub gap: u32,
    /// Between two requests of a connection, in milliseconds.
    pub every: Option<u32>,
    /// Seconds over which the connections start.
    pub ramp: f64,
    /// Hang up when the time is over.
    pub cut: bool,
    /// Model to ask for.
    pub model: Option<&'static str>,
}

impl Load {
    /// Streams that outlast the run and are hung up at its end.
    #[must_use]
    pub fn open_ended() -> Self {
        Self { chunks: Some(1_000_000), ramp: 1.0, cut: true, ..Self::default() }
    }

    /// Starts the load generator among `programs` against `target`. Errors: it does not start.
    pub fn start(&self, programs: &Path, target: SocketAddr) -> Result<Child> {
        Command::new("timeout")
            .args(["--signal", "KILL", "120"])
            .arg(programs.join("load"))
            .args(["--target", &target.to_string()])
            .args(self.arguments())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("the load generator")
    }

    /// Asks `server`, which listens on `target`, until it is done. Errors: those of `start` and of
    /// `finish`, and a server that is gone.
    pub fn measure(
        &self,
        programs: &Path,
        target: SocketAddr,
        server: &Process,
        engine: &Process,
    ) -> Result<Seen> {
        let (before, engine_before) = (server.cpu()?, engine.cpu()?);
        let result = finish(self.start(programs, target)?)?;
        pause(SETTLE);
        let engine_nanos = engine.cpu()?.nanos_since(&engine_before);
        let mut seen = Seen {
            cpu_micros: server.cpu()?.nanos_since(&before) as f64 / 1e3,
            harness_cpu_micros: engine_nanos as f64 / 1e3,
            result,
        };
        seen.harness_cpu_micros += seen.number("cpu")?;
        Ok(seen)
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            format!("--connections={}", self.connections),
            format!("--seconds={}", self.seconds),
            format!("--gap={}", self.gap),
            format!("--ramp={}", self.ramp),
        ];
        arguments.extend(self.chunks.map(|chunks| format!("--chunks={chunks}")));
        arguments.extend(self.every.map(|every| format!("--every={every}")));
        arguments.extend(self.model.map(|model| format!("--model={model}")));
        arguments.extend(self.cut.then(|| "--cut".to_owned()));
        arguments
    }
}

/// What a load did, and what it cost.
#[derive(Debug)]
pub struct Seen {
    /// What the load generator says.
    pub result: Value,
    /// CPU time of the server.
    pub cpu_micros: f64,
    /// CPU time of the engine and the load generator.
    pub harness_cpu_micros: f64,
}

impl Seen {
    /// A number of the result. Errors: there is none of that name.
    pub fn number(&self, key: &str) -> Result<f64> {
        self.result.get(key).and_then(Value::as_f64).with_context(|| format!("{key} of a load"))
    }
}

/// The result of a load. Errors: it failed, or one of its requests did.
pub fn finish(load: Child) -> Result<Value> {
    let output = load.wait_with_output()?;
    ensure!(output.status.success(), "the load generator ended with {}", output.status);
    let result: Value = serde_json::from_slice(&output.stdout)?;
    let failures = result.get("failures").and_then(Value::as_u64);
    ensure!(failures == Some(0), "requests failed: {result}");
    Ok(result)
}
