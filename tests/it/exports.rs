//! What a ledger is exported to: files, their manifests, and that they are whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use rust_decimal::Decimal;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup, bounded, taximeter};
use crate::http::json_answer;

/// gpt-4o-mini: 600 × 0.15 + 400 cached × 0.075 + 100 × 0.60 USD a million.
const CHAT_COST: &str = "0.00018";

/// Three requests of one tenant and one of another, one of them at an unknown cost.
fn ledger() -> Gateway {
    let engine = Engine::start();
    let tenants =
        "tenants: {unknown: refuse, header: {name: x-tenant-id, trusted_peers: [127.0.0.0/8]}}";
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(tenants).start();
    let unpriced = CHAT_ANSWER.replace("gpt-4o-mini-2024-07-18", "home-grown");
    let requests =
        [("acme", CHAT_ANSWER), ("zeta", CHAT_ANSWER), ("acme", CHAT_ANSWER), ("acme", &*unpriced)];
    for (tenant, answer) in requests {
        let headers = format!("x-tenant-id: {tenant}\r\nConnection: close\r\n");
        let body = if answer == unpriced {
            CHAT.replace("gpt-4o-mini", "home-grown")
        } else {
            CHAT.to_owned()
        };
        let mut client = gateway.chat(&headers, body);
        engine.answer_once(&json_answer(answer));
        client.answer();
    }
    gateway
}

fn bill(gateway: &Gateway, words: &[&str]) -> Output {
    let data_dir = gateway.data_dir();
    let data_dir = data_dir.to_str().expect("a path in UTF-8");
    taximeter(["bill", "--data-dir", data_dir].iter().chain(words))
}

fn exported(gateway: &Gateway, words: &[&str]) -> Vec<u8> {
    let output = bill(gateway, words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn manifest(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a manifest")).expect("JSON")
}

/// Rows of a CSV without quotes in the columns that are asked for.
fn rows(csv: &[u8]) -> Vec<BTreeMap<String, String>> {
    let text = String::from_utf8(csv.to_vec()).expect("UTF-8");
    let mut lines = text.split_terminator("\r\n").map(cells);
    let names = lines.next().expect("a head");
    lines.map(|cells| names.iter().cloned().zip(cells).collect()).collect()
}

fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            other => cells.last_mut().expect("a cell").push(other),
        }
    }
    cells
}

fn number(row: &BTreeMap<String, String>, column: &str) -> Decimal {
    row[column].parse().unwrap_or_else(|_| panic!("{column}: {row:?}"))
}

/// Every file under `folder`, by its path from there.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below it").display().to_string();
                found.insert(name, fs::read(path).expect("a file"));
            }
        }
    }
    found
}

#[test]
fn a_focus_file_adds_up_to_the_bill_and_its_manifest_proves_it() {
    let gateway = ledger();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("focus.csv");
    let words = ["--format", "focus", "-o", file.to_str().expect("UTF-8")];
    exported(&gateway, &words);
    let bytes = fs::read(&file).expect("the file");
    let rows = rows(&bytes);
    let sum: Decimal = rows.iter().map(|row| number(row, "BilledCost")).sum();
    let chat: Decimal = CHAT_COST.parse().expect("a decimal");
    assert_eq!(sum, chat * Decimal::from(3));
    for row in &rows {
        let product = number(row, "ContractedUnitPrice") * number(row, "PricingQuantity");
        assert_eq!(product, number(row, "ContractedCost"), "{row:?}");
        assert_eq!(row["ProviderName"], row["InvoiceIssuerName"]);
    }

    let told = manifest(&folder.path().join("focus.csv.manifest.json"));
    assert_eq!(told["format"], "focus");
    assert_eq!(told["period"]["status"], "provisional");
    assert_eq!(told["rows"], rows.len());
    assert_eq!(told["sums"]["USD"]["billed_cost"], sum.normalize().to_string());
    assert_eq!(told["unknown_cost_requests"], 1);
    assert_eq!(told["requests"], 4);
    let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(told["files"][0]["sha256"], digest);
    assert_eq!(told["files"][0]["bytes"], bytes.len());
}

