//! How soon an engine's work is cancelled when the client leaves: from the client's leaving to the end
//! of the gateway's connection, as the engine sees it. By HTTP/1.1 a client leaves by closing its
//! connection, by HTTP/2 by resetting its stream.
//!
//! `cancel --programs DIR` prints the table; `benches/run --only cancel` builds and starts it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use taximeter_benches::clock::monotonic_nanos;
use taximeter_benches::process::Process;
use taximeter_benches::say;
use taximeter_benches::wire::{head_length, number};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a client asks.
const BODY: &str =
    r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"Where to?"}]}"#;
/// What the engine begins its answer with.
const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    transfer-encoding: chunked\r\n\r\n";
/// An event with text, which clients wait for.
const EVENT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"To\"}}]}\n\n";

/// What opens a connection of HTTP/2: the preface and settings that change nothing.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// Types of frames, and the one stream.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// CANCEL.
const CANCEL: [u8; 4] = [0, 0, 0, 8];

#[derive(Debug, Parser)]
struct Arguments {
    /// Where `taximeter` is.
    #[arg(long)]
    programs: PathBuf,
    /// Clients that leave, of each kind.
    #[arg(long, default_value_t = 200)]
    clients: usize,
}

/// How far an answer has come when its client leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Asked,
    FirstEvent,
}

/// What the engine tells of a request.
enum Told {
    /// It is there.
    Asked,
    /// Its connection has ended, at this time in nanoseconds.
    Left(u64),
}

fn main() -> Result<()> {
    let Arguments { programs, clients } = Arguments::parse();
    let dir = tempfile::tempdir()?;
    say(&format!(
        "{:<50}{:>10}{:>10}  goal",
        "a client leaves; its engine's work ends, ms", "p50", "p99"
    ));
    for (until, when) in [(Until::Asked, "before the answer"), (Until::FirstEvent, "mid stream")] {
        let engine = TcpListener::bind("127.0.0.1:0")?;
        let upstream = engine.local_addr()?;
        let (tell, told) = channel();
        std::thread::spawn(move || serve(&engine, until, &tell));
        let (gateway, _process) = gateway(&programs, upstream, dir.path(), when)?;
        for (protocol, leave) in [
            ("HTTP/1.1", leave_http1 as fn(SocketAddr, Until, &Receiver<Told>) -> Result<u64>),
            ("HTTP/2", leave_http2),
        ] {
            let mut millis = Vec::with_capacity(clients);
            for _ in 0..clients {
                millis.push(leave(gateway, until, &told)? as f64 / 1e6);
            }
            millis.sort_by(f64::total_cmp);
            let [p50, p99] = [50, 99].map(|percent| quantile(&millis, percent));
            let label = format!("  {protocol}, {when}");
            say(&format!("{label:<50}{p50:>10.2}{p99:>10.2}  ≤ 100"));
        }
    }
    Ok(())
}

/// Of sorted numbers.
fn quantile(sorted: &[f64], percent: usize) -> f64 {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

/// A gateway before the engine.
fn gateway(
    programs: &Path,
    upstream: SocketAddr,
    dir: &Path,
    name: &str,
) -> Result<(SocketAddr, Process)> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let text = |path: PathBuf| path.display().to_string();
    let command = [
        text(programs.join("taximeter")),
        "serve".to_owned(),
        format!("--upstream=http://{upstream}"),
        format!("--listen={address}"),
        "--admin=127.0.0.1:0".to_owned(),
        format!("--data-dir={}", text(dir.join(name))),
    ];
    Ok((address, Process::start(&command, address, &dir.join("log"))?))
}

/// Serves one request after the other, each on a connection of its own, and begins to answer.
fn serve(engine: &TcpListener, until: Until, tell: &Sender<Told>) {
    for stream in engine.incoming().map_while(Result::ok) {
        let _ = serve_one(stream, until, tell);
    }
}

