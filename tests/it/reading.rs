//! Commands that read a ledger: what they say of one that they may not write, and that they leave it
//! as it is.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup, binary, records, taximeter};
use crate::http::{bare, json_answer};
use crate::patience::patiently;
use crate::volume::{
    Kind, NOBODY, Volume, as_reader, by, close_to_readers, is_root, listing, open_again,
};

/// Requests in a ledger.
const REQUESTS: usize = 5;

fn exchange(engine: &Engine, gateway: &Gateway) {
    let mut client: Client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
}

/// How the last gateway left a ledger, and what somebody removed of it.
#[derive(Debug, Clone, Copy)]
enum Left {
    /// It ended, and everything is in the database.
    Ended,
    /// It was killed: the database has a log, and the log an index.
    Killed,
    /// The same without the index, as in a copy.
    WithoutIndex,
    /// The database lacks the last requests, as they came when it was away.
    Behind,
    /// The database lacks only counts of refusals.
    BehindInRefusals,
    /// There is no store.
    WithoutStore,
}

/// Makes a ledger in `folder/data`.
fn leave(left: Left, folder: TempDir) -> TempDir {
    let engine = Engine::start();
    let setup = || Setup::before(&engine).upstream("dialect: openai");
    let mut gateway = setup().start_in(folder);
    (0..REQUESTS).for_each(|_| exchange(&engine, &gateway));
    gateway.await_records(REQUESTS);
    let data = gateway.data_dir();
    let is_stored = || fs::metadata(data.join("store.sqlite-wal")).is_ok_and(|log| log.len() > 0);
    assert!(patiently(|| is_stored().then_some(())).is_some(), "nothing is stored");
    let folder = match left {
        Left::Killed | Left::WithoutIndex => gateway.kill(),
        Left::Ended | Left::Behind | Left::BehindInRefusals | Left::WithoutStore => {
            gateway.terminate();
            assert!(gateway.exit().0.success());
            gateway.into_folder()
        }
    };
    let store = data.join("store.sqlite");
    match left {
        Left::Ended | Left::Killed => folder,
        Left::WithoutIndex => {
            fs::remove_file(data.join("store.sqlite-shm")).expect("remove the index");
            folder
        }
        Left::WithoutStore => {
            fs::remove_file(store).expect("remove the store");
            folder
        }
        Left::Behind | Left::BehindInRefusals => {
            let earlier = folder.path().join("earlier");
            fs::copy(&store, &earlier).expect("copy the store");
            let mut gateway = setup().start_in(folder);
            if matches!(left, Left::Behind) {
                exchange(&engine, &gateway);
            }
            assert_eq!(gateway.ask(&bare("GET", "/nowhere", "")).status(), 404);
            gateway.terminate();
            assert!(gateway.exit().0.success());
            fs::copy(&earlier, &store).expect("put the earlier store back");
            gateway.into_folder()
        }
    }
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let copied = to.join(path.file_name().expect("a name"));
        match path.is_dir() {
            true if path.ends_with("lost+found") => {}
            true => copy(&path, &copied),
            false => drop(fs::copy(&path, copied).expect("copy a file")),
        }
    }
}

