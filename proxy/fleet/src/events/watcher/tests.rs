use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::Pool;
use crate::events::held::{EVENTS_OF_ONE_MAX, FACTS_MAX};
use crate::events::owners::QUESTIONS;
use crate::identity::{Field, Identity};
use crate::quantity::{GPU_LAST_XID, GPU_OWNER, GPU_THROTTLED, POWER, Quantity, REQUESTS_RUNNING};
use crate::reading::{Component, Measured, Program, Reading, Version};
use crate::target::{TargetKind, TargetState};

/// Any instant: only differences count.
#[expect(clippy::disallowed_methods, reason = "a beginning to count from")]
fn epoch() -> Instant {
    Instant::now()
}

type Told<'a> = (&'static Quantity, &'a [(Field, &'a str)], &'a str, f64);

/// A source that is asked each second, and who watches it.
struct Watched {
    begun: Instant,
    second: u64,
    pool: Pool,
    target: Target,
    watcher: Watcher,
}

impl Watched {
    fn new(kind: TargetKind) -> Self {
        let upstreams = vec!["own".to_owned()];
        let target = Target::new("http://s/metrics", kind, upstreams, Duration::from_secs(1));
        let (begun, watcher) = (epoch(), Watcher::default());
        Self { begun, second: 0, pool: Pool::default(), target, watcher }
    }

    fn at(&self) -> Timestamp {
        Timestamp::from_second(1_795_132_800 + i64::try_from(self.second).unwrap()).unwrap()
    }

    /// So much time passes, in which it tells nothing.
    fn wait(&mut self, seconds: u64) -> Vec<String> {
        self.second += seconds;
        self.note(&[])
    }

    fn note(&mut self, own: &[Fact]) -> Vec<String> {
        let now = self.begun + Duration::from_secs(self.second);
        let events = self.watcher.note(
            &[Arc::new(self.target.clone())],
            Own { facts: own, host: None },
            now,
            self.at(),
        );
        events.into_iter().map(|event| format!("{}: {}", event.kind.as_str(), event.text)).collect()
    }