#[test]
fn the_same_period_twice_is_the_same_bytes() {
    let gateway = ledger();
    for format in
        ["focus", "focus-parquet", "ndjson", "parquet", "cloudevents", "stripe", "lago", "orb"]
    {
        let once = || {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().to_str().expect("UTF-8");
            exported(&gateway, &["--format", format, "-o", path]);
            files(folder.path())
        };
        let first = once();
        assert!(first.len() >= 2, "{format}: {:?}", first.keys());
        assert!(first.keys().all(|name| !name.contains("partial")), "{:?}", first.keys());
        assert!(first == once(), "{format} differs");
    }
}

#[test]
fn records_in_a_folder_lie_by_tenant_and_hour_and_the_manifest_names_them_all() {
    let gateway = ledger();
    let folder = tempfile::tempdir().expect("a folder");
    exported(&gateway, &["--format", "parquet", "-o", folder.path().to_str().expect("UTF-8")]);
    let mut found = files(folder.path());
    let (name, _) = found.pop_first().expect("a manifest");
    assert!(name.ends_with(".records.parquet.manifest.json"), "{name}");
    let told = manifest(&folder.path().join(name));
    let named: Vec<_> = told["files"].as_array().expect("files").iter().collect();
    assert_eq!(named.len(), found.len());
    let rows: u64 = named.iter().filter_map(|file| file["rows"].as_u64()).sum();
    assert_eq!((rows, &told["rows"]), (4, &Value::from(4)));
    let sequences = told["sequences"].as_object().expect("sequences");
    assert_eq!(sequences.len(), 1);
    assert!(sequences.values().all(|range| range["records"] == 4), "{told:#}");
    for file in named {
        let path = file["path"].as_str().expect("a path");
        let parts: Vec<_> = path.split('/').collect();
        let [tenant, date, hour, "part-0.parquet"] = parts[..] else { panic!("{path}") };
        assert!(tenant == "tenant=acme" || tenant == "tenant=zeta", "{path}");
        assert!(date.starts_with("date=20") && hour.starts_with("hour="), "{path}");
        assert!(found[path].starts_with(b"PAR1") && found[path].ends_with(b"PAR1"), "{path}");
    }
}

#[test]
fn half_an_hour_never_takes_the_place_of_a_whole_one() {
    let gateway = ledger();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    let output = bill(
        &gateway,
        &[
            "--from",
            "2026-11-01",
            "--to",
            "2026-11-01T10:30:00Z",
            "--format",
            "parquet",
            "-o",
            path,
        ],
    );
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("whole hours"), "{said}");
    assert!(files(folder.path()).is_empty());
}

#[test]
fn an_export_without_a_file_goes_to_standard_output() {
    let gateway = ledger();
    let records = exported(&gateway, &["--format", "ndjson", "--tenant", "acme"]);
    let records = String::from_utf8(records).expect("UTF-8");
    assert_eq!(records.lines().count(), 3);
    let batches = exported(&gateway, &["--format", "cloudevents"]);
    let events: Value = serde_json::from_slice(&batches).expect("one batch");
    assert_eq!(events.as_array().expect("events").len(), 4);
    assert_eq!(events[0]["specversion"], "1.0");
    let parquet = exported(&gateway, &["--format", "focus-parquet", "--focus-version", "1.3"]);
    assert!(parquet.starts_with(b"PAR1"));
}

#[test]
fn a_period_that_is_over_is_final_and_an_empty_one_is_an_export() {
    let gateway = ledger();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    exported(&gateway, &["--month", "2024-02", "--format", "focus", "-o", path]);
    let told = manifest(&folder.path().join("2024-02.focus.csv.manifest.json"));
    assert_eq!(told["period"]["status"], "final");
    assert_eq!(told["period"]["to"], "2024-03-01T00:00:00Z");
    assert_eq!((&told["rows"], &told["files"][0]["rows"]), (&Value::from(0), &Value::from(0)));
    assert!(rows(&fs::read(folder.path().join("2024-02.focus.csv")).expect("a file")).is_empty());
}

