//! What is pending survives restarts, kills and what else a gateway goes through.

use rust_decimal::Decimal;

use super::*;

#[test]
fn a_restart_and_a_kill_in_between_lose_nothing_and_bill_nothing_twice() {
    let engine = Engine::start();
    let mut gateway = setup(&engine).start();
    begin(&gateway, &engine);
    gateway.terminate();
    assert!(gateway.exit().0.success());
    let gateway = setup(&engine).start_in(gateway.into_folder());
    assert_pending(&gateway);
    look(&gateway, &engine, "", &response("in_progress"));
    let gateway = setup(&engine).start_in(gateway.kill());
    look(&gateway, &engine, "", &response("completed"));
    let mut gateway = setup(&engine).start_in(gateway.kill());
    look(&gateway, &engine, "", &response("completed"));
    assert_completed(&gateway);
    gateway.terminate();
    assert!(gateway.exit().0.success());
    let gateway = setup(&engine).start_in(gateway.into_folder());
    look(&gateway, &engine, "", &response("completed"));
    assert_completed(&gateway);
}

#[test]
fn a_gateway_that_is_killed_inside_a_background_stream_still_waits_for_its_usage() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    let mut client = Client::saying(gateway.address(), &post("/v1/responses", "", ASK_STREAM));
    let mut connection = engine.begin_stream();
    client.head();
    let created = event("response.created", "queued");
    connection.send(&chunk(&created));
    client.expect(&created);
    // Nobody waits for what it says while it runs.
    let said = patiently(|| {
        let segments = std::fs::read_dir(gateway.data_dir()).expect("the journal");
        let read = segments.filter_map(|segment| std::fs::read(segment.ok()?.path()).ok());
        let mut texts = read.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        texts.any(|text| text.contains("resp_1")).then_some(())
    });
    said.expect("progress");
    let gateway = setup(&engine).start_in(gateway.kill());
    assert_pending(&gateway);
    look(&gateway, &engine, "", &response("completed"));
    assert_completed(&gateway);
}

#[test]
fn a_gateway_that_is_killed_before_the_answer_bills_no_part_of_it() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    let client = Client::saying(gateway.address(), &post("/v1/responses", "", ASK));
    let (_connection, _) = engine.request();
    let gateway = setup(&engine).start_in(gateway.kill());
    drop(client);
    assert_eq!(gateway.record()["end"], "gateway_died");
    assert_pending(&gateway);
}

#[test]
fn old_segments_may_go_while_it_is_pending() {
    let engine = Engine::start();
    // A checkpoint every few requests.
    let small = || setup(&engine).with("limits: {ledger_segment_bytes: 4096}");
    let gateway = small().start();
    begin(&gateway, &engine);
    let other = r#"{"model":"gpt-4o-mini","input":"Where to?"}"#;
    let reply =
        response("completed").replace("resp_1", "resp_other").replace("\"background\":true,", "");
    for _ in 0..20 {
        exchange(&gateway, &engine, &post("/v1/responses", "", other), &reply);
    }
    let gateway = small().start_in(gateway.kill());
    let from = gateway.said_at_its_start("ledger_opened")["from_seq"].as_u64();
    assert!(from > Some(3), "the start has read its post: {from:?}");
    look(&gateway, &engine, "", &response("completed"));
    let total = bill(&gateway);
    let each: Decimal = COST.parse().expect("a decimal");
    assert_eq!(decimal(&total["cost"]), Some(each * Decimal::from(21)), "{total:#}");
    assert_eq!(total["unknown_cost_requests"], 0, "{total:#}");
    assert_verified(&gateway);
}

#[test]
fn a_store_that_is_built_anew_has_it_too() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    begin(&gateway, &engine);
    look(&gateway, &engine, "", &response("completed"));
    assert_completed(&gateway);
    let mut gateway = gateway;
    gateway.terminate();
    assert!(gateway.exit().0.success());
    let data_dir = gateway.data_dir();
    let words = ["verify", "--rebuild", "--data-dir", data_dir.to_str().expect("UTF-8")];
    let rebuilt = taximeter(words);
    assert!(rebuilt.status.success(), "{}", String::from_utf8_lossy(&rebuilt.stderr));
    assert_completed(&gateway);
}
