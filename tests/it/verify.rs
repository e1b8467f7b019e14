//! `taximeter verify`: what was changed behind the ledger's back is found, and named.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use rust_decimal::Decimal;
use serde_json::{Value, json};
use taximeter_ledger::{
    Digester, EncodedEntry, Entry, Framer, Position, Reader, Record, SegmentHeader,
};
use tempfile::TempDir;

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{bare, json_answer};
use crate::stored::{change_first, meddle};

/// Three requests of 0.00018 USD each, of `acme`, and the gateway that served them.
fn three_rides(engine: &Engine) -> Gateway {
    let gateway =
        Setup::before(engine).upstream("dialect: openai").with("tenants: {unknown: acme}").start();
    for _ in 0..3 {
        let mut client = gateway.chat("", CHAT);
        engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200);
    }
    gateway
}

/// What is left of them when the gateway has ended.
fn ended(engine: &Engine) -> TempDir {
    let mut gateway = three_rides(engine);
    gateway.terminate();
    assert!(gateway.exit().0.success());
    gateway.into_folder()
}

fn verify(folder: &Path, words: &[&str]) -> Output {
    let data = folder.join("data");
    taximeter(["verify", "--data-dir", data.to_str().expect("UTF-8")].iter().chain(words))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder.join("data")).expect("the data directory");
    let mut segments: Vec<_> = files
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tlj"))
        .collect();
    segments.sort();
    segments
}

#[test]
fn a_whole_ledger_is_read_and_nothing_is_wrong() {
    let engine = Engine::start();
    let folder = ended(&engine);
    let output = verify(folder.path(), &[]);
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    for part in ["3 posts", "3 reservations", "acme 0.00054 USD", "3 records of", "Nothing is"] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

#[test]
fn a_running_gateway_is_no_fault() {
    let engine = Engine::start();
    let gateway = three_rides(&engine);
    let running = gateway.chat("", CHAT);
    let _asked = engine.request();
    let folder = gateway.data_dir().parent().expect("a folder").to_owned();
    let output = verify(&folder, &[]);
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("note: 1 requests are running"), "{said}");
    drop(running);
}

#[test]
fn a_request_that_was_open_when_the_gateway_died_is_named() {
    let engine = Engine::start();
    let gateway = three_rides(&engine);
    let running = gateway.chat("", CHAT);
    let _asked = engine.request();
    let folder = gateway.kill();
    let output = verify(folder.path(), &[]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("is open and no gateway runs; the next start settles it"), "{said}");
    drop(running);
}