fn text(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {said}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What commands say of the ledger in `data`. Each runs by `run`; files go to `out`.
fn said(data: &Path, out: &Path, run: impl Fn(&[&str]) -> Output) -> Vec<String> {
    let data = data.to_str().expect("UTF-8");
    let out = out.to_str().expect("UTF-8");
    let bill = |more: &[&str]| {
        let period = ["bill", "--data-dir", data, "--from", "2020-01-01", "--to", "2100-01-01"];
        text(run(&[&period[..], more].concat()))
    };
    // The invoice says when it was made.
    assert!(bill(&[]).contains("Invoice"));
    let mut all = vec![text(run(&["records", "--data-dir", data]))];
    for format in ["csv", "ndjson", "focus", "cloudevents", "stripe"] {
        all.push(bill(&["--format", format]));
    }
    let period = ["--from", "2020-01-01", "--to", "2100-01-01"];
    let refusals = ["refusals", "--data-dir", data, "--json"];
    all.push(text(run(&[&refusals[..], &period].concat())));
    bill(&["--format", "parquet", "-o", &format!("{out}/bill.parquet")]);
    let rerate = ["rerate", "--data-dir", data, "--from", "2020-01-01", "--dry-run", "--json"];
    let mut priced: Value =
        serde_json::from_str(&text(run(
            &[&rerate[..], &["--book", &format!("{out}/book.yaml")]].concat()
        )))
        .expect("JSON");
    priced["period"].take();
    all.push(priced.to_string());
    let manifest = format!("{out}/bill.parquet.manifest.json");
    let verified = text(run(&["verify", "--data-dir", data, "--export", &manifest]));
    assert!(verified.contains("Nothing is wrong."), "{verified}");
    let copied = format!("{out}/copy");
    text(run(&["backup", &copied, "--data-dir", data]));
    let verified = text(taximeter(["verify", "--data-dir", &copied]));
    assert!(verified.contains("Nothing is wrong."), "{verified}");
    all
}

/// A folder that everybody may write.
fn open_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(folder.path(), open).expect("permissions");
    fs::write(
        folder.path().join("book.yaml"),
        "models:\n- model: gpt-4o-mini\n  rates: {input: 1, cache_read: 0, output: 2}\n",
    )
    .expect("a file");
    folder
}

const ALL: [Left; 6] = [
    Left::Ended,
    Left::Killed,
    Left::WithoutIndex,
    Left::Behind,
    Left::BehindInRefusals,
    Left::WithoutStore,
];

#[test]
fn a_user_who_may_only_read_gets_the_same_answers_and_leaves_nothing_behind() {
    for left in ALL {
        let folder = leave(left, tempfile::tempdir().expect("a temporary folder"));
        let data = folder.path().join("data");
        let (written, expected, read) = (open_folder(), open_folder(), open_folder());
        copy(&data, &written.path().join("data"));
        let expected =
            said(&written.path().join("data"), expected.path(), |words| taximeter(words));

        close_to_readers(folder.path());
        let before = listing(&data);
        let answers = said(&data, read.path(), as_reader);
        let after = listing(&data);
        open_again(folder.path());
        for (answer, expected) in answers.iter().zip(&expected) {
            assert_eq!(answer, expected, "{left:?}");
        }
        assert_eq!(after, before, "{left:?}");
    }
}

#[test]
fn a_volume_that_cannot_be_written_is_read_and_stays_as_it_is() {
    Kind::each(a_volume_that_cannot_be_written_is_read_and_stays_as_it_is, |kind| {
        ALL.into_iter().for_each(|left| read_only(kind, left));
    });
}

fn read_only(kind: Kind, left: Left) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let volume = Volume::mount(kind, folder.path(), 16 << 10);
    let folder = leave(left, folder);
    let data = folder.path().join("data");
    let (written, expected, read) = (open_folder(), open_folder(), open_folder());
    copy(&data, &written.path().join("data"));
    let expected = said(&written.path().join("data"), expected.path(), |words| taximeter(words));

    let (before, answers, after) = volume.only_to_be_read(|run| {
        let before = listing(&data);
        (before, said(&data, read.path(), run), listing(&data))
    });
    for (answer, expected) in answers.iter().zip(&expected) {
        assert_eq!(answer, expected, "{kind:?}, {left:?}");
    }
    assert_eq!(after, before, "{kind:?}, {left:?}");
}

#[test]
fn a_gateway_does_not_start_where_it_cannot_write_and_says_why() {
    Kind::each(a_gateway_does_not_start_where_it_cannot_write_and_says_why, |kind| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let volume = Volume::mount(kind, folder.path(), 16 << 10);
        let folder = leave(Left::Killed, folder);
        let data = folder.path().join("data");
        let engine = Engine::start();
        let setup = Setup::before(&engine).upstream("dialect: openai");
        // The configuration is written before nothing can be.
        let yaml = setup.serve(Command::new("true"), folder.path());
        let words: Vec<_> = yaml.get_args().map(|word| word.to_str().expect("UTF-8")).collect();
        let (before, refused, after) = volume.only_to_be_read(|run| {
            let before = listing(&data);
            (before, run(&words), listing(&data))
        });
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success(), "{kind:?}: {said}");
        let reason = match kind {
            Kind::Limits => "Permission denied",
            Kind::Ext4 | Kind::Memory => "mount the volume so that it can be written",
        };
        let path = data.to_str().expect("UTF-8");
        assert!(said.contains(reason) && said.contains(path), "{kind:?}: {said}");
        assert_eq!(after, before, "{kind:?}");
    });
}

