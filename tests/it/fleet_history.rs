//! Engines and hosts over time: on a page beside the same hour of last week, and beneath a request.

use jiff::Timestamp;

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::fleet_past::{EVERY, HOUR, Past, WEEK, at, engine_text};
use crate::fleet_scraping::{Source, await_source, text};
use crate::gateway::{Gateway, Setup};
use crate::http::json_answer;
use crate::patience::patiently;

/// A page of the console.
fn page(gateway: &Gateway, path: &str) -> String {
    let answer = gateway.admin(path);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    answer.text().to_owned()
}

/// The chart of a quantity on a page.
fn chart<'a>(page: &'a str, quantity: &str) -> &'a str {
    let begin = page.find(&format!("data-quantity=\"{quantity}\""));
    let rest = begin.and_then(|begin| page.get(begin..)).unwrap_or_else(|| panic!("{page}"));
    rest.split("</figure>").next().expect("its end")
}

#[test]
fn the_same_hour_of_last_week_stands_beside_this_one() {
    let engine = Engine::start();
    let setup = || {
        Setup::before(&engine)
            .upstream("dialect: openai")
            .with("fleet: {engines: off, hosts: {local: off}}")
    };
    let gateway = setup().start();
    let started = gateway.admin("/api/v1/status").json()["started_at"].clone();
    let started: Timestamp = started.as_str().and_then(|at| at.parse().ok()).expect("a time");
    let (folder, now) = (gateway.kill(), started.as_second());
    let this_hour = now - now.rem_euclid(HOUR);
    let mut past = Past::of("http://engine:8000/metrics", &folder.path().join("data"));
    // Last week 40 requests waited, in this hour 10; it generates 30 tokens a second.
    for (begin, waiting) in [(this_hour - HOUR - WEEK, 40), (this_hour - HOUR, 10)] {
        for second in (0..=HOUR / EVERY).map(|step| begin + step * EVERY) {
            past.tell(second, &engine_text(waiting, 30 * (second - begin)));
        }
        past.pass(begin + 2 * HOUR);
    }
    past.pass(this_hour);

    let gateway = setup().start_in(folder);
    let shown = page(&gateway, &format!("/fleet/history?last=1h&to={}", at(this_hour - 60)));
    let waiting = chart(&shown, "taximeter.fleet.engine.requests_waiting");
    assert!(waiting.contains("class=\"line s0 before\""), "{waiting}");
    assert!(waiting.contains("class=\"line s0\""), "{waiting}");
    for mean in ["<data value=\"10\">10</data>", "<data value=\"40\">40</data>"] {
        assert!(waiting.contains(mean), "{mean} in {waiting}");
    }
    let generated = chart(&shown, "taximeter.fleet.engine.generation_tokens");
    assert!(generated.contains("30 /s"), "{generated}");
    let alone = page(
        &gateway,
        &format!("/fleet/history?last=1h&compare=nothing&to={}", at(this_hour - 60)),
    );
    assert!(!alone.contains("before\""), "{alone}");
    for wrong in ["show=everything", "last=2h", "compare=year", "to=yesterday"] {
        assert_eq!(gateway.admin(&format!("/fleet/history?{wrong}")).status(), 400, "{wrong}");
    }

    // The same for programs: by the minute, since the seconds of last week are gone.
    let (from, to) = (at(this_hour - HOUR), at(this_hour - 60));
    let asked = format!(
        "/api/v1/fleet/samples?quantity=taximeter.fleet.engine.requests_waiting&statistic=mean&\
         from={from}&to={to}&compare=1w"
    );
    let answer = gateway.admin(&asked).json();
    assert_eq!((&answer["step"], &answer["grid"]), (&60.into(), &"1m".into()));
    let values = |of: &str| -> Vec<f64> {
        let points = answer[of][0]["points"].as_array().cloned().unwrap_or_default();
        points.iter().filter_map(|point| point[1].as_f64()).collect()
    };
    let [now, then] = ["series", "compared"].map(values);
    assert!(now.len() >= 55 && now.iter().all(|value| (value - 10.0).abs() < 1e-9), "{now:?}");
    assert!(then.len() >= 55 && then.iter().all(|value| (value - 40.0).abs() < 1e-9), "{then:?}");
}

