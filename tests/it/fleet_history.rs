//! Engines and hosts over time: on a page beside the same hour of last week, and beneath a request. The
//! samples are made by the program's own code with a clock that runs fast.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use taximeter_control::exposition::{Bounds, read};
use taximeter_fleet::{Pool, Recorder, Target, TargetKind};
use taximeter_store::memory::{Keep, Memory};

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup};
use crate::http::json_answer;
use crate::patience::patiently;

const HOUR: i64 = 3_600;
const WEEK: i64 = 7 * 24 * HOUR;
/// An engine is asked each 15 seconds while nothing runs.
const EVERY: i64 = 15;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

/// A fast clock, and a source that tells what it is told to.
struct Past {
    memory: Memory,
    recorder: Recorder,
    pool: Pool,
    target: Target,
    begun: std::time::Instant,
}

impl Past {
    #[expect(clippy::disallowed_methods, reason = "the first instant; the others are made from it")]
    fn of(source: &str, data_dir: &Path) -> Self {
        let every = Duration::from_secs(EVERY.unsigned_abs());
        Self {
            memory: Memory::open(data_dir).expect("a folder for samples"),
            recorder: Recorder::default(),
            pool: Pool::default(),
            target: Target::new(source, TargetKind::Engine, Vec::new(), every),
            begun: std::time::Instant::now(),
        }
    }

    /// It tells this at `second`; what is due then is done.
    fn tell(&mut self, second: i64, text: &str) {
        let exposition = read(text.as_bytes(), &Bounds::default());
        let reading = taximeter_fleet::read(&exposition.samples, at(second));
        let now = self.begun + Duration::from_secs(second.unsigned_abs());
        let quantities = self.target.quantities.after(reading, now, &mut self.pool);
        self.target.quantities = Arc::new(quantities);
        self.target.answered_at = Some(at(second));
        self.recorder.note(&[Arc::new(self.target.clone())]);
        if second % 60 == 0 {
            self.memory.write(&mut self.recorder, at(second)).expect("samples are kept");
        }
    }

    /// Nothing is told, but what is over is put together, and what is old goes.
    fn pass(&self, second: i64) {
        while self.memory.merge_next(at(second), &|| true).expect("files are merged") {}
        let times = [2, 90, 1_095].map(|days| Duration::from_secs(days * 24 * 3_600));
        let keep = Keep { times, bytes_max: u64::MAX };
        self.memory.bound(Some(at(second)), &keep).expect("old files go");
    }
}

/// What vLLM tells.
fn engine_text(waiting: i64, generated: i64) -> String {
    format!(
        "# TYPE vllm:num_requests_waiting gauge\n\
         vllm:num_requests_waiting{{engine=\"0\",model_name=\"m\"}} {waiting}\n\
         # TYPE vllm:num_requests_running gauge\n\
         vllm:num_requests_running{{engine=\"0\",model_name=\"m\"}} 4\n\
         # TYPE vllm:generation_tokens counter\n\
         vllm:generation_tokens_total{{engine=\"0\",model_name=\"m\"}} {generated}\n\
         # TYPE vllm:cache_config_info gauge\n\
         vllm:cache_config_info{{block_size=\"16\",engine=\"0\",num_gpu_blocks=\"1000\"}} 1\n"
    )
}

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
