//! The real binary as a child process.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;
use tempfile::TempDir;

use crate::client::{Client, ask};
use crate::engine::{Connection, Engine};
use crate::http::{Message, bare, chunk, post};
use crate::patience::{Limit, PATIENCE, patiently};

pub(crate) use crate::program::binary;

/// The binary for a command that ends by itself, if need be by a signal.
pub(crate) fn bounded() -> Command {
    let mut command = Command::new("timeout");
    command.arg("--kill-after=5").arg((4 * PATIENCE).as_secs().to_string()).arg(binary());
    command
}

/// Runs a command of the binary to its end.
pub(crate) fn taximeter<S: AsRef<std::ffi::OsStr>>(words: impl IntoIterator<Item = S>) -> Output {
    let mut command = bounded();
    command.args(words).stdin(Stdio::null());
    command.output().expect("run taximeter")
}

/// What the gateway is told in its file.
pub(crate) struct Setup {
    upstream: String,
    sections: String,
}

impl Setup {
    /// One upstream for every model; every caller is the tenant `default`.
    pub(crate) fn before(engine: &Engine) -> Self {
        let address = engine.address();
        Self::with_upstream(&format!("name: engine, url: \"http://{address}\""))
    }

    /// As `before`, the upstream written out.
    pub(crate) fn with_upstream(members: &str) -> Self {
        Self { upstream: members.to_owned(), sections: String::new() }
    }

    /// Further members of the upstream.
    pub(crate) fn upstream(mut self, members: &str) -> Self {
        self.upstream = format!("{}, {members}", self.upstream);
        self
    }

    /// Further lines of the file.
    pub(crate) fn with(mut self, section: &str) -> Self {
        self.sections = format!("{}{section}\n", self.sections);
        self
    }

    /// Connections to the engine are kept for longer than a slow machine takes between two requests.
    pub(crate) fn keeping_connections(self) -> Self {
        self.with("limits: {upstream_keep_alive_seconds: 60}")
    }

    fn yaml(&self, data_dir: &Path) -> String {
        let Self { upstream, sections } = self;
        let data_dir = data_dir.display();
        format!(
            "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ndata_dir: \"{data_dir}\"\n\
             upstreams: [{{{upstream}}}]\n{sections}"
        )
    }

    /// Starts the gateway on a data directory of its own.
    pub(crate) fn start(self) -> Gateway {
        self.start_in(tempfile::tempdir().expect("a temporary folder"))
    }

    /// The same, with these variables in its environment.
    pub(crate) fn start_with(self, environment: &[(&str, &str)]) -> Gateway {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut serve = self.serve(Command::new(binary()), folder.path());
        serve.envs(environment.iter().copied());
        Gateway::run(serve, folder)
    }

    /// Starts the gateway on what an earlier one left.
    pub(crate) fn start_in(self, folder: TempDir) -> Gateway {
        Gateway::run(self.serve(Command::new(binary()), folder.path()), folder)
    }

    /// Starts the gateway where no file can be longer than this: to it, the disk is full. Needs no
    /// root, and the limit can be taken away.
    pub(crate) fn start_on_disk_of(self, bytes: usize) -> Gateway {
        let folder = tempfile::tempdir().expect("a temporary folder");
        self.start_where_files_have(bytes as u64, folder)
    }

    /// The same, on what an earlier one left.
    pub(crate) fn start_where_files_have(self, bytes: u64, folder: TempDir) -> Gateway {
        // Who goes beyond the limit gets a signal, which ends it unless it ignores that.
        let mut limited = Command::new("prlimit");
        limited.arg(format!("--fsize={bytes}:")).arg(binary());
        Gateway::run(self.serve(limited, folder.path()), folder)
    }

    /// What a gateway says that does not start on what an earlier one left.
    pub(crate) fn refused_in(self, folder: &TempDir) -> Output {
        let mut serve = self.serve(bounded(), folder.path());
        serve.stdin(Stdio::null()).output().expect("run the gateway")
    }