/// Root lets the gateway run as one user, and asks as itself and as a third one. Others can be one
/// user only: the one of the gateway.
#[test]
fn whoever_asks_makes_no_file_that_the_gateway_cannot_write() {
    let keeper = keeper();
    let serving = || if is_root() { by(keeper) } else { Command::new(binary()) };
    let third_user =
        |words: &[&str]| if is_root() { as_third_user(words) } else { taximeter(words) };
    let engine = Engine::start();
    let folder = open_folder();
    let data = folder.path().join("data");
    let setup = Setup::before(&engine).upstream("dialect: openai");
    let mut gateway = Gateway::run(setup.serve(serving(), folder.path()), folder);
    let of = data.to_str().expect("UTF-8");
    for count in 1..=REQUESTS {
        exchange(&engine, &gateway);
        // Each one is there at once, by whomever.
        let words = ["records", "--data-dir", of];
        for output in [taximeter(words), third_user(&words)] {
            assert_eq!(text(output).lines().count(), count);
        }
    }
    assert!(text(third_user(&["verify", "--data-dir", of])).contains("Nothing is wrong."));
    gateway.terminate();
    assert!(gateway.exit().0.success());
    let folder = gateway.into_folder();

    let store = data.join("store.sqlite");
    fs::remove_file(&store).expect("remove the store");
    let before = listing(&data);
    assert_eq!(records(&data).len(), REQUESTS);
    if is_root() {
        assert_eq!(listing(&data), before);
    }
    let book = folder.path().join("book.yaml");
    let book = book.to_str().expect("UTF-8");
    for words in [
        &["verify", "--rebuild", "--data-dir", of][..],
        &["rerate", "--data-dir", of, "--from", "2026-01-01", "--reason", "r", "--book", book],
    ] {
        let refused = taximeter(words);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        if is_root() {
            assert_eq!(refused.status.code(), Some(69), "{said}");
            assert!(said.contains("belongs to the user 65534"), "{said}");
        } else {
            assert!(refused.status.success(), "{said}");
        }
    }
    if is_root() {
        assert_eq!(listing(&data), before);
    }

    let setup = Setup::before(&engine).upstream("dialect: openai");
    let gateway = Gateway::run(setup.serve(serving(), folder.path()), folder);
    gateway.await_records(REQUESTS);
    let owner = |path: &Path| fs::metadata(path).expect("a file").uid();
    assert!(patiently(|| store.exists().then_some(())).is_some(), "there is no store");
    assert_eq!(owner(&store), keeper);
    // A store that is there may be fed by root: what SQLite makes beside it has its owner.
    records(&data);
    drop(gateway);
}

fn as_third_user(words: &[&str]) -> Output {
    let mut command = by(NOBODY - 1);
    command.args(words).output().expect("run taximeter")
}

/// Who keeps the ledger: another user than this one, if this is root.
fn keeper() -> u32 {
    let this = fs::metadata("/proc/self").expect("this process").uid();
    if is_root() { NOBODY } else { this }
}

/// Gives a folder and all that is in it to who keeps the ledger.
fn give(folder: &Path) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            give(&path);
        } else {
            chown(&path, Some(keeper()), None).expect("another owner");
        }
    }
    chown(folder, Some(keeper()), None).expect("another owner");
}

/// The store belongs to another user where root feeds it.
#[test]
fn a_store_that_somebody_feeds_stays_its_users() {
    let folder = leave(Left::Behind, tempfile::tempdir().expect("a temporary folder"));
    let data = folder.path().join("data");
    give(&data);
    assert_eq!(records(&data).len(), REQUESTS + 1);
    let keeper = format!("user {} ", keeper());
    let of_others: Vec<_> =
        listing(&data).into_iter().filter(|line| !line.contains(&keeper)).collect();
    assert_eq!(of_others, Vec::<String>::new());
}
