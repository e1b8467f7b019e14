//! A store in PostgreSQL, fed by the real binary.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

use serde_json::Value;
use taximeter_tests::postgres::{PASSWORD, Server, USER};

use crate::client::ask;
use crate::fixtures::CHAT;
use crate::gateway::{Gateway, Setup, binary, records_of, taximeter};
use crate::http::post;
use crate::pacing::{self, PacingEngine};
use crate::patience::{PATIENCE, patiently};

/// Requests that are asked while the server is in one state.
const SOME: usize = 20;

fn gateway(engine: &PacingEngine, url: &str) -> Gateway {
    let upstream = format!("name: e, url: \"http://{}\", dialect: openai", engine.address);
    Setup::with_upstream(&upstream).with(&format!("ledger: {{store: \"{url}\"}}")).start()
}

/// Asks some requests, which are all answered.
fn ask_some(gateway: SocketAddr, name: &str) {
    for number in 0..SOME {
        let headers = format!("x-request-id: {name}-{number}\r\nConnection: close\r\n");
        let answer = ask(gateway, &post("/v1/chat/completions", &headers, CHAT));
        assert_eq!(answer.status(), 200, "{name}-{number}");
    }
}

fn await_requests(server: &Server, database: &str, count: usize) {
    let count = count.to_string();
    let found = || server.ask(database, "SELECT count(*) FROM taximeter.requests").ok();
    let there = patiently(|| found().filter(|found| found.trim() == count));
    assert!(there.is_some(), "{:?} of {count} requests are there", found());
}

#[test]
fn a_database_that_stalls_or_dies_delays_nobody_and_gets_everything_later() {
    let mut server = Server::start(&[]).expect("a PostgreSQL server");
    let database = server.database().expect("a database");
    let url = server.url(&database);
    let engine = pacing::start();
    let mut gateway = gateway(&engine, &url);
    let address = gateway.address();
    ask_some(address, "up");
    await_requests(&server, &database, SOME);

    server.freeze(true).expect("stop the server");
    ask_some(address, "stalled");
    server.freeze(false).expect("continue the server");
    await_requests(&server, &database, 2 * SOME);

    server.crash().expect("end the server");
    ask_some(address, "down");
    server.resume().expect("start the server again");
    ask_some(address, "up-again");
    await_requests(&server, &database, 4 * SOME);

    // Restarted under load, in the middle of whatever it did.
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ["a", "b", "c"].map(|name| ask_some(address, name)));
        while !asking.is_finished() {
            server.crash().expect("end the server");
            server.resume().expect("start the server again");
        }
    });
    gateway.terminate();
    assert!(gateway.exit().0.success());
    // What the last feeding could not bring, the next gateway does.
    let mut gateway = start_again(&engine, &url, gateway);
    await_requests(&server, &database, 7 * SOME);
    gateway.terminate();
    assert!(gateway.exit().0.success());

    let stored = records_of(&["--store", &url]);
    let ids: BTreeSet<&str> = stored.iter().filter_map(|r| r["request_id"].as_str()).collect();
    assert_eq!((stored.len(), ids.len()), (7 * SOME, 7 * SOME), "{ids:?}");
}

#[test]
fn behind_a_pool_of_transactions_status_bill_and_ledger_agree_also_after_restarts() {
    let server = Server::start(&[]).expect("a PostgreSQL server");
    let database = server.database().expect("a database");
    let url = server.pooled_url(&database).expect("PgBouncer");
    let engine = pacing::start();
    let mut one = gateway(&engine, &url);
    let other = gateway(&engine, &url);
    for round in 1..=3 {
        ask_some(one.address(), &format!("one-{round}"));
        ask_some(other.address(), &format!("other-{round}"));
        for gateway in [&one, &other] {
            let store = || gateway.admin("/api/v1/status").json()["store"].clone();
            let is_fed = || (store()["pending_entries"] == 0).then_some(());
            assert!(patiently(is_fed).is_some(), "{}", store());
        }
        let bill = taximeter(["bill", "--store", &url, "--format", "json"]);
        let bill: Value = serde_json::from_slice(&bill.stdout).expect("a bill");
        assert_eq!(bill["total"]["requests"], 2 * round * SOME, "{bill}");
        if round == 1 {
            one.terminate();
            assert!(one.exit().0.success());
        }
        // The second time without a farewell.
        one = start_again(&engine, &url, one);
    }
    for gateway in [&one, &other] {
        let data_dir = gateway.data_dir().display().to_string();
        let verified = taximeter(["verify", "--data-dir", &data_dir, "--store", &url]);
        let said = String::from_utf8_lossy(&verified.stdout);
        assert_eq!(verified.status.code(), Some(0), "{said}");
    }
    assert_eq!(records_of(&["--store", &url]).len(), 6 * SOME);
}