fn serve_one(mut stream: TcpStream, until: Until, tell: &Sender<Told>) -> Result<()> {
    let (mut asked, mut piece) = (Vec::new(), [0; 4096]);
    let whole = |asked: &[u8]| {
        let head = head_length(asked)?;
        let length = number(asked.get(..head)?, "content-length").unwrap_or(0);
        Some(head + usize::try_from(length).ok()?)
    };
    while whole(&asked).is_none_or(|whole| asked.len() < whole) {
        let read = stream.read(&mut piece)?;
        ensure!(read > 0, "it left before it had asked");
        asked.extend_from_slice(piece.get(..read).unwrap_or_default());
    }
    // It may be asked what it is before it is asked for anything.
    if !asked.starts_with(b"POST ") {
        stream.write_all(
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        )?;
        return Ok(());
    }
    if until == Until::FirstEvent {
        stream.write_all(format!("{ANSWER}{:x}\r\n{EVENT}\r\n", EVENT.len()).as_bytes())?;
    }
    tell.send(Told::Asked)?;
    // What ends the read is the gateway's leaving, in whatever way.
    let _ = stream.read(&mut piece);
    tell.send(Told::Left(monotonic_nanos()))?;
    Ok(())
}

/// Nanoseconds from a client's closing its connection to the end of the engine's work.
fn leave_http1(gateway: SocketAddr, until: Until, told: &Receiver<Told>) -> Result<u64> {
    let mut client = connect(gateway)?;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        BODY.len()
    );
    client.write_all((head + BODY).as_bytes())?;
    await_asked(&mut client, until, told)?;
    let left = monotonic_nanos();
    drop(client);
    cancelled(left, told)
}

/// The same from its resetting its stream.
fn leave_http2(gateway: SocketAddr, until: Until, told: &Receiver<Told>) -> Result<u64> {
    let mut client = connect(gateway)?;
    let mut fields = Vec::new();
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/v1/chat/completions"),
        (":authority", "a"),
        ("content-type", "application/json"),
    ] {
        // A literal that is not kept: HPACK's plainest form.
        fields.push(0);
        for text in [name, value] {
            fields.push(u8::try_from(text.len())?);
            fields.extend_from_slice(text.as_bytes());
        }
    }
    client.write_all(PREFACE)?;
    client.write_all(&frame(HEADERS, END_HEADERS, &fields)?)?;
    client.write_all(&frame(DATA, END_STREAM, BODY.as_bytes())?)?;
    await_asked(&mut client, until, told)?;
    let left = monotonic_nanos();
    client.write_all(&frame(RST_STREAM, 0, &CANCEL)?)?;
    cancelled(left, told)
}

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Result<Vec<u8>> {
    let [_, length @ ..] = u32::try_from(payload.len())?.to_be_bytes();
    Ok([&length[..], &[kind, flags, 0, 0, 0, 1], payload].concat())
}

fn connect(gateway: SocketAddr) -> Result<TcpStream> {
    let client = TcpStream::connect(gateway)?;
    client.set_nodelay(true)?;
    client.set_read_timeout(Some(PATIENCE))?;
    Ok(client)
}

/// Waits until the engine has the request, and the client the first event if there is to be one.
fn await_asked(client: &mut TcpStream, until: Until, told: &Receiver<Told>) -> Result<()> {
    let asked = told.recv_timeout(PATIENCE).context("the engine was not asked")?;
    ensure!(matches!(asked, Told::Asked), "the work ended before the client left");
    let (mut come, mut piece) = (Vec::new(), [0; 4096]);
    while until == Until::FirstEvent && !come.windows(5).any(|part| part == b"data:") {
        let read = client.read(&mut piece)?;
        ensure!(read > 0, "the gateway closed the connection");
        come.extend_from_slice(piece.get(..read).unwrap_or_default());
    }
    Ok(())
}

fn cancelled(left: u64, told: &Receiver<Told>) -> Result<u64> {
    match told.recv_timeout(PATIENCE).context("the engine's work goes on")? {
        Told::Left(at) => Ok(at.saturating_sub(left)),
        Told::Asked => anyhow::bail!("the engine was asked twice"),
    }
}
