//! `taximeter top` in a real terminal: tmux, 80×24.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::client::Client;
use crate::engine::{Connection, Engine};
use crate::fixtures::{CHAT, CHAT_ANSWER, HELLO, STREAM_CHAT};
use crate::gateway::{Gateway, Setup, binary, bounded, taximeter};
use crate::http::json_answer;
use crate::patience::patiently;
use crate::tls::Terminator;

/// A shell in a terminal of a tmux of its own; ends with the test.
struct Tmux {
    folder: TempDir,
}

impl Tmux {
    fn start() -> Self {
        let tmux = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        let size = ["-x", "80", "-y", "24"];
        let mut start = tmux.command(&["-f", "/dev/null", "new-session", "-d"]);
        // The shell of nobody in particular: a prompt without surprises.
        start.args(size).args(["env", "-u", "NO_COLOR", "PS1=$ ", "ENV=", "LC_ALL=C.UTF-8", "sh"]);
        let output = start.output().expect("run tmux; tests/run installs it");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        tmux
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(self.folder.path().join("socket")).args(words);
        command.env_remove("TMUX");
        command
    }

    fn told(&self, words: &[&str]) -> String {
        let output = self.command(words).output().expect("run tmux");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Types a line.
    fn type_line(&self, line: &str) {
        self.told(&["send-keys", "-l", line]);
        self.told(&["send-keys", "Enter"]);
    }

    fn press(&self, key: &str) {
        self.told(&["send-keys", key]);
    }

    /// What is on the terminal now, line by line.
    fn lines(&self) -> Vec<String> {
        self.told(&["capture-pane", "-p"]).lines().map(str::to_owned).collect()
    }

    /// Whether anything on the terminal has another colour than the terminal's own.
    fn has_colours(&self) -> bool {
        let drawn = self.told(&["capture-pane", "-e", "-p"]);
        let mut styles = drawn.split("\x1b[").skip(1).filter_map(|rest| rest.split('m').next());
        // 30 to 37 are colours, 38 what has more numbers behind it, 39 the terminal's own.
        styles.any(|style| style.split(';').any(|number| ("30".."39").contains(&number)))
    }

    /// Waits until the terminal shows all of this; what it shows then.
    fn await_all(&self, texts: &[&str]) -> Vec<String> {
        let there = patiently(|| {
            let lines = self.lines();
            let has = |text: &&str| lines.iter().any(|line| line.contains(*text));
            texts.iter().all(has).then_some(lines)
        });
        there.unwrap_or_else(|| panic!("{texts:?} never came: {:#?}", self.lines()))
    }

    /// Types the command, and then a line that says how it ended.
    fn top(&self, before: &str, admin: SocketAddr) {
        let (binary, pid) = (binary().display(), self.pid_file());
        let pid = pid.display();
        let top = format!("{before} exec {binary} top --every 0.2 --admin {admin}");
        self.type_line(&format!("sh -c 'echo $$ > {pid}; {top}'; echo ended=$?"));
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.path().join("pid")
    }

    /// Fails unless the shell has its terminal back as it was: its screen, its cursor, its line
    /// editing, its echo.
    fn assert_given_back(&self) {
        self.await_all(&["ended=0"]);
        let modes = self.told(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]);
        assert_eq!(modes.trim(), "0 1", "the alternate screen is off, the cursor is shown");
        self.type_line("stty -a | tr ' ;' '\\n\\n' | grep -xE 'icanon|echo|isig' | tr '\\n' +");
        self.await_all(&["isig+icanon+echo+"]);
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

/// A gateway whose tenant acme has had an answer and is being streamed another.
fn busy(engine: &Engine) -> (Gateway, Client, Connection) {
    let header = "header: {name: x-tenant, trusted_peers: [\"127.0.0.0/8\"]}";
    let gateway = Setup::before(engine)
        .upstream("dialect: openai")
        .with(&format!("tenants: {{{header}}}"))
        .start();
    let mut client = gateway.chat("x-tenant: acme\r\nConnection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    client.answer();
    let mut client = gateway.chat("x-tenant: acme\r\n", STREAM_CHAT);
    let mut connection = engine.begin_stream();
    client.head();
    connection.send(&crate::http::chunk(HELLO));
    client.expect(HELLO);
    (gateway, client, connection)
}

#[test]
fn a_terminal_shows_what_runs_and_is_given_back_when_q_is_pressed() {
    let engine = Engine::start();
    let (gateway, _client, _connection) = busy(&engine);
    let tmux = Tmux::start();
    tmux.top("", gateway.admin_address());
    let lines =
        tmux.await_all(&["acme", "gpt-4o", "generating", "answering", "rates over the last"]);
    assert_eq!(lines.len(), 24, "{lines:#?}");
    let begins = |at: usize, text: &str| assert!(lines[at].starts_with(text), "{text}: {lines:#?}");
    begins(23, "q quit  Tab overview  ? help  p pause  s sort: spend");
    assert!(lines[0].contains("serving") && lines[1].contains("1 running"), "{lines:#?}");
    for head in ["tenants 1 ", "models 1 ", "running 1 ", "upstreams 1 "] {
        assert!(lines.iter().any(|line| line.starts_with(head)), "{head}: {lines:#?}");
    }
    assert!(tmux.has_colours());
    tmux.press("?");
    tmux.await_all(&["Esc  Ctrl-C    quit"]);
    tmux.press("?");
    tmux.press("2");
    tmux.await_all(&["Tab tenants"]);
    tmux.press("p");
    tmux.await_all(&["PAUSED"]);
    tmux.press("q");
    tmux.assert_given_back();
}

#[test]
fn a_terminal_is_given_back_on_a_signal_too_and_has_no_colours_that_nobody_wants() {
    let engine = Engine::start();
    let (gateway, _client, _connection) = busy(&engine);
    let tmux = Tmux::start();
    tmux.top("NO_COLOR=1", gateway.admin_address());
    tmux.await_all(&["acme", "generating"]);
    assert!(!tmux.has_colours());
    let pid = std::fs::read_to_string(tmux.pid_file()).expect("its process id");
    let killed = Command::new("kill").args(["-TERM", pid.trim()]).status();
    assert!(killed.expect("run kill").success());
    tmux.assert_given_back();
}

#[test]
fn a_gateway_that_goes_away_is_missed_and_what_it_said_stays() {
    let engine = Engine::start();
    let (gateway, _client, _connection) = busy(&engine);
    let tmux = Tmux::start();
    tmux.top("", gateway.admin_address());
    tmux.await_all(&["acme", "generating"]);
    drop(gateway);
    let lines = tmux.await_all(&["no answer from http://127.0.0.1:", "trying again"]);
    assert!(lines.iter().any(|line| line.starts_with("acme")), "{lines:#?}");
    tmux.press("C-c");
    tmux.assert_given_back();
}

/// Two looks as plain text.
fn once(address: &str, more: &[&str], token: Option<&str>) -> Output {
    let mut command = bounded();
    command.args(["top", "--every", "0.1", "--admin", address]).args(more);
    command.env_remove("TAXIMETER_ADMIN_TOKEN");
    command.envs(token.map(|token| ("TAXIMETER_ADMIN_TOKEN", token)));
    command.stdin(std::process::Stdio::null()).output().expect("run taximeter")
}

#[test]
fn what_is_no_terminal_gets_one_look_as_plain_text() {
    let engine = Engine::start();
    let (gateway, _client, _connection) = busy(&engine);
    let address = gateway.admin_address().to_string();
    for more in [&["--once"][..], &[]] {
        let output = once(&address, more, None);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(!text.contains('\x1b'), "{text:?}");
        for part in ["serving", "tenants 1", "acme", "gpt-4o", "generating", "answering"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn the_token_goes_by_the_environment_and_tls_trusts_the_file_that_is_named() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).with("admin_token: correct-horse-battery").start();
    let terminator = Terminator::before_address(gateway.admin_address());
    let address = format!("https://localhost:{}", terminator.address.port());
    let ca = ["--ca", terminator.certificate.to_str().expect("a path in UTF-8")];
    let good = once(&address, &ca, Some("correct-horse-battery"));
    assert!(good.status.success(), "{}", String::from_utf8_lossy(&good.stderr));
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    for token in [None, Some("wrong-horse-battery")] {
        let refused = once(&address, &ca, token);
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
        assert!(said(&refused).contains("TAXIMETER_ADMIN_TOKEN"), "{}", said(&refused));
    }
    let untrusted = once(&address, &[], Some("correct-horse-battery"));
    assert_eq!(untrusted.status.code(), Some(69), "{}", said(&untrusted));
    let help = taximeter(["top", "--help"]);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(help.contains("Examples:") && help.contains("TAXIMETER_ADMIN_TOKEN"), "{help}");
}

#[test]
fn a_gateway_that_is_not_there_ends_with_69_and_an_address_that_is_none_with_2() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = free.local_addr().expect("its address").to_string();
    drop(free);
    let silent = once(&address, &[], None);
    assert_eq!(silent.status.code(), Some(69));
    let said = String::from_utf8_lossy(&silent.stderr);
    assert!(said.contains(&format!("no answer from http://{address}: cannot connect")), "{said}");
    for words in [["--admin", "ftp://x"], ["--every", "0"]] {
        let output = taximeter(["top"].iter().chain(&words));
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn something_else_that_answers_is_no_gateway() {
    let engine = Engine::start();
    let address = engine.address().to_string();
    let asking = std::thread::spawn(move || once(&address, &[], None));
    engine.answer_once(b"HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\n\r\nnope\n");
    let output = asking.join().expect("it ends");
    assert_eq!(output.status.code(), Some(69));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("/metrics answers 404 Not Found: nope"), "{said}");
}