#[test]
fn nobody_bills_by_mistake_from_the_directory_of_a_gateway_that_feeds_a_database() {
    let server = Server::start(&[]).expect("a PostgreSQL server");
    let database = server.database().expect("a database");
    let url = server.url(&database);
    let engine = pacing::start();
    // Two gateways of one host have the same name.
    let (first, second) = (gateway(&engine, &url), gateway(&engine, &url));
    ask_some(first.address(), "first");
    ask_some(second.address(), "second");
    await_requests(&server, &database, 2 * SOME);
    let data_dir = first.data_dir().to_str().expect("UTF-8").to_owned();
    let config = first.data_dir().with_file_name("taximeter.yaml");
    let config = config.to_str().expect("UTF-8").to_owned();
    let run = |words: &[&str]| {
        let output = taximeter(words);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    for command in ["bill", "records", "verify"] {
        let (code, out, said) = run(&[command, "--data-dir", &data_dir]);
        assert_eq!((code, out.as_str()), (Some(69), ""));
        assert!(said.contains("feeds postgres://") && said.contains("--store"), "{said}");
        assert!(!said.contains(PASSWORD), "{said}");
    }
    let requests = |words: &[&str]| {
        let words: Vec<_> =
            ["bill", "--data-dir", &data_dir].iter().chain(words).copied().collect();
        let (code, out, said) = run(&words);
        assert_eq!(code, Some(0), "{said}");
        let count = out.lines().find(|line| line.ends_with(" requests.")).expect("a count");
        (count.to_owned(), out.lines().last().expect("where from").to_owned())
    };
    let (here, from) = requests(&["--store", "sqlite"]);
    assert_eq!(
        (here, from),
        (format!("{SOME} requests."), format!("From the ledger in {data_dir}."))
    );
    for words in [["--store", &url], ["--config", &config]] {
        let (all, from) = requests(&words);
        assert_eq!(all, format!("{} requests.", 2 * SOME));
        assert!(from.starts_with("From postgres://") && !from.contains(PASSWORD), "{from}");
    }
    let (code, out, said) = run(&["verify", "--data-dir", &data_dir, "--store", &url]);
    assert_eq!(code, Some(0), "{out}{said}");
    assert!(out.contains(&format!("store: {SOME} records of ")), "{out}");
    server.ask(&database, "UPDATE taximeter.hours SET requests = requests + 1").expect("SQL");
    let (code, out, _) = run(&["verify", "--data-dir", &data_dir, "--store", &url]);
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("wrong: the store's hour ") && out.contains("they add up to"), "{out}");
    server
        .ask(
            &database,
            "DELETE FROM taximeter.requests
             WHERE position(convert_to('first-7', 'UTF8') IN payload) > 0",
        )
        .expect("SQL");
    let (code, out, _) = run(&["verify", "--data-dir", &data_dir, "--store", &url]);
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains(&format!("the store has {} records", SOME - 1)), "{out}");
}