    fn tell(&mut self, told: &[Told<'_>], versions: &[(Component, &str)]) -> Vec<String> {
        self.second += 1;
        let measured = told.iter().map(|(quantity, who, reason, value)| {
            let mut identity = Identity::default();
            who.iter().for_each(|(field, value)| identity.set(*field, value));
            Measured {
                quantity,
                value: Value::Number(*value),
                buckets: None,
                identity: Arc::new(identity),
                attributes: vec![("reason".to_owned(), (*reason).to_owned())],
                program: "x",
                from: "x".to_owned(),
                how: String::new(),
                age: None,
            }
        });
        let reading = Reading { measured: measured.collect(), ..Reading::default() };
        let now = self.begun + Duration::from_secs(self.second);
        self.target.quantities =
            Arc::new(self.target.quantities.after(reading, now, &mut self.pool));
        self.target.programs = Arc::new(vec![Program {
            name: "x",
            title: "vLLM",
            is_read: true,
            is_certain: true,
            marks: Vec::new(),
            generation: None,
        }]);
        let version = |(of, text): &(Component, &str)| {
            Version::of(*of, (*of != Component::Engine).then_some("n1"), text).unwrap()
        };
        self.target.versions = Arc::new(versions.iter().map(version).collect());
        self.target.state = TargetState::Up;
        self.note(&[])
    }

    /// Another process goes on with what this one has kept.
    fn restart(&mut self) {
        let kept = serde_json::to_string(&self.watcher.known(self.at(), true).unwrap()).unwrap();
        let watcher = Watcher::new(serde_json::from_str(&kept).unwrap());
        let Self { second, target, .. } = std::mem::replace(self, Self::new(TargetKind::Engine));
        (self.second, self.watcher) = (second, watcher);
        self.begun = epoch();
        self.target = Target { quantities: Arc::default(), ..target };
    }
}

const NOTHING: [&str; 0] = [];

fn engine(model: &str, tokens: f64) -> [Told<'_>; 1] {
    [(GENERATION_TOKENS, Box::leak(Box::new([(Field::Model, model)])), "", tokens)]
}

#[test]
fn an_engine_that_changes_is_told_also_if_nobody_looked_meanwhile() {
    let mut engines = Watched::new(TargetKind::Engine);
    assert_eq!(engines.tell(&engine("a", 10.0), &[]), NOTHING, "the first reading is no event");
    assert_eq!(engines.tell(&engine("a", 20.0), &[(Component::Engine, "0.10")]), NOTHING);
    assert_eq!(
        engines.tell(&engine("b", 20.0), &[(Component::Engine, "0.11")]),
        [
            "engine_version: the engine at http://s/metrics is vLLM 0.11 now, and was vLLM 0.10",
            "engine_model: the engine at http://s/metrics serves b now, and served a",
        ]
    );
    assert_eq!(engines.tell(&engine("b", 30.0), &[]), NOTHING, "what is not told is no change");
    assert_eq!(
        engines.tell(&engine("b", 1.0), &[(Component::Engine, "0.11")]),
        ["engine_restarted: the engine at http://s/metrics counts from 0 again"]
    );
    engines.watcher.known(engines.at(), false);
    assert_eq!(engines.tell(&engine("b", 90.0), &[]), NOTHING);
    assert_eq!(engines.watcher.known(engines.at(), false), None, "it has counted, and no more");
    engines.restart();
    assert_eq!(
        engines.tell(&engine("b", 80.0), &[(Component::Engine, "0.12")]),
        [
            "engine_restarted: the engine at http://s/metrics counts from 0 again",
            "engine_version: the engine at http://s/metrics is vLLM 0.12 now, and was vLLM 0.11",
        ]
    );
    assert_eq!(
        engines.wait(4),
        ["source_state: http://s/metrics is stale: nothing has come for three periods"]
    );
    assert_eq!(engines.wait(60), NOTHING);
    engines.restart();
    engines.target.fail(engines.at(), "connect", "gone");
    engines.target.asked = QUESTIONS;
    assert_eq!(engines.wait(1), NOTHING, "it was so before");
    assert_eq!(
        engines.tell(&engine("b", 95.0), &[]),
        ["source_state: http://s/metrics tells something again"]
    );
}

#[test]
fn a_source_that_comes_up_later_than_the_gateway_tells_something_for_the_first_time() {
    let mut engines = Watched::new(TargetKind::Engine);
    engines.target.fail(engines.at(), "connect", "not there yet");
    engines.target.asked = QUESTIONS;
    assert_eq!(engines.wait(1), NOTHING);
    assert_eq!(engines.wait(60), NOTHING, "it stays so");
    assert_eq!(
        engines.tell(&engine("a", 5.0), &[]),
        ["source_state: http://s/metrics tells something for the first time"]
    );
    assert_eq!(
        engines.wait(90),
        ["source_state: http://s/metrics is stale: nothing has come for three periods"]
    );
}

const ONE: (Field, &str) = (Field::Gpu, "GPU-1");

#[test]
fn a_gpu_that_moves_comes_or_goes_is_told_with_its_driver_and_its_faults() {
    let mut gpus = Watched::new(TargetKind::Gpu);
    let of = |pod| -> &'static [(Field, &'static str)] {
        Box::leak(Box::new([
            ONE,
            (Field::Namespace, "llm"),
            (Field::Pod, pod),
            (Field::Node, "n1"),
        ]))
    };
    let (of_a, of_b) = (of("a"), of("b"));
    let own = |who: &'static [(Field, &'static str)]| {
        [(GPU_OWNER, who, "", 1.0), (GPU_LAST_XID, who, "", 0.0)]
    };
    assert_eq!(gpus.tell(&own(of_a), &[(Component::Driver, "570.1")]), NOTHING);
    assert_eq!(
        gpus.tell(&own(of_b), &[(Component::Driver, "580.9")]),
        [
            "driver_version: the driver of n1 is 580.9 now, and was 570.1",
            "gpu_owner: GPU-1 is given to llm/b now, and was to llm/a",
        ]
    );
    let both = [(GPU_OWNER, of_a, "", 1.0), (GPU_OWNER, of_b, "", 1.0)];
    assert_eq!(
        gpus.tell(&both, &[]),
        ["gpu_owner: GPU-1 is given to llm/a, llm/b now, and was to llm/b"]
    );
    let whole = [ONE, (Field::Node, "n1")];
    let part = [(Field::Gpu, "GPU-2"), (Field::Part, "7"), (Field::GpuModel, "H100")];
    let told = [
        (GPU_LAST_XID, &whole[..], "", 79.0),
        (GPU_THROTTLED, &whole[..], "hw_thermal", 0.0),
        (GPU_THROTTLED, &whole[..], "power_cap", 1.0),
        (POWER, &part[..], "", 1.0),
    ];
    assert_eq!(
        gpus.tell(&told, &[]),
        [
            "gpu_owner: GPU-1 is given to no pod now, and was to llm/a, llm/b",
            "gpu_xid: the driver tells error 79 of GPU-1",
            "gpu_appeared: GPU-2/7 has come: H100",
        ]
    );
    let hot = [(GPU_THROTTLED, &whole[..], "hw_thermal", 1.0), (GPU_LAST_XID, &whole[..], "", 0.0)];
    assert_eq!(
        gpus.tell(&hot, &[]),
        [
            "gpu_vanished: GPU-2/7 has gone: its exporter no longer tells of it",
            "gpu_throttled: the clocks of GPU-1 are held down: hw_thermal",
        ]
    );
    gpus.target.cut = true;
    assert_eq!(gpus.tell(&[(POWER, &part[..], "", 1.0)], &[]), NOTHING, "not all was read");
}