#[test]
fn the_page_of_a_request_shows_what_was_beneath_it() {
    let engine = Engine::start();
    let gateway =
        Setup::before(&engine).upstream("dialect: openai").with("fleet: {engines: off}").start();
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    let record = patiently(|| {
        let records = gateway.admin("/api/v1/records").json();
        records["records"][0]["id"].as_str().map(str::to_owned)
    });
    let path = format!("/requests/{}", record.expect("a record"));
    let at_once = page(&gateway, &path);
    assert!(at_once.contains("Engine, GPUs and host meanwhile"), "{at_once}");
    // A stop writes the minute that runs.
    let mut gateway = gateway;
    gateway.terminate();
    assert!(gateway.exit().0.success());
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("fleet: {engines: off}")
        .start_in(gateway.into_folder());
    let shown = page(&gateway, &path);
    let memory = chart(&shown, "system.memory.linux.available");
    assert!(
        memory.contains("class=\"line s0\"") && memory.contains("<rect class=\"span"),
        "{memory}"
    );
    assert!(shown.contains("because the upstream has a loopback address"), "{shown}");
}

/// What an exporter tells that names GPUs by their places on the bus alone: two of two hosts with the same
/// place, the first of them of the pod of the gateway.
fn places() -> Vec<u8> {
    let own = ",namespace=\"llm\",pod=\"engine-0\"";
    let gpus = [
        ("node-1", "00000000:3B:00.0", own, 412.0),
        ("node-1", "00000000:4C:00.0", "", 70.0),
        ("node-2", "00000000:3B:00.0", "", 55.0),
    ];
    let lines = |(name, divisor): (&str, f64)| -> String {
        let line = |(host, place, pod, watts): (&str, &str, &str, f64)| {
            format!(
                "{name}{{device=\"nvidia0\",modelName=\"NVIDIA H100\",pci_bus_id=\"{place}\",\
                 Hostname=\"{host}\"{pod}}} {}\n",
                watts / divisor
            )
        };
        gpus.map(line).concat()
    };
    let of = [("DCGM_FI_DEV_POWER_USAGE", 1.0), ("DCGM_FI_PROF_SM_ACTIVE", 1_000.0)];
    text(&of.map(lines).concat())
}

#[test]
fn a_gpu_that_is_known_by_its_place_on_the_bus_has_its_charts_on_the_page_of_a_request() {
    let (engine, exporter) = (Engine::start(), Source::saying(places()));
    let fleet = format!(
        "resource: {{k8s.namespace.name: llm, k8s.pod.name: engine-0}}\n\
         fleet: {{engines: off, hosts: {{local: off}}, gpus: {{scrape: [{:?}]}}}}",
        exporter.url()
    );
    let setup = || Setup::before(&engine).upstream("dialect: openai").with(&fleet);
    let is_up = |gateway: &Gateway| {
        await_source(gateway, &exporter.url(), |source| source["state"] == "up");
    };
    let mut gateway = setup().start();
    is_up(&gateway);
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    let record = patiently(|| {
        let records = gateway.admin("/api/v1/records").json();
        records["records"][0]["id"].as_str().map(str::to_owned)
    });
    // A stop writes the minute that runs.
    gateway.terminate();
    assert!(gateway.exit().0.success());
    let gateway = setup().start_in(gateway.into_folder());
    is_up(&gateway);
    let shown = page(&gateway, &format!("/requests/{}", record.expect("a record")));
    let power = chart(&shown, "hw.power");
    assert!(power.contains("412 W") && power.contains("class=\"line s0\""), "{power}");
    assert!(!power.contains("class=\"line s1\""), "one of another host: {power}");
    let asked = "/api/v1/fleet/samples?quantity=hw.power&statistic=mean&gpu=0000:3b:00.0";
    let series = |more: &str| gateway.admin(&format!("{asked}{more}")).json()["series"].clone();
    let one = series("&host=node-1");
    assert_eq!(one.as_array().map(Vec::len), Some(1), "{one}");
    assert_eq!(one[0]["labels"]["hw.id"], "0000:3b:00.0");
    assert_eq!(series("").as_array().map(Vec::len), Some(2));
    // Each of them has a series among metrics.
    let metrics = gateway.admin("/metrics");
    let told =
        metrics.text().lines().filter(|line| line.starts_with("taximeter_fleet_gpu_sm_active{"));
    assert_eq!(told.count(), 3, "{}", metrics.text());
}