#[test]
fn what_cannot_be_written_says_where() {
    let gateway = ledger();
    let output = bill(&gateway, &["--format", "focus", "-o", "/dev/null/focus.csv"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/dev/null"));
    let output = bill(&gateway, &["--format", "focus", "-o", "ftp://host/path"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("s3://"));
}

/// S3's own is tried in moto (`tests/exports`).
#[test]
fn googles_and_azures_object_stores_get_the_files_of_a_folder_and_the_manifest_last() {
    const NAME: &str = "2024-02.focus.csv";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data_dir = folder.path().to_str().expect("UTF-8");
    let bill = |output: &str| {
        let mut bill = bounded();
        bill.args(["bill", "--data-dir", data_dir, "--month", "2024-02", "--format", "focus"]);
        bill.args(["-o", output]).stdin(Stdio::null());
        bill
    };
    let local = folder.path().join("files/");
    let made = bill(local.to_str().expect("UTF-8")).output().expect("run taximeter");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let files = [NAME.to_owned(), format!("{NAME}.manifest.json")];

    let engine = Engine::start();
    let address = format!("http://{}", engine.address());
    let google = serde_json::json!({
        "gcs_base_url": address, "disable_oauth": true,
        "client_email": "", "private_key": "", "private_key_id": "",
    });
    let (google, key) = (google.to_string(), "c2VjcmV0");
    let stores: [(&str, &[(&str, &str)]); 2] = [
        (
            "gs://bucket/llm",
            &[("GOOGLE_SERVICE_ACCOUNT_KEY", &google), ("GOOGLE_ALLOW_HTTP", "true")],
        ),
        (
            "az://bucket/llm",
            &[
                ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
                ("AZURE_STORAGE_ACCOUNT_KEY", key),
                ("AZURE_ENDPOINT", &address),
                ("AZURE_ALLOW_HTTP", "true"),
            ],
        ),
    ];
    for (url, environment) in stores {
        let exporting = bill(url).envs(environment.iter().copied()).stderr(Stdio::piped()).spawn();
        for file in &files {
            let (mut connection, request) = engine.request();
            let line = request.first_line.replace("%2F", "/").replace("%2E", ".");
            let line = line.replace("%2D", "-");
            assert!(line.starts_with(&format!("PUT /bucket/llm/{file} ")), "{line}");
            assert!(request.body == fs::read(local.join(file)).expect("a file"), "{line}");
            let head = "HTTP/1.1 201 Created\r\nETag: \"1\"\r\nContent-Length: 0\r\n";
            connection.send(format!("{head}Connection: close\r\n\r\n").as_bytes());
        }
        let done = exporting.expect("run taximeter").wait_with_output().expect("its end");
        assert!(done.status.success(), "{url}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn a_question_to_the_admin_address_that_makes_no_sense_says_why() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for (query, word) in [
        ("", "format"),
        ("format=xml", "focus-parquet"),
        ("format=focus&month=2026-13", "2026-11"),
        ("format=focus&month=2026-11&from=2026-11-01", "month alone"),
        ("format=focus&to=2026-11-01", "month alone"),
        ("format=focus&focus_version=9", "1.3"),
        ("format=csv&focus_version=1.2", "focus-parquet"),
        ("format=focus&tennant=acme", "tennant"),
    ] {
        let answer = gateway.admin(&format!("/api/v1/export?{query}"));
        assert_eq!(answer.status(), 400, "{query}");
        let problem = answer.json();
        let message = problem["detail"].as_str().expect("a detail");
        assert!(message.contains(word), "{query}: {message}");
    }
    for format in ["table", "ndjson"] {
        let refused = taximeter(["bill", "--format", format, "--focus-version", "1.3"]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("--focus-version") && said.contains("focus-parquet"), "{said}");
    }
}