    /// The command that serves, run by another one.
    pub(crate) fn serve(&self, mut command: Command, folder: &Path) -> Command {
        let yaml = self.yaml(&folder.join("data"));
        let file = folder.join("taximeter.yaml");
        std::fs::write(&file, &yaml).expect("write the configuration");
        command.arg("serve").arg("--config").arg(&file);
        command
    }
}

/// A running gateway; killed when dropped.
pub(crate) struct Gateway {
    child: Child,
    listen: Option<SocketAddr>,
    admin: Option<SocketAddr>,
    log: Receiver<String>,
    /// What it said before it listened.
    pub(crate) began: Vec<Value>,
    /// Held by who wants that nobody reads it.
    reading: Arc<Mutex<()>>,
    folder: Option<TempDir>,
}

impl Gateway {
    /// Before an engine of OpenAI's habits.
    pub(crate) fn before(engine: &Engine) -> Self {
        Setup::before(engine).upstream("dialect: openai").start()
    }

    /// Without a file: on free ports, in a data directory of its own, and these flags.
    pub(crate) fn by_flags(flags: &[&str]) -> Self {
        Self::by_flags_with(flags, &[])
    }

    /// The same, with these variables in its environment.
    pub(crate) fn by_flags_with(flags: &[&str], environment: &[(&str, &Path)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut serve = Command::new(binary());
        serve.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        serve.arg("--data-dir").arg(folder.path().join("data")).args(flags);
        serve.envs(environment.iter().copied());
        Self::run(serve, folder)
    }

    /// Runs such a command, and waits until it listens.
    pub(crate) fn run(mut serve: Command, folder: TempDir) -> Self {
        let serve = serve.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = serve.spawn().expect("start the gateway");
        let (to_log, log) = channel();
        let stderr = BufReader::new(child.stderr.take().expect("its standard error"));
        let reading = Arc::new(Mutex::new(()));
        let may_read = reading.clone();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).all(|line| {
                drop(may_read.lock());
                to_log.send(line).is_ok()
            })
        });
        let folder = Some(folder);
        let mut gateway =
            Self { child, listen: None, admin: None, log, began: Vec::new(), reading, folder };
        gateway.await_listening();
        gateway
    }

    fn await_listening(&mut self) {
        let limit = Limit::begin();
        while self.listen.is_none() {
            let Ok(line) = self.log.recv_timeout(limit.left()) else {
                panic!("the gateway did not start; it said: {:#?}", self.began);
            };
            let event: Value = serde_json::from_str(&line).unwrap_or_else(|_| line.into());
            let first = |text: &str| text.split(", ").next()?.parse().ok();
            let address = |member: &str| event[member].as_str().and_then(first);
            if event["event"] == "listening" {
                (self.listen, self.admin) = (address("listen"), address("admin"));
            }
            self.began.push(event);
        }
    }

    /// The line of an event from before it listened.
    pub(crate) fn said_at_its_start(&self, name: &str) -> &Value {
        let said = self.began.iter().find(|event| event["event"] == name);
        said.unwrap_or_else(|| panic!("no {name}: {:#?}", self.began))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listen.expect("listens")
    }

    /// One request on a connection of its own.
    pub(crate) fn ask(&self, bytes: &[u8]) -> Message {
        ask(self.address(), bytes)
    }

    /// Connects and sends a request to the chat route.
    pub(crate) fn chat(&self, headers: &str, body: impl AsRef<[u8]>) -> Client {
        Client::saying(self.address(), &post("/v1/chat/completions", headers, body))
    }

    /// A chat whose answer is a stream, of which the client has read these events.
    pub(crate) fn streaming(
        &self,
        engine: &Engine,
        body: &str,
        events: &[&str],
    ) -> (Client, Connection) {
        let mut client = self.chat("", body);
        let mut connection = engine.begin_stream();
        client.head();
        for event in events {
            connection.send(&chunk(event));
            client.expect(event);
        }
        (client, connection)
    }

    /// The number of one of its threads. Each gives itself its name, some time after it was made.
    pub(crate) fn thread(&self, name: &str) -> String {
        let folder = format!("/proc/{}/task", self.child.id());
        let is_called = |task: &Path| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
        };
        let found = patiently(|| {
            let tasks = std::fs::read_dir(&folder).expect("threads");
            tasks.map(|task| task.expect("a thread").path()).find(|task| is_called(task))
        });
        let found = found.expect("a thread of that name");
        found.file_name().expect("its number").to_string_lossy().into_owned()
    }

    /// The most memory that it has taken so far, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.memory_by("VmHWM:")
    }

    /// The memory that it takes now, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.memory_by("VmRSS:")
    }

    fn memory_by(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("its status");
        let found = status.lines().find_map(|line| line.strip_prefix(name));
        let found = found.and_then(|found| found.trim().strip_suffix(" kB")).expect("a size");
        1024 * found.trim().parse::<u64>().expect("a number")
    }

    /// From now on it can open so many files and connections beside those that are open.
    pub(crate) fn spare_descriptors(&self, spare: usize) {
        let pid = self.child.id();
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("what it has open").count();
        self.limit_descriptors(open + spare);
    }

    /// From now on it can have so many files and connections open.
    pub(crate) fn limit_descriptors(&self, most: usize) {
        let pid = self.child.id().to_string();
        let mut limit = Command::new("prlimit");
        limit.args(["--pid", &pid, &format!("--nofile={most}:")]);
        assert!(limit.status().expect("run prlimit").success());
    }

    /// Waits for so many reserved requests that cost nothing, of the default tenant.
    pub(crate) fn await_voids(&self, reason: &str, count: usize) {
        let tenant = "taximeter_tenant=\"default\"";
        let reason = format!("taximeter_void_reason=\"{reason}\"");
        self.await_metric(&format!("taximeter_voids_total{{{tenant},{reason}}} {count}"));
    }

    /// Waits until `/metrics` has this line: some things are counted after their answer has left.
    pub(crate) fn await_metric(&self, line: &str) {
        let there = patiently(|| self.metrics().contains(line).then_some(()));
        assert!(there.is_some(), "{line}");
    }

    /// Waits until this event is in the log; its line.
    pub(crate) fn await_event(&self, name: &str) -> Value {
        let limit = Limit::begin();
        loop {
            let line = self.log.recv_timeout(limit.left()).expect("the event in time");
            let event: Value = serde_json::from_str(&line).unwrap_or_default();
            if event["event"] == name {
                return event;
            }
        }
    }

    /// `/metrics` as text.
    pub(crate) fn metrics(&self) -> String {
        self.admin("/metrics").text().to_owned()
    }

    /// `/metrics` in the format that is asked for.
    pub(crate) fn scrape(&self, accept: &str) -> Message {
        let headers = format!("Accept: {accept}\r\nConnection: close\r\n");
        ask(self.admin_address(), &bare("GET", "/metrics", &headers))
    }

    pub(crate) fn admin_address(&self) -> SocketAddr {
        self.admin.expect("has an admin address")
    }

    /// GET on the admin address.
    pub(crate) fn admin(&self, target: &str) -> Message {
        ask(self.admin_address(), &bare("GET", target, "Connection: close\r\n"))
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.folder.as_ref().expect("has a folder").path().join("data")
    }

    /// The ledger's records as the command prints them now.
    pub(crate) fn records(&self) -> Vec<Value> {
        records(&self.data_dir())
    }

    /// The only record.
    pub(crate) fn record(&self) -> Value {
        let mut records = self.records();
        assert_eq!(records.len(), 1, "one request, one record: {records:#?}");
        records.remove(0)
    }

    /// Waits until the ledger has this many records: after a client has left, nobody tells when.
    pub(crate) fn await_records(&self, count: usize) -> Vec<Value> {
        let came = patiently(|| Some(self.records()).filter(|records| records.len() >= count));
        let Some(records) = came else {
            panic!("{count} records did not come: {:#?}", self.records());
        };
        assert_eq!(records.len(), count, "{records:#?}");
        records
    }

    /// Takes the limit of `start_on_disk_of` away.
    pub(crate) fn enlarge_disk(&self) {
        let pid = self.child.id().to_string();
        let status = Command::new("prlimit").args(["--fsize=unlimited:", "--pid", &pid]).status();
        assert!(status.expect("run prlimit").success(), "the limit stays");
    }

    /// Waits until it says that it is ready, or that it is not.
    pub(crate) fn await_ready(&self, status: u16) {
        let there = patiently(|| (self.admin("/readyz").status() == status).then_some(()));
        assert!(there.is_some(), "it never was {status}");
    }

    /// Whether it has logged this event since somebody last asked.
    pub(crate) fn has_said(&self, event: &str) -> bool {
        let event = format!("\"event\":\"{event}\"");
        self.log.try_iter().any(|line| line.contains(&event))
    }

    /// Nobody reads its log until this is dropped, and its pipe fills up.
    pub(crate) fn unread(&self) -> MutexGuard<'_, ()> {
        self.reading.lock().expect("no panic")
    }

    /// Its configuration's file.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.folder.as_ref().expect("has a folder").path().join("taximeter.yaml")
    }

    /// Puts another configuration in the place of its own, as programs do that mean well.
    pub(crate) fn rewrite(&self, setup: &Setup) {
        let (file, next) = (self.config_file(), self.config_file().with_extension("next"));
        std::fs::write(&next, setup.yaml(&self.data_dir())).expect("write the configuration");
        std::fs::rename(next, file).expect("replace the configuration");
    }

    /// Asks it to read its configuration again.
    pub(crate) fn hang_up(&self) {
        self.signal("HUP");
    }

    /// Asks politely to end, as Kubernetes does.
    pub(crate) fn terminate(&self) {
        self.signal("TERM");
    }

    /// Asks as somebody at a terminal does.
    pub(crate) fn interrupt(&self) {
        self.signal("INT");
    }

    /// It does nothing until it is to go on, as a machine that is suspended.
    pub(crate) fn stand_still(&self) {
        self.signal("STOP");
    }

    pub(crate) fn go_on(&self) {
        self.signal("CONT");
    }

    /// Waits until new connections are refused or closed at once: it has begun to drain.
    pub(crate) fn await_refusal(&self) {
        let served = || {
            let request = bare("GET", "/draining", "");
            Client::try_connect(self.address())
                .and_then(|mut client| client.try_send(&request).and_then(|()| client.try_answer()))
                .is_ok_and(|answer| answer.status() == 404)
        };
        let limit = Limit::begin();
        while served() {
            assert!(!limit.is_over(), "it goes on serving");
        }
    }

    fn signal(&self, name: &str) {
        let status =
            Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(status.expect("run kill").success(), "the gateway is gone");
    }

    /// Waits for the end of the process; the rest of its log.
    pub(crate) fn exit(&mut self) -> (ExitStatus, Vec<String>) {
        let mut said = Vec::new();
        // The log ends with the process: waiting for it has a time limit, waiting for the process
        // has none.
        let limit = Limit::begin();
        loop {
            match self.log.recv_timeout(limit.left()) {
                Ok(line) => said.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the gateway does not end: {said:#?}"),
            }
        }
        (self.child.wait().expect("the exit status"), said)
    }

    /// SIGKILL; what is left on disk.
    pub(crate) fn kill(mut self) -> TempDir {
        self.child.kill().expect("kill the gateway");
        self.child.wait().expect("reap the gateway");
        self.into_folder()
    }

    /// What is left on disk of a gateway that has ended.
    pub(crate) fn into_folder(mut self) -> TempDir {
        self.folder.take().expect("has a folder")
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the gateway's log: {:#?}", self.log.iter().collect::<Vec<_>>());
        }
    }
}

/// The records of a ledger as the command prints them, wherever its gateway feeds them to.
pub(crate) fn records(data_dir: &Path) -> Vec<Value> {
    records_of(&["--store", "sqlite", "--data-dir", data_dir.to_str().expect("a path in UTF-8")])
}

/// The same of a place that is named by these words.
pub(crate) fn records_of(place: &[&str]) -> Vec<Value> {
    let output = taximeter(["records"].iter().chain(place));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("records in UTF-8");
    lines.lines().map(|line| serde_json::from_str(line).expect("a record in JSON")).collect()
}
