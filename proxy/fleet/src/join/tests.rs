use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::quantity::{GPU_UTILIZATION, REQUESTS_RUNNING};
use crate::{Measured, Pool, Quantities, Reading, Value};

/// Any instant: only differences count.
#[expect(clippy::disallowed_methods, reason = "a beginning to count from")]
fn epoch() -> Instant {
    Instant::now()
}

/// A source that tells something of each of these.
fn source(kind: TargetKind, upstreams: &[&str], of: &[&[(Field, &str)]]) -> Arc<Target> {
    let upstreams = upstreams.iter().map(|name| (*name).to_owned()).collect();
    let quantity = if kind == TargetKind::Gpu { GPU_UTILIZATION } else { REQUESTS_RUNNING };
    let measured = of.iter().map(|fields| {
        let mut identity = Identity::default();
        fields.iter().for_each(|(field, value)| identity.set(*field, value));
        Measured {
            quantity,
            value: Value::Number(1.0),
            buckets: None,
            identity: Arc::new(identity),
            attributes: Vec::new(),
            program: "x",
            from: "x".to_owned(),
            how: String::new(),
            age: None,
        }
    });
    let reading = Reading { measured: measured.collect(), ..Reading::default() };
    let quantities = Quantities::default().after(reading, epoch(), &mut Pool::default());
    let target = Target::new(kind.as_str(), kind, upstreams, Duration::from_secs(1));
    Arc::new(Target { quantities: Arc::new(quantities), ..target })
}

fn engine(upstream: &str, fields: &[(Field, &str)]) -> Arc<Target> {
    source(TargetKind::Engine, &[upstream], &[fields])
}

fn gpus(of: &[&[(Field, &str)]]) -> Arc<Target> {
    source(TargetKind::Gpu, &[], of)
}

const fn remote(name: &str) -> Upstream<'_> {
    Upstream { name, is_local: false }
}

fn assigned(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    of.iter().map(|(gpu, upstream)| ((*gpu).to_owned(), (*upstream).to_owned())).collect()
}

/// Links as `to by basis`.
fn shown(links: &Links) -> Vec<String> {
    match links {
        Ok(links) => {
            links.iter().map(|link| format!("{} by {}", link.to, link.basis.as_str())).collect()
        }
        Err(why) => vec![format!("unknown: {why}")],
    }
}

#[test]
fn labels_lead_from_an_engine_over_its_pod_to_gpus_and_host() {
    let targets = [
        engine("a", &[(Field::Namespace, "llm"), (Field::Pod, "engine-0")]),
        gpus(&[
            &[
                (Field::Gpu, "GPU-1"),
                (Field::Node, "n1"),
                (Field::Namespace, "llm"),
                (Field::Pod, "engine-0"),
            ],
            &[
                (Field::Gpu, "GPU-2"),
                (Field::Node, "n1"),
                (Field::Namespace, "other"),
                (Field::Pod, "engine-0"),
            ],
            &[
                (Field::Gpu, "GPU-3"),
                (Field::Part, "MIG-1"),
                (Field::Node, "n2"),
                (Field::Pod, "engine-0"),
            ],
            &[(Field::Gpu, "GPU-4"), (Field::Node, "n1")],
        ]),
    ];
    let joins =
        joined(&targets, &[remote("a"), remote("b")], &BTreeMap::new(), Whereabouts::default());
    let [a, b] = joins.as_slice() else { panic!("{joins:?}") };
    assert_eq!(shown(&a.engines), ["engine by address"]);
    assert_eq!(shown(&a.pods), ["llm/engine-0 by labels"]);
    assert_eq!(shown(&a.gpus), ["GPU-1 by labels", "MIG-1 by labels"]);
    assert_eq!(shown(&a.hosts), ["n1 by labels", "n2 by labels"]);
    assert_eq!(a.doubts, [""; 0]);
    for links in [&b.engines, &b.pods, &b.gpus, &b.hosts] {
        assert!(links.is_err(), "nothing is guessed: {links:?}");
    }
}

#[test]
fn the_configuration_comes_before_labels_and_what_disagrees_is_stated() {
    let targets = [
        engine("a", &[(Field::Pod, "engine-0")]),
        gpus(&[
            &[(Field::Gpu, "GPU-1"), (Field::Node, "n1"), (Field::Pod, "engine-9")],
            &[(Field::Gpu, "GPU-2"), (Field::Node, "n1"), (Field::Pod, "engine-0")],
            &[(Field::Gpu, "GPU-2"), (Field::Node, "n1"), (Field::Pod, "engine-1")],
        ]),
    ];
    let file = assigned(&[("GPU-1", "a"), ("GPU-2", "a"), ("GPU-9", "a")]);
    let joins = joined(&targets, &[remote("a")], &file, Whereabouts::default());
    let [a] = joins.as_slice() else { panic!("{joins:?}") };
    let by_file = ["GPU-1 by configuration", "GPU-2 by configuration", "GPU-9 by configuration"];
    assert_eq!(shown(&a.gpus), by_file);
    assert_eq!(
        a.doubts,
        [
            "its exporter says that GPU-1 is of engine-9",
            "GPU-2 is shared with engine-1",
            "no exporter tells of GPU-9",
        ]
    );
}

