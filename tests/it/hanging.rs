//! A thread of the gateway that hangs: whoever asks for its health is told, and nobody waits for the
//! ledger longer than may be.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup};
use crate::http::json_answer;
use crate::patience::patiently;

/// Stops one thread, and no other of its process, until its input ends.
const HOLD: &str = r"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def ptrace(request, thread):
    if libc.ptrace(ctypes.c_long(request), ctypes.c_long(thread), None, None):
        sys.exit(os.strerror(ctypes.get_errno()))
thread = int(sys.argv[1])
ptrace(16, thread)               # PTRACE_ATTACH
os.waitpid(thread, 0x40000000)   # __WALL
print('held', flush=True)
sys.stdin.read()
ptrace(17, thread)               # PTRACE_DETACH
";

/// A thread that is held.
struct Held(Child);

impl Held {
    fn begin(gateway: &Gateway, thread: &str) -> Self {
        let mut hold = Command::new("python3.11");
        hold.args(["-c", HOLD]).arg(gateway.thread(thread));
        let mut held =
            hold.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("run Python");
        let mut said = String::new();
        let told = BufReader::new(held.stdout.take().expect("a pipe")).read_line(&mut said);
        assert_eq!((told.is_ok(), said.as_str()), (true, "held\n"));
        Self(held)
    }

    fn let_go(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().expect("its status").success());
    }
}

#[test]
fn a_thread_that_hangs_is_missed_until_it_turns_again() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).with("workers: 2").start();
    let health = |status| {
        let told = patiently(|| (gateway.admin("/healthz").status() == status).then_some(()));
        assert!(told.is_some(), "/healthz is never {status}");
    };
    health(200);
    let held = Held::begin(&gateway, "carry-1");
    health(503);
    assert_eq!(gateway.admin("/readyz").status(), 200, "the others still serve");
    held.let_go();
    health(200);
}

/// The thread that writes the ledger.
const WRITER: &str = "journal";

/// A gateway that waits so long for its ledger, of which one entry has been written.
fn waiting(engine: &Engine, seconds: f64, unavailable: &str) -> Gateway {
    let gateway = Setup::before(engine)
        .upstream("dialect: openai")
        .with(&format!("limits: {{ledger_write_timeout_seconds: {seconds}}}"))
        .with(&format!("ledger: {{unavailable: {unavailable}}}"))
        .start();
    assert_eq!(served(&gateway, engine), 200);
    gateway
}

fn served(gateway: &Gateway, engine: &Engine) -> u16 {
    let mut client = gateway.chat("", CHAT);
    if let Some(mut connection) = engine.taken(&client) {
        connection.send(&json_answer(CHAT_ANSWER));
    }
    client.answer().status()
}

#[test]
fn a_ledger_that_takes_longer_than_is_waited_for_refuses_and_is_told_of() {
    let engine = Engine::start();
    let gateway = waiting(&engine, 0.2, "refuse");
    let held = Held::begin(&gateway, WRITER);
    let refused = gateway.chat("", CHAT).answer();
    let error = &refused.json()["error"];
    assert_eq!((refused.status(), &error["code"]), (503, &"ledger_unavailable".into()));
    assert_eq!(refused.header("retry-after"), Some("1"));
    let told = gateway.await_event("ledger_slow");
    assert_eq!(told["action"], "reserve", "{told}");
    engine.assert_untouched();
    held.let_go();
    let again = patiently(|| (served(&gateway, &engine) == 200).then_some(()));
    assert!(again.is_some(), "it is written again, and refused for ever");
    assert!(gateway.records().iter().all(|record| record["end"] == "complete"));
}

#[test]
fn a_ledger_that_takes_longer_than_is_waited_for_serves_where_it_is_to() {
    let engine = Engine::start();
    let gateway = waiting(&engine, 0.2, "serve");
    let held = Held::begin(&gateway, WRITER);
    assert_eq!(served(&gateway, &engine), 200);
    assert_eq!(gateway.await_event("ledger_slow")["action"], "reserve");
    held.let_go();
    gateway.await_records(2);
}

#[test]
fn a_ledger_is_waited_for_as_long_as_may_be() {
    let engine = Engine::start();
    let gateway = waiting(&engine, 3_600.0, "refuse");
    let held = Held::begin(&gateway, WRITER);
    let mut client = gateway.chat("", CHAT);
    let queued = || gateway.admin("/api/v1/status").json()["ledger"]["queued_bytes"].as_u64();
    assert!(patiently(|| queued().filter(|bytes| *bytes > 0)).is_some(), "nothing waits");
    assert!(!client.has_answer(), "it was refused");
    engine.assert_untouched();
    held.let_go();
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    gateway.await_records(2);
}
