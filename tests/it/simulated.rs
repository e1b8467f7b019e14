//! The simulated engine as a child process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::gateway::binary;

/// It answers by itself; killed when dropped.
pub(crate) struct Simulated {
    child: Child,
    /// Where it listens.
    pub(crate) address: String,
}

impl Simulated {
    /// One that is quick.
    pub(crate) fn start() -> Self {
        let mut simulate = Command::new(binary());
        simulate.args([
            "simulate",
            "--listen",
            "127.0.0.1:0",
            "--prefill-ms",
            "1",
            "--gap-ms",
            "1",
        ]);
        let mut child = simulate
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start the simulated engine");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its standard output");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let address = line.rsplit("http://").next().expect("an address").trim().to_owned();
        Self { child, address }
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
