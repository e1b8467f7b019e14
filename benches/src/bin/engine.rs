//! An engine that costs almost nothing: pre-rendered answers of vLLM's shape on HTTP/1.1.
//!
//! Every stream of one gap is sent its next chunk at the same tick, as a batching engine does, each
//! chunk with a write of its own. A content chunk carries the time at which it was sent.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use memchr::memmem;
use taximeter_benches::clock::monotonic_nanos;
use taximeter_benches::wire::{
    CHUNKS_HEADER, GAP_HEADER, STAMP_DIGITS, STAMP_MARK, head_length, number,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

/// Longest request accepted, in bytes.
const REQUEST_BYTES_MAX: usize = 4 << 20;

const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\nserver: uvicorn\r\n\
    content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
const EVENT_START: &str = "data: {\"id\":\"chatcmpl-7b0cf4e1a2d94c55b1f6a3c8d0e94712\",\
    \"object\":\"chat.completion.chunk\",\"created\":1763664000,\"model\":\"bench-model\",";
const ANSWER: &str = "{\"id\":\"chatcmpl-7b0cf4e1a2d94c55b1f6a3c8d0e94712\",\
    \"object\":\"chat.completion\",\"created\":1763664000,\"model\":\"bench-model\",\"choices\":\
    [{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"The meter is running.\",\
    \"tool_calls\":[]},\"logprobs\":null,\"finish_reason\":\"stop\",\"stop_reason\":null}],\
    \"usage\":{\"prompt_tokens\":42,\"total_tokens\":48,\"completion_tokens\":6,\
    \"prompt_tokens_details\":null},\"prompt_logprobs\":null}";

#[derive(Parser)]
struct Options {
    /// Where to listen.
    #[arg(long)]
    listen: SocketAddr,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let listener = TcpListener::bind(options.listen).await.context("the engine's address")?;
    let engine = Arc::new(Engine::new());
    loop {
        let (stream, _) = listener.accept().await?;
        let engine = Arc::clone(&engine);
        tokio::spawn(async move { engine.serve(stream).await });
    }
}

/// What OpenAI's chunks say in turn: a token each, as its models generate them.
const WORDS: [&str; 8] = [" The", " fare", " is", " twelve", " dollars", ",", " including", " the"];

/// The answers, rendered once, and the ticks that the streams wait for.
struct Engine {
    answer: Vec<u8>,
    opening: Vec<u8>,
    chunk: Chunk,
    words: [Chunk; WORDS.len()],
    tickers: Mutex<HashMap<u64, Arc<Notify>>>,
}

impl Engine {
    fn new() -> Self {
        let answer = format!(
            "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{ANSWER}",
            ANSWER.len()
        );
        let role = choice("\"role\":\"assistant\",\"content\":\"\"", "null");
        Self {
            answer: answer.into_bytes(),
            opening: format!("{STREAM_HEAD}{}", framed(&role)).into_bytes(),
            chunk: Chunk::new(),
            words: WORDS.map(Chunk::word),
            tickers: Mutex::default(),
        }
    }

    async fn serve(&self, mut stream: TcpStream) -> Result<()> {
        stream.set_nodelay(true)?;
        let mut unread = Vec::with_capacity(4 << 10);
        while let Some(order) = Order::read(&mut stream, &mut unread).await? {
            match order.stream {
                true => self.stream(&mut stream, &order).await?,
                false => stream.write_all(&self.answer).await?,
            }
        }
        Ok(())
    }

    async fn stream(&self, stream: &mut TcpStream, order: &Order) -> Result<()> {
        stream.write_all(&self.opening).await?;
        let ticker = (order.gap_ms > 0).then(|| self.ticker(order.gap_ms));
        let mut chunks = if order.openai { self.words.to_vec() } else { vec![self.chunk.clone()] };
        let mut turn = 0;
        for index in 0..order.chunks {
            if let Some(ticker) = ticker.as_ref().filter(|_| index > 0) {
                ticker.notified().await;
            }
            turn = (turn + 1) % chunks.len();
            if let Some(chunk) = chunks.get_mut(turn) {
                stream.write_all(chunk.stamped(monotonic_nanos())).await?;
            }
        }
        stream.write_all(closing(order).as_bytes()).await?;
        Ok(())
    }

    /// The tick that all streams of this gap share. A stream that is still writing misses it.
    fn ticker(&self, gap_ms: u64) -> Arc<Notify> {
        let mut tickers = self.tickers.lock().unwrap_or_else(PoisonError::into_inner);
        let ticker = tickers.entry(gap_ms).or_insert_with(|| {
            let ticker = Arc::new(Notify::new());
            tokio::spawn(tick(Arc::clone(&ticker), Duration::from_millis(gap_ms)));
            ticker
        });
        Arc::clone(ticker)
    }
}

async fn tick(ticker: Arc<Notify>, gap: Duration) {
    let mut interval = tokio::time::interval(gap);
    interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        interval.tick().await;
        ticker.notify_waiters();
    }
}

