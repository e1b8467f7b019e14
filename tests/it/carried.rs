//! A request that runs across files of the journal keeps none of them: each file begins with what is
//! open.

use std::fs;
use std::path::PathBuf;

use taximeter_ledger::Entry;

use crate::client::Client;
use crate::engine::{Connection, Engine};
use crate::fixtures::{CHAT, CHAT_ANSWER, HELLO, ROLE, STREAM_CHAT};
use crate::gateway::{Gateway, Setup};
use crate::http::{STREAM_HEAD, chunk, json_answer};
use crate::patience::{Limit, patiently};
use crate::segments::{plain_path, read, segments};

/// 85 % of what the data directory may take.
const FILLER_BYTES: usize = 32 << 20;

fn before(engine: &Engine) -> Setup {
    let setup = Setup::before(engine).upstream("dialect: openai");
    let most = FILLER_BYTES / 85 * 100;
    setup
        .with(&format!("ledger: {{dir_bytes_max: {most}}}\nlimits: {{ledger_segment_bytes: 4096}}"))
}

/// A stream that runs, and has said in the journal what it has used.
fn running(engine: &Engine, gateway: &Gateway) -> (Client, Connection) {
    let mut client = gateway.chat("", STREAM_CHAT);
    let (mut connection, _) = engine.request();
    connection.send(STREAM_HEAD);
    client.head();
    for event in [ROLE, HELLO] {
        connection.send(&chunk(event));
        client.next_chunk().expect("an event");
    }
    let is_progress = |path: &PathBuf| {
        let entries = read(path).into_iter();
        entries.map(|framed| framed.entry()).any(|entry| matches!(entry, Ok(Entry::Progress(_))))
    };
    let data_dir = gateway.data_dir();
    let there = patiently(|| segments(&data_dir).iter().any(is_progress).then_some(()));
    there.expect("progress of the stream");
    (client, connection)
}

fn ask(engine: &Engine, gateway: &Gateway) {
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
}

/// Asks until `is_done`. How often.
fn ask_until(engine: &Engine, gateway: &Gateway, is_done: impl Fn() -> bool) -> usize {
    let (limit, mut asked) = (Limit::begin(), 0);
    while !is_done() {
        assert!(!limit.is_over(), "{:?}", segments(&gateway.data_dir()));
        ask(engine, gateway);
        asked += 1;
    }
    asked
}

#[test]
fn old_files_go_while_a_request_is_open_and_it_is_on_the_ledger_once_after_a_kill() {
    let engine = Engine::start();
    let gateway = before(&engine).start();
    let open = running(&engine, &gateway);
    let data_dir = gateway.data_dir();
    let reserved = plain_path(&segments(&data_dir)[0]);
    let mut asked = ask_until(&engine, &gateway, || segments(&data_dir).len() > 4);
    // Nearly full, so what no start needs goes at once.
    fs::write(data_dir.join("something else"), vec![1; FILLER_BYTES]).expect("fill the directory");
    let is_there = || segments(&data_dir).iter().any(|path| plain_path(path) == reserved);
    asked += ask_until(&engine, &gateway, || !is_there());
    let folder = gateway.kill();
    drop(open);

    let gateway = before(&engine).start_in(folder);
    let records = gateway.await_records(asked + 1);
    let died: Vec<_> = records.iter().filter(|record| record["end"] == "gateway_died").collect();
    let [died] = died[..] else { panic!("{died:#?}") };
    assert_eq!(died["usage"]["source"], "counted", "{died}");
    assert!(died["usage"]["output_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{died}");
    assert_eq!(died["response_model"], "gpt-4o-mini-2024-07-18", "{died}");
    assert!(died["cost"]["lines"].is_array(), "{died}");

    // It is settled now, and carried no further.
    let last = segments(&data_dir).pop().map(|path| plain_path(&path));
    let is_next = || segments(&data_dir).pop().map(|path| plain_path(&path)) != last;
    asked += ask_until(&engine, &gateway, is_next);
    let gateway = before(&engine).start_in(gateway.kill());
    gateway.await_records(asked + 1);
}