#[test]
fn a_changed_byte_is_found_with_its_file_and_place() {
    let engine = Engine::start();
    let folder = ended(&engine);
    let segment = segments(folder.path()).pop().expect("a segment");
    let mut bytes = fs::read(&segment).expect("read it");
    let at = bytes.windows(4).position(|part| part == b"acme").expect("the tenant");
    bytes[at] = b'A';
    fs::write(&segment, bytes).expect("write it");
    let output = verify(folder.path(), &[]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let path = segment.to_str().expect("UTF-8");
    assert!(said.contains(&format!("wrong: {path}: damaged at byte ")), "{said}");
    assert!(said.contains("payload check is 0x"), "{said}");
}

#[test]
fn a_store_that_says_something_else_is_found() {
    let engine = Engine::start();
    let folder = ended(&engine);
    assert!(verify(folder.path(), &[]).status.success());
    change_first(folder.path(), |record| {
        let cost = record.cost.as_mut().expect("a cost");
        cost.amount = "0.00017".parse().expect("a decimal");
    });
    let output = verify(folder.path(), &[]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("0.00053 USD, and the journal has 3 with 0.00054 USD"), "{said}");

    let rebuilt = verify(folder.path(), &["--rebuild"]);
    let said = self::said(&rebuilt);
    assert!(rebuilt.status.success(), "{said}");
    assert!(said.contains("rebuilt") && said.contains("3 records of"), "{said}");
}

#[test]
fn a_record_of_the_store_that_differs_in_anything_is_found() {
    let engine = Engine::start();
    let folder = ended(&engine);
    assert!(verify(folder.path(), &[]).status.success());
    let halts: fn(&mut Record) = |record| record.finish_reasons = vec!["halt".to_owned()];
    let again: fn(&mut Record) = |record| record.attempt += 1;
    let moves = |folder: &Path| {
        let first = "seq = (SELECT min(seq) FROM requests)";
        meddle(folder, &format!("UPDATE requests SET seq = seq + 1 WHERE {first}"));
    };
    for number in 0..3 {
        match number {
            0 => change_first(folder.path(), halts),
            1 => change_first(folder.path(), again),
            _ => moves(folder.path()),
        }
        let output = verify(folder.path(), &[]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{number}: {said}");
        assert!(said.contains("wrong: the store has 3 records of "), "{number}: {said}");
        assert!(verify(folder.path(), &["--rebuild"]).status.success(), "{number}");
    }
}

/// Of what is older than the journal, or another gateway's, there is nothing to hold it against.
#[test]
fn a_record_of_the_store_that_the_journal_does_not_have_can_be_read_at_least() {
    let engine = Engine::start();
    let folder = ended(&engine);
    assert!(verify(folder.path(), &[]).status.success());
    meddle(
        folder.path(),
        "INSERT INTO requests SELECT NULL, started_at, zeroblob(16), form, 0, x'03'
         FROM requests LIMIT 1",
    );
    let output = verify(folder.path(), &[]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the payload ends inside a member"), "{said}");
}

#[test]
fn an_export_is_held_against_its_manifest_and_the_ledger() {
    let engine = Engine::start();
    let folder = ended(&engine);
    let (data, file) = (folder.path().join("data"), folder.path().join("focus.csv"));
    let paths = [&data, &file].map(|path| path.to_str().expect("UTF-8"));
    let words = ["bill", "--data-dir", paths[0], "--format", "focus", "-o", paths[1]];
    assert!(taximeter(words).status.success());
    let manifest = folder.path().join("focus.csv.manifest.json");
    let words = ["--export", manifest.to_str().expect("UTF-8")];
    let whole = verify(folder.path(), &words);
    assert!(whole.status.success(), "{}", said(&whole));

    let text = fs::read_to_string(&file).expect("read it");
    fs::write(&file, text.replace("acme", "beta")).expect("change it");
    let changed = verify(folder.path(), &words);
    assert_eq!(changed.status.code(), Some(1));
    assert!(said(&changed).contains("was changed: its SHA-256 is"), "{}", said(&changed));

    fs::write(&file, &text).expect("restore it");
    let listed = fs::read_to_string(&manifest).expect("read it");
    fs::write(&manifest, listed.replace("0.00054", "0.00055")).expect("change it");
    let other = verify(folder.path(), &words);
    assert_eq!(other.status.code(), Some(1));
    let sums = "the export adds up to 0.00055 USD, and the ledger has 0.00054";
    assert!(said(&other).contains(sums), "{}", said(&other));
}

#[test]
fn an_hour_that_is_not_its_requests_is_named_also_where_an_export_agrees_with_it() {
    let engine = Engine::start();
    let folder = ended(&engine);
    let whole = verify(folder.path(), &[]);
    assert!(
        said(&whole).contains("store: 1 sums by the hour, each equal to its requests"),
        "{whole:?}"
    );
    meddle(folder.path(), "DELETE FROM hours");
    let (data, file) = (folder.path().join("data"), folder.path().join("focus.csv"));
    let [data, file] = [&data, &file].map(|path| path.to_str().expect("UTF-8"));
    let words = ["bill", "--data-dir", data, "--format", "focus", "-o", file];
    assert!(taximeter(words).status.success());
    let manifest = format!("{file}.manifest.json");
    let output = verify(folder.path(), &["--export", &manifest]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("1 thing is wrong."), "the export agrees with the hour: {said}");
    for part in [
        "wrong: the store's hour 20",
        ":00:00Z of acme, gpt-4o-mini",
        "has requests of nothing, ",
        "but they add up to 0.00054 USD (3 requests, ",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }

    let rebuilt = verify(folder.path(), &["--rebuild"]);
    assert!(rebuilt.status.success(), "{}", self::said(&rebuilt));
}

#[test]
fn counts_of_refusals_that_are_not_the_journals_are_named() {
    let engine = Engine::start();
    let folder = ended(&engine);
    let mut gateway = Setup::before(&engine).upstream("dialect: openai").start_in(folder);
    for _ in 0..3 {
        assert_eq!(gateway.ask(&bare("GET", "/nowhere", "")).status(), 404);
    }
    gateway.terminate();
    assert!(gateway.exit().0.success());
    let folder = gateway.into_folder();
    let output = verify(folder.path(), &[]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("1 counts of refusals, each as written"), "{}", said(&output));
    for (statement, kept) in [
        ("UPDATE refusals SET count = 2", 2),
        ("UPDATE refusals SET count = 4", 4),
        ("DELETE FROM refusals", 0),
    ] {
        meddle(folder.path(), statement);
        let output = verify(folder.path(), &[]);
        let told = format!("the store counts {kept} refusals `unknown_route` of no tenant on ");
        assert!(said(&output).contains(&told), "{}", said(&output));
        assert!(said(&output).contains(", and the journal 3: rebuild"), "{}", said(&output));
    }
    assert!(verify(folder.path(), &["--rebuild"]).status.success());
    assert!(verify(folder.path(), &[]).status.success());
}

#[test]
fn a_correction_that_is_not_the_journals_is_named() {
    let engine = Engine::start();
    let folder = ended(&engine);
    let (data, book) = (folder.path().join("data"), folder.path().join("book.yaml"));
    fs::write(
        &book,
        "models:\n- {model: gpt-4o-mini, rates: {input: 1, cache_read: 0, output: 2}}\n",
    )
    .expect("write it");
    let [data, book] = [&data, &book].map(|path| path.to_str().expect("UTF-8"));
    let words =
        ["rerate", "--data-dir", data, "--from", "2026-01-01", "--book", book, "--reason", "typo"];
    let rerated = taximeter(words);
    assert!(rerated.status.success(), "{}", said(&rerated));
    let whole = verify(folder.path(), &[]);
    assert!(whole.status.success(), "{}", said(&whole));
    assert!(said(&whole).contains("store: 3 corrections, each as written"), "{}", said(&whole));

    let store = rusqlite::Connection::open(folder.path().join("data/store.sqlite")).expect("open");
    let first = "number = (SELECT min(number) FROM corrections)";
    let question = format!("SELECT correction FROM corrections WHERE {first}");
    let mut payload: Vec<u8> = store.query_row(&question, [], |row| row.get(0)).expect("one");
    let at = payload.windows(4).position(|part| part == b"typo").expect("the reason");
    payload[at..at + 4].copy_from_slice(b"gift");
    let change = format!("UPDATE corrections SET correction = ?1 WHERE {first}");
    assert_eq!(store.execute(&change, [&payload]), Ok(1));
    let output = verify(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("wrong: the store's correction "), "{}", said(&output));
    assert!(said(&output).contains(" differs from the journal"), "{}", said(&output));

    let rebuilt = verify(folder.path(), &["--rebuild"]);
    assert!(rebuilt.status.success(), "{}", said(&rebuilt));
    payload[..16].fill(0);
    let added = store.execute(
        "INSERT INTO corrections SELECT NULL, zeroblob(16), started_at, corrects, made_at, 0, seq, ?1
         FROM corrections LIMIT 1",
        [&payload],
    );
    assert_eq!(added, Ok(1));
    let output = verify(folder.path(), &[]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let forged = "wrong: the store has a correction 00000000-0000-0000-0000-000000000000 of";
    assert!(said.contains(forged) && said.contains("has corrections of"), "{said}");
}

/// Makes a key and acme's statement of this month; where both are.
fn statement(folder: &Path) -> (PathBuf, PathBuf) {
    let (private, public) = (folder.join("signing.pem"), folder.join("public.pem"));
    let made = taximeter(["keys", "signing", "-o", private.to_str().expect("UTF-8")]);
    assert!(made.status.success(), "{}", said(&made));
    fs::write(&public, &made.stdout).expect("write the public key");
    let records = crate::gateway::records(&folder.join("data"));
    let month = records[0]["started_at"].as_str().expect("a time")[..7].to_owned();
    let file = folder.join("acme.json");
    let key = private.to_str().expect("UTF-8");
    let words = ["--statement", "acme", "--month", &month, "--signing-key", key, "-o"];
    let made = verify(folder, &[&words[..], &[file.to_str().expect("UTF-8")]].concat());
    assert!(made.status.success(), "{}", said(&made));
    (public, file)
}

/// As the tenant does it, who has nothing but these two files.
fn check(public: &Path, file: &Path) -> Output {
    let (public, file) = (public.to_str().expect("UTF-8"), file.to_str().expect("UTF-8"));
    taximeter(["verify", "--statement", file, "--public-key", public])
}

#[test]
fn a_statement_is_signed_and_its_tenant_can_check_it() {
    let engine = Engine::start();
    let folder = ended(&engine);
    let (public, file) = statement(folder.path());
    let output = check(&public, &file);
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("3 requests") && said.contains("0.00054 USD"), "{said}");
    assert!(said.contains("provisional"), "the month is not over: {said}");
    let text = fs::read_to_string(&file).expect("read it");
    let statement: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(statement["statement"]["totals"], json!({"USD": "0.00054"}));
}

/// Begins a second segment, with a checkpoint and nothing else.
fn begin_a_segment(folder: &Path) {
    let [segment] = &segments(folder)[..] else { panic!("more than one segment") };
    let mut reader = Reader::new(None, u64::MAX).digesting();
    reader.feed(&fs::read(segment).expect("read it"));
    assert_eq!(reader.next_entry(), Ok(None));
    let header = reader.header().expect("a header").clone();
    let (before, follows) = (reader.position(), reader.digester().and_then(Digester::digest));
    let path = segment.with_file_name(format!("journal-{:020}.tlj", before.seq + 1));
    let (mut bytes, mut payload) = (Vec::new(), Vec::new());
    let mut framer = Framer::new(header.ledger, before);
    SegmentHeader { before, follows, ..header }.encode(&mut bytes);
    let checkpoint = Entry::Checkpoint(Box::default());
    framer.append(&EncodedEntry::new(&checkpoint, &mut payload).expect("an entry"), &mut bytes);
    fs::write(path, bytes).expect("write it");
}

/// Writes the journal of a ledger anew, with another amount in its first post, and makes all checks
/// and chains right.
fn forge(folder: &Path) {
    let (mut last, mut is_forged) = (Position::START, false);
    for segment in segments(folder) {
        let mut reader = Reader::new(None, 1);
        reader.feed(&fs::read(&segment).expect("read it"));
        let (mut forged, mut payload, mut framer) = (Vec::new(), Vec::new(), None);
        while let Some(framed) = reader.next_entry().expect("it is whole") {
            let header = reader.header().expect("a header").clone();
            let framer = framer.get_or_insert_with(|| {
                let framer = Framer::new(header.ledger, last);
                SegmentHeader { before: last, ..header }.encode(&mut forged);
                framer
            });
            let mut entry = framed.entry().expect("an entry");
            if let (false, Entry::Post(record)) = (is_forged, &mut entry) {
                record.cost.as_mut().expect("a cost").amount *= Decimal::TEN;
                is_forged = true;
            }
            let entry = EncodedEntry::new(&entry, &mut payload).expect("an entry");
            last = framer.append(&entry, &mut forged);
        }
        fs::write(&segment, forged).expect("write it");
    }
}

#[test]
fn a_segment_that_was_altered_with_all_its_checks_is_named_by_the_one_behind_it() {
    let engine = Engine::start();
    let folder = ended(&engine);
    begin_a_segment(folder.path());
    let whole = verify(folder.path(), &[]);
    assert!(whole.status.success(), "{}", said(&whole));

    forge(folder.path());
    let output = verify(folder.path(), &["--rebuild"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let [first, second] = &segments(folder.path())[..] else { panic!("two segments") };
    let named = format!("wrong: {} was changed, although its checksums are right", first.display());
    assert!(said.contains(&named), "{said}");
    assert!(said.contains(&format!("{} says that it was ", second.display())), "{said}");
}

#[test]
fn a_statement_names_the_journal_that_it_was_made_of_and_is_held_against_it() {
    let engine = Engine::start();
    let folder = ended(&engine);
    let (public, file) = statement(folder.path());
    let words = ["--statement", &file.display().to_string(), "--public-key"].map(str::to_owned);
    let words: Vec<_> = words.into_iter().chain([public.display().to_string()]).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let whole = verify(folder.path(), &words);
    assert!(whole.status.success(), "{}", said(&whole));
    assert!(
        said(&whole).contains("The journals behind the statement are unchanged in "),
        "{}",
        said(&whole)
    );

    forge(folder.path());
    let rebuilt = verify(folder.path(), &["--rebuild"]);
    assert!(rebuilt.status.success(), "it agrees with itself: {}", said(&rebuilt));
    let altered = verify(folder.path(), &words);
    assert_eq!(altered.status.code(), Some(1), "{}", said(&altered));
    let wrong = "is not the one behind the statement: its SHA-256 up to entry 7 is ";
    assert!(said(&altered).contains(wrong), "{}", said(&altered));

    fs::remove_file(&segments(folder.path())[0]).expect("remove it");
    let gone = verify(folder.path(), &words);
    assert_eq!(gone.status.code(), Some(1), "{}", said(&gone));
    assert!(said(&gone).contains("cannot be compared"), "{}", said(&gone));
    assert!(check(&public, &file).status.success(), "a tenant has no journal");
}

#[test]
fn a_statement_that_was_changed_or_signed_by_another_is_refused() {
    let engine = Engine::start();
    let folder = ended(&engine);
    let (public, file) = statement(folder.path());
    let text = fs::read_to_string(&file).expect("read it");
    fs::write(&file, text.replace("\"requests\": 3", "\"requests\": 2")).expect("change it");
    let changed = check(&public, &file);
    assert_eq!(changed.status.code(), Some(1));
    assert!(
        said(&changed).contains("the statement was changed after it was signed"),
        "{}",
        said(&changed)
    );

    fs::write(&file, text).expect("restore it");
    let other = folder.path().join("other.pem");
    let made = taximeter(["keys", "signing", "-o", other.to_str().expect("UTF-8")]);
    fs::write(&public, made.stdout).expect("another public key");
    let foreign = check(&public, &file);
    assert_eq!(foreign.status.code(), Some(1));
    assert!(said(&foreign).contains("signed with another key"), "{}", said(&foreign));
}

#[test]
fn a_configuration_with_mistakes_is_not_taken_for_a_fault_of_the_ledger() {
    let engine = Engine::start();
    let folder = ended(&engine);
    let file = folder.path().join("mistaken.yaml");
    fs::write(&file, "upstreams: [{name: local}]\ntennants: {}\n").expect("write it");
    let config = ["--config", file.to_str().expect("UTF-8")];
    let missing = ["--config", "/nowhere/taximeter.yaml"];
    let statement = ["--statement", "acme", "--month", "2026-11", "--signing-key", "none.pem"];
    for words in [config.to_vec(), missing.to_vec(), [&config[..], &statement].concat()] {
        let output = verify(folder.path(), &words);
        assert_eq!(output.status.code(), Some(64), "{}", said(&output));
        assert!(said(&output).contains(words[1]), "{}", said(&output));
    }
}
