//! A thread of the gateway that hangs: whoever asks for its health is told.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::engine::Engine;
use crate::gateway::Setup;
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

#[test]
fn a_thread_that_hangs_is_missed_until_it_turns_again() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).with("workers: 2").start();
    let health = |status| {
        let told = patiently(|| (gateway.admin("/healthz").status() == status).then_some(()));
        assert!(told.is_some(), "/healthz is never {status}");
    };
    health(200);
    let mut hold = Command::new("python3.11");
    hold.args(["-c", HOLD]).arg(gateway.thread("carry-1"));
    let mut held = hold.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("run Python");
    let mut said = String::new();
    let told = BufReader::new(held.stdout.take().expect("a pipe")).read_line(&mut said);
    assert_eq!((told.is_ok(), said.as_str()), (true, "held\n"));
    health(503);
    assert_eq!(gateway.admin("/readyz").status(), 200, "the others still serve");
    drop(held.stdin.take());
    assert!(held.wait().expect("its status").success());
    health(200);
}
