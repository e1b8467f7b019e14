//! Bills by the clocks and the calendar of a place.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::json_answer;

/// Whole hours, halves, quarters, the ends of the date line, and clocks that are put at midnight.
const ZONES: [&str; 6] = [
    "Europe/Berlin",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "America/St_Johns",
    "Pacific/Kiritimati",
    "America/Havana",
];

/// A gateway that has metered one chat.
fn ledger(section: &str) -> Gateway {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(section).start();
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    client.answer();
    gateway
}

fn run(gateway: &Gateway, command: &str, words: &[&str]) -> String {
    let data_dir = gateway.data_dir();
    let data_dir = data_dir.to_str().expect("a path in UTF-8");
    let output = taximeter([command, "--data-dir", data_dir].iter().chain(words));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json_bill(gateway: &Gateway, words: &[&str]) -> Value {
    let words: Vec<_> = words.iter().copied().chain(["--format", "json"]).collect();
    serde_json::from_str(&run(gateway, "bill", &words)).expect("JSON")
}

/// When the chat was admitted, as clocks of the zone had it.
fn admitted(gateway: &Gateway, zone: &str) -> Zoned {
    let at = gateway.records()[0]["started_at"].as_str().expect("a time").parse();
    at.map(|at: Timestamp| at.to_zoned(TimeZone::get(zone).expect("a zone"))).expect("RFC 3339")
}

/// Both ends of a period, and its zone.
fn ends_of(period: &Value) -> Value {
    let ends = ["from", "to", "zone"].map(|name| (name.to_owned(), period[name].clone()));
    Value::Object(ends.into_iter().collect())
}

#[test]
fn a_request_is_billed_in_the_hour_day_and_month_that_its_zone_had() {
    let gateway = ledger("");
    for zone in ZONES {
        let at = admitted(&gateway, zone);
        let (month, day) = (at.strftime("%Y-%m").to_string(), at.date().to_string());
        let bill =
            json_bill(&gateway, &["--zone", zone, "--month", &month, "--by", "month,day,hour"]);
        let first = at.first_of_month().and_then(|first| first.start_of_day()).expect("a month");
        let next = at.last_of_month().and_then(|last| last.tomorrow()?.start_of_day());
        let ends = json!({
            "from": first.timestamp(), "to": next.expect("a month").timestamp(), "zone": zone
        });
        assert_eq!(ends_of(&bill["period"]), ends);
        let [row] = &bill["rows"].as_array().expect("rows")[..] else { panic!("{zone}: {bill}") };
        assert_eq!((&row["month"], &row["day"]), (&json!(month), &json!(day)), "{zone}");
        assert_eq!(row["hour"], at.strftime("%Y-%m-%dT%H:00%:z").to_string(), "{zone}");
        let day = json_bill(&gateway, &["--zone", zone, "--day", &day]);
        assert_eq!(day["total"], bill["total"], "{zone}");
        let yesterday = at.yesterday().expect("a day").date().to_string();
        let before = json_bill(&gateway, &["--zone", zone, "--day", &yesterday]);
        assert_eq!(before["total"]["requests"], 0, "{zone}");
    }
}

#[test]
fn records_of_a_date_are_those_of_the_day_in_the_zone() {
    let gateway = ledger("");
    for zone in ZONES {
        let at = admitted(&gateway, zone);
        let [day, next] = [at.date(), at.tomorrow().expect("a day").date()].map(|d| d.to_string());
        let since = |day: &str| run(&gateway, "records", &["--zone", zone, "--from", day]);
        assert_eq!(since(&day).lines().count(), 1, "{zone}");
        assert_eq!(since(&next), "", "{zone}");
    }
}

#[test]
fn re_rating_and_statements_are_of_the_zones_month() {
    let gateway = ledger("billing: {zone: Asia/Kathmandu}");
    let month = admitted(&gateway, "Asia/Kathmandu").strftime("%Y-%m").to_string();
    let folder = gateway.data_dir().parent().expect("a folder").to_owned();
    let config = folder.join("taximeter.yaml").to_str().expect("UTF-8").to_owned();
    let fixed = ["--month", &month, "--config", &config];
    let words: Vec<_> = fixed.into_iter().chain(["--dry-run", "--format", "json"]).collect();
    let rerated: Value = serde_json::from_str(&run(&gateway, "rerate", &words)).expect("JSON");
    let bill = json_bill(&gateway, &fixed);
    assert_eq!(rerated["period"], ends_of(&bill["period"]));
    assert_eq!(bill["period"]["zone"], "Asia/Kathmandu");

    let key = folder.join("signing.pem").to_str().expect("UTF-8").to_owned();
    assert!(taximeter(["keys", "signing", "-o", &key]).status.success());
    let words = ["--statement", "default", "--month", &month, "--signing-key", &key];
    let words: Vec<_> = words.into_iter().chain(["--zone", "Asia/Kathmandu"]).collect();
    let signed: Value = serde_json::from_str(&run(&gateway, "verify", &words)).expect("JSON");
    assert_eq!(ends_of(&signed["statement"]), ends_of(&bill["period"]));
}
