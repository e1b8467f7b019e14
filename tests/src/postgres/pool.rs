//! PgBouncer before a server: each transaction gets whichever session is free.

use std::io::{self, BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What its log says once it takes connections.
const READY: &str = "process up";

/// A running PgBouncer; stopped when dropped.
#[derive(Debug)]
pub(super) struct Pool {
    port: u16,
    running: Child,
}

impl Pool {
    /// Starts `command`, PgBouncer, before the server in `folder` on `port`.
    ///
    /// Errors: it does not start.
    pub(super) fn start(
        mut command: Command,
        folder: &Path,
        port: u16,
        user: &str,
    ) -> io::Result<Self> {
        let own = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let settings = folder.join("pgbouncer.ini");
        // Few sessions, so that they change often. Idle ones go: each test has a database of its own.
        std::fs::write(
            &settings,
            format!(
                "[databases]\n* = host={} port={port} user={user}\n[pgbouncer]\n\
                 listen_addr = 127.0.0.1\nlisten_port = {own}\nunix_socket_dir =\n\
                 auth_type = any\npool_mode = transaction\ndefault_pool_size = 4\n\
                 server_idle_timeout = 2\nmax_client_conn = 500\n",
                folder.display()
            ),
        )?;
        command.arg(&settings).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut pool = Self { port: own, running: command.spawn()? };
        let log = pool.running.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let (mut log, mut said) = (BufReader::new(log), String::new());
        while !said.contains(READY) {
            if log.read_line(&mut said)? == 0 {
                return Err(io::Error::other(format!("pgbouncer does not start: {said}")));
            }
        }
        // It must never wait for a reader of its log.
        std::thread::spawn(move || io::copy(&mut log, &mut io::sink()));
        Ok(pool)
    }

    /// Its port on 127.0.0.1.
    pub(super) const fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _ = self.running.kill();
        let _ = self.running.wait();
    }
}
