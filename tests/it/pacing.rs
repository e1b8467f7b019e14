//! An engine that serves any number of requests, at a pace, and keeps a log of what it wrote.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::fixtures::{CHAT_ANSWER, DONE, HELLO, STOP, USAGE, WORLD};
use crate::http::{LAST_CHUNK, Message, STREAM_HEAD, Unframed, chunk, json_answer, read_message};

/// Between two events.
const PACE: Duration = Duration::from_millis(2);
/// Between two events of a slow stream.
const SLOW_PACE: Duration = Duration::from_millis(90);
/// Events with text in a slow stream.
const SLOW_EVENTS: usize = 30;
/// Asks for an answer that is relayed while it comes.
pub(crate) const LONG_CHAT: &str = r#"{"model":"gpt-4o-mini","user":"long","messages":[]}"#;
/// Asks for a stream that takes seconds.
pub(crate) const SLOW_CHAT: &str =
    r#"{"model":"gpt-4o-mini","user":"slow","stream":true,"messages":[]}"#;

/// Larger than what a gateway gathers before it answers.
const LONG_BYTES: usize = 200_000;
/// What all answers say they have used.
pub(crate) const OUTPUT_TOKENS: u64 = 100;

/// What the engine has written, by request.
pub(crate) type Log = BTreeMap<String, Written>;

/// Of one answer.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Written {
    /// Output tokens. What it says it has used is the last that it writes, and counts in place of
    /// the text.
    pub(crate) tokens: u64,
    pub(crate) text_bytes: u64,
}

pub(crate) struct PacingEngine {
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Log>>,
}

impl PacingEngine {
    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("the log")
    }
}

/// Lets time pass: this is how fast an engine writes and how long a gateway lives, not a wait for
/// something.
pub(crate) fn pass(time: Duration) {
    let (_sender, nothing) = channel::<()>();
    let _ = nothing.recv_timeout(time);
}

pub(crate) fn start() -> PacingEngine {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind the engine");
    let address = listener.local_addr().expect("the engine's address");
    let log = Arc::<Mutex<Log>>::default();
    let engine = PacingEngine { address, log: Arc::clone(&log) };
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let log = Arc::clone(&log);
            std::thread::spawn(move || while serve(&stream, &log).is_ok() {});
        }
    });
    engine
}

fn serve(mut stream: &TcpStream, log: &Mutex<Log>) -> std::io::Result<()> {
    let request = read_message(&mut stream, &mut Vec::new(), Unframed::Empty)?;
    if !request.complete {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let request_id = request.header("x-request-id").expect("an id");
    let is_writing = |tokens: u64, text: &str| {
        let mut log = log.lock().expect("the log");
        let written = log.entry(request_id.to_owned()).or_default();
        written.tokens = if tokens == OUTPUT_TOKENS { tokens } else { written.tokens + tokens };
        written.text_bytes += text.len() as u64;
    };
    is_writing(0, "");
    if request.json()["stream"] == true {
        stream.write_all(STREAM_HEAD)?;
        for Event { pace, event, text, tokens } in events(&request) {
            pass(pace);
            is_writing(tokens, text);
            stream.write_all(&chunk(event))?;
        }
        stream.write_all(LAST_CHUNK)
    } else {
        pass(PACE);
        is_writing(OUTPUT_TOKENS, "");
        let blanks = if request.text() == LONG_CHAT { LONG_BYTES } else { 0 };
        stream.write_all(&json_answer(CHAT_ANSWER.to_owned() + &" ".repeat(blanks)))
    }
}

/// An event of a stream.
struct Event {
    /// The time before it.
    pace: Duration,
    event: &'static str,
    /// What of it is the model's.
    text: &'static str,
    /// By OpenAI's tokenizer.
    tokens: u64,
}

fn events(request: &Message) -> impl Iterator<Item = Event> {
    let is_slow = request.json()["user"] == "slow";
    let (pace, count) = if is_slow { (SLOW_PACE, SLOW_EVENTS) } else { (PACE, 6) };
    let text = [(HELLO, "To the", 2), (WORLD, " station", 1)].into_iter().cycle().take(count);
    let end = [(STOP, "", 0), (USAGE, "", OUTPUT_TOKENS), (DONE, "", 0)];
    text.chain(end).map(move |(event, text, tokens)| Event { pace, event, text, tokens })
}
