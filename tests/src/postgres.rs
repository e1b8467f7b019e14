//! A PostgreSQL server for tests: Debian's `postgresql`, in a temporary folder, ended by its own
//! process id.

mod pool;

use std::fs::Permissions;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tempfile::TempDir;

use self::pool::Pool;

/// Who owns the databases.
pub const USER: &str = "taximeter";
/// On connections by TCP; those by the socket need none.
pub const PASSWORD: &str = "not:a/secret@all";
/// The account of Debian's package: the server refuses to run as root.
const ACCOUNT: &str = "postgres";
/// Where Debian's package has it.
const PGBOUNCER: &str = "/usr/sbin/pgbouncer";
const READY: &str = "database system is ready to accept connections";
/// How often a free port is looked for: another process may take it first.
const PORTS_MAX: usize = 8;
/// What it holds is thrown away: nothing has to reach the disk.
const SETTINGS: &[&str] = &[
    "fsync=off",
    "full_page_writes=off",
    "shared_buffers=64MB",
    "max_wal_size=1GB",
    "lc_messages=C",
    "deadlock_timeout=200ms",
];

/// A running server; stopped when dropped.
#[derive(Debug)]
pub struct Server {
    programs: Programs,
    folder: TempDir,
    port: u16,
    settings: Vec<String>,
    running: Option<Child>,
    databases: AtomicU32,
    pool: Mutex<Option<Pool>>,
}

/// Where the programs are, and as whom they run.
#[derive(Debug)]
struct Programs {
    folder: PathBuf,
    as_other: bool,
}

/// The server that all tests of this process share as long as one of them has it.
///
/// Errors: `postgresql` is not installed, or does not start.
pub fn shared() -> io::Result<Arc<Server>> {
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return Ok(server);
    }
    let server = Arc::new(Server::start(&[])?);
    *shared = Arc::downgrade(&server);
    Ok(server)
}