#[test]
fn who_follows_a_database_that_is_lost_gets_each_record_once() {
    let mut server = Server::start(&[]).expect("a PostgreSQL server");
    let database = server.database().expect("a database");
    let url = server.url(&database);
    let engine = pacing::start();
    let gateway = gateway(&engine, &url);
    await_requests(&server, &database, 0);
    let mut follower = Command::new(binary())
        .args(["records", "--follow", "--store", &url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("run taximeter");
    let (found, lines) = channel();
    let out = BufReader::new(follower.stdout.take().expect("a pipe"));
    let reader = std::thread::spawn(move || out.lines().try_for_each(|line| found.send(line)));
    let mut seen = BTreeSet::new();
    let mut next = |count: usize| {
        (0..count).for_each(|_| {
            let line = lines.recv_timeout(PATIENCE).expect("a record in time").expect("UTF-8");
            let record: Value = serde_json::from_str(&line).expect("JSON");
            let id = record["request_id"].as_str().expect("an id").to_owned();
            assert!(seen.insert(id), "twice: {line}");
        });
    };
    ask_some(gateway.address(), "up");
    next(SOME);
    server.crash().expect("end the server");
    ask_some(gateway.address(), "down");
    server.resume().expect("start the server again");
    ask_some(gateway.address(), "up-again");
    next(2 * SOME);
    follower.kill().expect("end it");
    let output = follower.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("reconnecting").count(), 1, "{said}");
    assert!(reader.join().is_ok() && lines.try_recv().is_err());
}

fn start_again(engine: &PacingEngine, url: &str, ended: Gateway) -> Gateway {
    let upstream = format!("name: e, url: \"http://{}\", dialect: openai", engine.address);
    let setup = Setup::with_upstream(&upstream).with(&format!("ledger: {{store: \"{url}\"}}"));
    setup.start_in(ended.into_folder())
}

#[test]
fn a_gateway_starts_and_serves_without_its_database_and_shows_no_password() {
    let engine = pacing::start();
    let mut gateway = gateway(&engine, "postgres://me:hunter2@127.0.0.1:1/bills");
    ask_some(gateway.address(), "alone");
    let told = patiently(|| {
        let status = gateway.admin("/api/v1/status").text().to_owned();
        status.contains("postgres://me@127.0.0.1:1/bills").then_some(status)
    });
    let told = told.expect("no fault in the status");
    gateway.terminate();
    let (status, log) = gateway.exit();
    assert!(status.success());
    // The log tells it once, maybe before the gateway listens.
    assert!(!(told + &log.join("\n")).contains("hunter2"), "{log:#?}");
    let bill = taximeter(["bill", "--store", "postgres://me:hunter2@127.0.0.1:1/bills"]);
    assert_eq!(bill.status.code(), Some(69));
    let bill = taximeter(["bill", "--store", "postgres://me:hunter2@host"]);
    assert_eq!(bill.status.code(), Some(2));
    let said = String::from_utf8_lossy(&bill.stderr);
    assert!(said.contains("has no database") && !said.contains("hunter2"), "{said}");
}

#[test]
fn a_server_is_trusted_by_its_certificate_and_its_name() {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()])
        .expect("a certificate for localhost");
    let mut server = Server::start(&[]).expect("a PostgreSQL server");
    server.secure(&signed.cert.pem(), &signed.signing_key.serialize_pem()).expect("TLS");
    let database = server.database().expect("a database");
    let trusted = server.folder().join("data/server.crt");
    let (trusted, port) = (trusted.display(), server.port());
    let password = PASSWORD.replace('@', "%40");
    let bill = |host: &str, parameters: &str| {
        let url = format!("postgres://{USER}:{password}@{host}:{port}/{database}?{parameters}");
        let output = taximeter(["bill", "--store", &url, "--format", "json"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said, output.stdout)
    };
    for (host, parameters) in [
        ("localhost", format!("sslmode=verify-full&sslrootcert={trusted}")),
        ("127.0.0.1", "sslmode=require".to_owned()),
        ("127.0.0.1", "sslmode=prefer".to_owned()),
        ("127.0.0.1", "sslmode=disable".to_owned()),
    ] {
        let (code, said, bill) = bill(host, &parameters);
        assert_eq!(code, Some(0), "{parameters}: {said}");
        let bill: Value = serde_json::from_slice(&bill).expect("a bill in JSON");
        assert_eq!(bill["total"]["requests"], 0);
    }
    for (host, parameters) in [
        ("localhost", "sslmode=verify-full".to_owned()),
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={trusted}")),
    ] {
        let (code, said, _) = bill(host, &parameters);
        assert_eq!(code, Some(69), "{parameters}");
        assert!(said.contains("certificate"), "{said}");
    }
}