#[test]
fn whom_an_event_concerns_is_said() {
    let mut gpus = Watched::new(TargetKind::Gpu);
    let of = |pod| {
        [(
            GPU_OWNER,
            Box::leak(Box::new([ONE, (Field::Pod, pod), (Field::Node, "n1")])) as &[_],
            "",
            1.0,
        )]
    };
    gpus.tell(&of("a"), &[]);
    gpus.second += 1;
    let mut next = Watched::new(TargetKind::Gpu);
    next.tell(&of("b"), &[]);
    let moved = Arc::new(next.target);
    let events = gpus.watcher.note(&[moved], Own::default(), next.begun, gpus.at());
    let [event] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(event.about, ["GPU-1", "a", "b", "n1", "http://s/metrics", "own"]);
    assert_eq!((event.before.as_deref(), event.after.as_deref()), (Some("a"), Some("b")));
    let asked = |names: &[&str]| {
        event.concerns(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    };
    assert!(asked(&[]) && asked(&["x", "own"]) && asked(&["GPU-1"]) && !asked(&["GPU-2"]));
}

#[test]
fn what_the_gateway_rests_on_is_compared_and_a_secret_is_neither_told_nor_kept() {
    let mut gateway = Watched::new(TargetKind::Host);
    let fact = |kind, file, value| Fact::new(kind, file, value, Vec::new());
    let secret = |value| Fact { is_secret: true, ..fact(EventKind::Configuration, "key", value) };
    let facts = |file, key, gpu| {
        [
            fact(EventKind::Configuration, "a.yaml", file),
            secret(key),
            fact(EventKind::GpuClaimed, "GPU-1", gpu),
        ]
    };
    assert_eq!(gateway.note(&facts("1", "s1", "a")), NOTHING);
    assert_eq!(
        gateway.note(&facts("2", "s2", "a, b")),
        [
            "configuration: a.yaml has changed, and is in force",
            "configuration: key has changed, and is in force",
            "gpu_claimed: GPU-1 is claimed by a, b",
        ]
    );
    let kept = gateway.watcher.known(gateway.at(), true).unwrap();
    assert!(!serde_json::to_string(&kept).unwrap().contains("s2"));
    gateway.watcher = Watcher::new(kept);
    assert_eq!(
        gateway.note(&facts("3", "s3", "")),
        [
            "configuration: a.yaml has changed, and is in force",
            "gpu_claimed: GPU-1 is no longer claimed by a, b",
        ]
    );
    let own = Own { facts: &[secret("s4")], host: None };
    let one = gateway.watcher.note(&[], own, gateway.begun, gateway.at());
    assert_eq!((&one[0].before, &one[0].after), (&None, &None));
}

#[test]
fn what_was_told_after_it_was_kept_is_not_told_again() {
    let mut gateway = Watched::new(TargetKind::Host);
    let facts = |file, owner| {
        [
            Fact::new(EventKind::Prices, "p.yaml", file, Vec::new()),
            Fact::new(EventKind::GpuClaimed, "GPU-1", owner, Vec::new()),
        ]
    };
    gateway.note(&facts("1", "a, b"));
    let mut kept = gateway.watcher.known(gateway.at(), true).unwrap();
    assert_eq!(gateway.watcher.known(gateway.at(), true), None, "nothing has changed since");
    let target = Arc::new(gateway.target.clone());
    let own = facts("2", "");
    let own = Own { facts: &own, host: None };
    let told = gateway.watcher.note(&[target], own, gateway.begun, gateway.at());
    assert_eq!(told.len(), 2);
    told.iter().for_each(|event| kept.after(event));
    gateway.watcher = Watcher::new(kept);
    assert_eq!(gateway.note(&facts("2", "")), NOTHING);
}

#[test]
fn a_source_that_is_no_longer_asked_is_forgotten() {
    let mut engines = Watched::new(TargetKind::Engine);
    engines.tell(&engine("a", 1.0), &[]);
    let other = Target::new("http://t/metrics", TargetKind::Engine, Vec::new(), Duration::ZERO);
    let now = engines.begun;
    for targets in [&[][..], &[Arc::new(other)]] {
        assert_eq!(engines.watcher.note(targets, Own::default(), now, engines.at()), []);
    }
    assert!(engines.watcher.all.held.is_empty(), "{:?}", engines.watcher.all.held);
    assert_eq!(engines.tell(&engine("b", 1.0), &[]), NOTHING);
}

proptest! {
    /// However often something changes, its events of an hour are few, and none is left out in silence.
    #[test]
    fn what_flaps_is_bounded_and_the_number_of_its_changes_is_told(
        gaps in prop::collection::vec(1_u64..900, 1..200),
    ) {
        let mut gateway = Watched::new(TargetKind::Host);
        let fact = |nth: usize| [Fact::new(EventKind::Prices, "p", &nth.to_string(), Vec::new())];
        gateway.note(&fact(0));
        let (mut times, mut told) = (Vec::new(), 0);
        for (nth, gap) in gaps.iter().enumerate() {
            gateway.second += gap;
            for text in gateway.note(&fact(nth + 1)) {
                let left_out = text.split("; ").nth(1).and_then(|rest| rest.split(' ').next());
                told += 1 + left_out.map_or(0, |word| word.parse().unwrap_or(1));
                times.push(gateway.second);
            }
        }
        let silent = gateway.watcher.all.held.values().map(|held| held.left_out as usize).sum::<usize>();
        prop_assert_eq!(told + silent, gaps.len());
        for window in times.windows(usize::from(EVENTS_OF_ONE_MAX) * 2 + 1) {
            prop_assert!(window.last().unwrap() - window[0] >= 3_600);
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Whatever sources tell, each change of a value is an event or is counted, and all are bounded.
    #[test]
    fn events_of_an_hour_are_bounded(subjects in 1_usize..900) {
        let mut gateway = Watched::new(TargetKind::Host);
        let facts = |value: &str| -> Vec<_> {
            let names = (0..subjects).map(|number| number.to_string());
            names.map(|name| Fact::new(EventKind::Prices, &name, value, Vec::new())).collect()
        };
        gateway.note(&facts("0"));
        let mut all = Vec::new();
        for value in ["1", "2", "3", "4"] {
            all.extend(gateway.note(&facts(value)));
        }
        let left_out = all.iter().filter(|text| text.starts_with("left_out")).count();
        prop_assert_eq!(left_out, usize::from(subjects * 4 > EVENTS_MAX));
        prop_assert_eq!(all.len() - left_out, (subjects * 4).min(EVENTS_MAX));
    }
}

#[test]
fn more_facts_than_are_kept_are_left_out() {
    let mut gateway = Watched::new(TargetKind::Host);
    let facts: Vec<_> = (0..FACTS_MAX + 9)
        .map(|number| Fact::new(EventKind::Prices, &number.to_string(), "1", Vec::new()))
        .collect();
    gateway.note(&facts);
    assert!(gateway.watcher.all.held.len() <= FACTS_MAX);
    let running = [(REQUESTS_RUNNING, &[(Field::Model, "m")][..], "", 1.0)];
    assert_eq!(gateway.tell(&running, &[]), NOTHING);
}