impl Server {
    /// Makes a server and starts it, with further `settings` (`name=value`).
    ///
    /// Errors: `postgresql` is not installed, or does not start.
    pub fn start(settings: &[&str]) -> io::Result<Self> {
        let programs = Programs::find()?;
        let folder = tempfile::Builder::new().prefix("pg").tempdir()?;
        let password = folder.path().join("password");
        std::fs::write(&password, PASSWORD)?;
        programs.give(folder.path())?;
        programs.give(&password)?;
        let mut initdb = programs.command("initdb");
        initdb.args(["--no-sync", "--encoding=UTF8", "--locale=C", "--auth-local=trust"]);
        initdb.args(["--auth-host=scram-sha-256", "--username", USER, "--pwfile"]).arg(&password);
        initdb.arg("--pgdata").arg(folder.path().join("data"));
        output(&mut initdb)?;
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let mut server = Self {
            programs,
            folder,
            port: 0,
            settings,
            running: None,
            databases: AtomicU32::new(0),
            pool: Mutex::new(None),
        };
        let mut failed = io::Error::other("no port");
        for _ in 0..PORTS_MAX {
            server.port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            match server.resume() {
                Ok(()) => return Ok(server),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Starts it again where it was.
    ///
    /// Errors: it does not start.
    pub fn resume(&mut self) -> io::Result<()> {
        let mut postgres = self.programs.command("postgres");
        postgres.arg("-D").arg(self.folder.path().join("data"));
        postgres.args(["-p", &self.port.to_string(), "-k"]).arg(self.folder.path());
        postgres.args(["-c", "listen_addresses=127.0.0.1"]);
        for setting in SETTINGS.iter().copied().chain(self.settings.iter().map(String::as_str)) {
            postgres.args(["-c", setting]);
        }
        let mut child = postgres.stderr(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        let mut log = BufReader::new(child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?);
        let mut said = String::new();
        while !said.contains(READY) {
            if log.read_line(&mut said)? == 0 {
                child.wait()?;
                return Err(io::Error::other(format!("postgres does not start: {said}")));
            }
        }
        // It must never wait for a reader of its log.
        std::thread::spawn(move || io::copy(&mut log, &mut io::sink()));
        self.running = Some(child);
        Ok(())
    }

    /// Ends it as a power cut of the machine would, and waits for its end.
    ///
    /// Errors: those of the system.
    pub fn crash(&mut self) -> io::Result<()> {
        let Some(mut child) = self.running.take() else { return Ok(()) };
        signal(&child, "QUIT")?;
        child.wait().map(|_| ())
    }

    /// Starts it anew with TLS: a certificate and its key, both in PEM.
    ///
    /// Errors: it does not start.
    pub fn secure(&mut self, certificate: &str, key: &str) -> io::Result<()> {
        self.crash()?;
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            let path = self.folder.path().join("data").join(name);
            std::fs::write(&path, text)?;
            std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            self.programs.give(&path)?;
        }
        self.settings.push("ssl=on".to_owned());
        self.resume()
    }

    /// Stops or continues all its processes: it accepts connections, and answers nothing.
    ///
    /// Errors: those of the system.
    pub fn freeze(&self, frozen: bool) -> io::Result<()> {
        let Some(child) = &self.running else { return Ok(()) };
        let id = child.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
        let mut kill = Command::new("kill");
        kill.arg(if frozen { "-STOP" } else { "-CONT" });
        kill.arg(id.to_string()).args(children.split_whitespace());
        // One of them may have ended by itself.
        kill.stderr(Stdio::null()).status().map(|_| ())
    }

    /// Makes an empty database; its name.
    ///
    /// Errors: the server is not there.
    pub fn database(&self) -> io::Result<String> {
        self.copy_of("template1")
    }

    /// Makes a database with the content of another one, to which nobody may be connected; its name.
    ///
    /// Errors: the server is not there, or says no.
    pub fn copy_of(&self, database: &str) -> io::Result<String> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.ask("postgres", &format!("CREATE DATABASE {name} TEMPLATE {database}"))?;
        Ok(name)
    }

    /// The URL of a database, by the server's socket.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://{USER}@{folder}:{}/{database}", self.port)
    }

    /// The URL of a database behind PgBouncer, which gives each transaction any session. It is Debian's
    /// `pgbouncer`, and starts with the first of these URLs.
    ///
    /// Errors: `pgbouncer` is not installed, or does not start.
    pub fn pooled_url(&self, database: &str) -> io::Result<String> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let port = match &*pool {
            Some(pool) => pool.port(),
            None => {
                let command = self.programs.run_as_other(PathBuf::from(PGBOUNCER));
                let started = Pool::start(command, self.folder.path(), self.port, USER)?;
                pool.insert(started).port()
            }
        };
        Ok(format!("postgres://{USER}@127.0.0.1:{port}/{database}?sslmode=disable"))
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The folder of the socket and of `data`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs statements; what they answer, a line a row.
    ///
    /// Errors: the server is not there, or says no.
    pub fn ask(&self, database: &str, statements: &str) -> io::Result<String> {
        output(&mut self.psql(database, statements))
    }

    /// A session of its own that runs statements.
    #[must_use]
    pub fn psql(&self, database: &str, statements: &str) -> Command {
        let mut psql = Command::new(self.programs.path("psql"));
        psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-U", USER, "-d", database]);
        psql.args(["-p", &self.port.to_string(), "-h"]).arg(self.folder.path());
        psql.args(["-c", statements]);
        psql
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.freeze(false);
        let _ = self.crash();
    }
}

impl Programs {
    fn find() -> io::Result<Self> {
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let folders = versions.map(|version| version.path().join("bin"));
        let newest = folders.filter(|folder| folder.join("initdb").exists()).max();
        let folder = newest.ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "install Debian's package postgresql")
        })?;
        Ok(Self { folder, as_other: am_root()? })
    }

    /// Makes a file one of that account.
    fn give(&self, path: &Path) -> io::Result<()> {
        if !self.as_other {
            return Ok(());
        }
        chown(path, Some(id("-u")?), Some(id("-g")?))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The program `name`, in an account that the server does not refuse.
    fn command(&self, name: &str) -> Command {
        self.run_as_other(self.path(name))
    }

    fn run_as_other(&self, program: PathBuf) -> Command {
        let mut command = if self.as_other {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--clear-groups"]);
            command.arg(program);
            command
        } else {
            Command::new(program)
        };
        command.stdin(Stdio::null()).current_dir("/").env("LC_ALL", "C");
        command
    }
}

fn am_root() -> io::Result<bool> {
    Ok(output(Command::new("id").arg("-u"))?.trim() == "0")
}

/// The number of Debian's account.
fn id(which: &str) -> io::Result<u32> {
    let number = output(Command::new("id").args([which, ACCOUNT]))?;
    number.trim().parse().map_err(io::Error::other)
}

fn signal(child: &Child, name: &str) -> io::Result<()> {
    let mut kill = Command::new("kill");
    output(kill.arg(format!("-{name}")).arg(child.id().to_string())).map(|_| ())
}

/// What a program that does well says.
fn output(command: &mut Command) -> io::Result<String> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut said = String::new();
    if let Some(stdout) = &mut child.stdout {
        stdout.read_to_string(&mut said)?;
    }
    let ended = child.wait_with_output()?;
    if ended.status.success() {
        return Ok(said);
    }
    let complaint = String::from_utf8_lossy(&ended.stderr).into_owned();
    Err(io::Error::other(format!("{command:?}: {complaint}")))
}