#[test]
fn an_upstream_beside_the_gateway_is_in_its_pod_and_on_its_host() {
    let targets = [
        engine("a", &[(Field::Pod, "said-by-another")]),
        gpus(&[&[(Field::Gpu, "GPU-1"), (Field::Node, "n2"), (Field::Pod, "gateway-0")]]),
    ];
    let own = Whereabouts { host: Some("n1"), namespace: Some("llm"), pod: Some("gateway-0") };
    let local = Upstream { name: "a", is_local: true };
    let joins = joined(&targets, &[local], &BTreeMap::new(), own);
    let [a] = joins.as_slice() else { panic!("{joins:?}") };
    assert_eq!(shown(&a.pods), ["llm/gateway-0 by address"]);
    assert_eq!(shown(&a.gpus), ["GPU-1 by labels"]);
    assert_eq!(shown(&a.hosts), ["n1 by address", "n2 by labels"]);
    assert_eq!(a.doubts, ["its GPUs are said to be on another host than the gateway"]);
}

#[test]
fn two_upstreams_that_claim_one_gpu_both_say_so() {
    let targets = [
        engine("a", &[(Field::Pod, "engine-0")]),
        engine("b", &[(Field::Pod, "engine-0")]),
        gpus(&[&[(Field::Gpu, "GPU-1"), (Field::Pod, "engine-0")]]),
    ];
    let joins =
        joined(&targets, &[remote("a"), remote("b")], &BTreeMap::new(), Whereabouts::default());
    let doubts: Vec<_> = joins.iter().map(|join| join.doubts.join("; ")).collect();
    let expected = ["GPU-1 is also of the upstream `b`", "GPU-1 is also of the upstream `a`"];
    assert_eq!(doubts, expected);
}

proptest! {
    /// Whoever is labelled as whose: no GPU is joined to an upstream without the file or a pod that both
    /// name, and one that has several pods is never without a doubt.
    #[test]
    fn nothing_is_guessed(
        labelled in prop::collection::vec((0..4_u8, 0..4_u8, any::<bool>()), 0..8),
        of_file in prop::collection::vec((0..4_u8, 0..2_u8), 0..3),
        of_engines in prop::collection::vec(0..4_u8, 2),
    ) {
        let names = |letter: char, number: u8| format!("{letter}{number}");
        let identities: Vec<_> = labelled.iter().map(|(gpu, pod, is_named)| {
            let namespace = is_named.then(|| "ns".to_owned()).unwrap_or_default();
            [(Field::Gpu, names('g', *gpu)), (Field::Pod, names('p', *pod)), (Field::Namespace, namespace)]
        }).collect();
        let borrowed: Vec<Vec<_>> = identities.iter().map(|fields| {
            fields.iter().map(|(field, value)| (*field, value.as_str())).collect()
        }).collect();
        let slices: Vec<&[_]> = borrowed.iter().map(Vec::as_slice).collect();
        let pods: Vec<_> = of_engines.iter().map(|pod| names('p', *pod)).collect();
        let mut targets = vec![gpus(&slices)];
        for (upstream, pod) in ["u0", "u1"].into_iter().zip(&pods) {
            targets.push(engine(upstream, &[(Field::Pod, pod)]));
        }
        let file: BTreeMap<_, _> =
            of_file.iter().map(|(gpu, of)| (names('g', *gpu), names('u', *of))).collect();
        let upstreams = [remote("u0"), remote("u1")];
        for (at, join) in joined(&targets, &upstreams, &file, Whereabouts::default()).iter().enumerate() {
            for gpu in join.gpus.iter().flatten() {
                let its: Vec<_> = labelled.iter()
                    .filter(|(number, ..)| names('g', *number) == gpu.to)
                    .map(|(_, pod, _)| names('p', *pod))
                    .collect();
                let is_labelled = its.contains(&pods[at]);
                match gpu.basis {
                    Basis::Configuration => prop_assert_eq!(&file[&gpu.to], &join.upstream),
                    Basis::Labels => prop_assert!(is_labelled, "{:?}", join),
                    Basis::Address => prop_assert!(false, "{:?}", join),
                }
                let is_sure = its.iter().all(|pod| *pod == pods[at]) && !its.is_empty();
                let is_doubted = join.doubts.iter().any(|doubt| doubt.contains(&gpu.to));
                prop_assert!(is_sure || is_doubted, "{:?}", join);
            }
        }
    }
}