/// What a request asks for.
struct Order {
    stream: bool,
    /// In OpenAI's shape.
    openai: bool,
    usage: bool,
    chunks: u64,
    gap_ms: u64,
}

impl Order {
    /// The next request of a connection; `None` when the peer is done.
    async fn read(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Result<Option<Self>> {
        loop {
            if let Some((order, length)) = Self::parse(unread) {
                unread.drain(..length);
                return Ok(Some(order));
            }
            if unread.len() > REQUEST_BYTES_MAX {
                bail!("a request is longer than {REQUEST_BYTES_MAX} bytes");
            }
            if stream.read_buf(unread).await? == 0 {
                return Ok(None);
            }
        }
    }

    fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let (head, rest) = bytes.split_at_checked(head_length(bytes)?)?;
        let length = number(head, "content-length").unwrap_or(0);
        let body = rest.get(..usize::try_from(length).ok()?)?;
        let order = Self {
            stream: memmem::find(body, b"\"stream\":true").is_some(),
            openai: memmem::find(body, b"\"model\":\"gpt-").is_some(),
            usage: memmem::find(body, b"\"include_usage\":true").is_some(),
            chunks: number(head, CHUNKS_HEADER).unwrap_or(16),
            gap_ms: number(head, GAP_HEADER).unwrap_or(0),
        };
        Some((order, head.len() + body.len()))
    }
}

/// A content chunk in which only the send time changes.
#[derive(Clone)]
struct Chunk {
    bytes: Vec<u8>,
    stamp_at: usize,
}

impl Chunk {
    fn new() -> Self {
        let content = format!("\"content\":\" {}{:0STAMP_DIGITS$}\"", char::from(STAMP_MARK), 0);
        Self::of(&choice(&content, "null"))
    }

    /// A word, with the send time in the padding that OpenAI puts behind it.
    fn word(word: &str) -> Self {
        let padding = format!("\"obfuscation\":\"{}{:0STAMP_DIGITS$}\"", char::from(STAMP_MARK), 0);
        let choice = choice(&format!("\"content\":\"{word}\""), "null");
        Self::of(&choice.replace("]}\n\n", &format!("],{padding}}}\n\n")))
    }

    fn of(event: &str) -> Self {
        let bytes = framed(event).into_bytes();
        let stamp_at = memchr::memchr(STAMP_MARK, &bytes).map_or(0, |at| at + 1);
        Self { bytes, stamp_at }
    }

    fn stamped(&mut self, mut nanos: u64) -> &[u8] {
        for digit in self.bytes.iter_mut().skip(self.stamp_at).take(STAMP_DIGITS).rev() {
            *digit = b'0' + u8::try_from(nanos % 10).unwrap_or(0);
            nanos /= 10;
        }
        &self.bytes
    }
}

fn choice(delta: &str, finish_reason: &str) -> String {
    format!(
        "{EVENT_START}\"choices\":[{{\"index\":0,\"delta\":{{{delta}}},\"logprobs\":null,\
         \"finish_reason\":{finish_reason},\"token_ids\":null}}]}}\n\n"
    )
}

fn closing(order: &Order) -> String {
    let mut end = framed(&choice("\"content\":\"\"", "\"stop\""));
    if order.usage {
        let (input, output) = (42, order.chunks);
        end += &framed(&format!(
            "{EVENT_START}\"choices\":[],\"usage\":{{\"prompt_tokens\":{input},\
             \"total_tokens\":{},\"completion_tokens\":{output}}}}}\n\n",
            input + output
        ));
    }
    end + &framed("data: [DONE]\n\n") + "0\r\n\r\n"
}

fn framed(event: &str) -> String {
    format!("{:x}\r\n{event}\r\n", event.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_carries_its_send_time_and_keeps_its_length() {
        let mut chunk = Chunk::new();
        let length = chunk.bytes.len();
        let text = String::from_utf8(chunk.stamped(1_234_567).to_vec()).unwrap();
        assert!(text.contains("@0000000000001234567\""), "{text}");
        assert_eq!(text.len(), length);
    }

    #[test]
    fn a_word_carries_its_send_time_behind_it() {
        let text = String::from_utf8(Chunk::word(" fare").stamped(42).to_vec()).unwrap();
        let (_, behind) = text.split_once("\"content\":\" fare\"").unwrap();
        assert!(behind.ends_with(",\"obfuscation\":\"@0000000000000000042\"}\n\n\r\n"), "{text}");
    }

    #[test]
    fn a_request_is_read_once_its_body_is_there() {
        let request = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 15\r\n\
            x-bench-chunks: 7\r\n\r\n{\"stream\":true}";
        assert!(Order::parse(&request[..request.len() - 1]).is_none());
        let (order, length) = Order::parse(request).unwrap();
        assert_eq!(
            (order.stream, order.usage, order.chunks, length),
            (true, false, 7, request.len())
        );
    }
}
