use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::quantity::{GPU_UTILIZATION, REQUESTS_RUNNING};
use crate::{Held, Measured, Pool, Quantities, Reading, Value, read_held};

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

/// A kubelet that gives these devices to containers, each as `pod container id`.
fn kubelet(of: &[&str]) -> Arc<Target> {
    let held = of.iter().map(|words| {
        let words: Vec<_> = words.split(' ').collect();
        let [pod, container, id] = words[..] else { panic!("{words:?}") };
        let resource = if id.starts_with("0000:") { "amd.com/gpu" } else { "nvidia.com/gpu" };
        Held { namespace: "llm", pod, container, resource, id: id.into() }
    });
    let quantities = Quantities::default().after(read_held(held), epoch(), &mut Pool::default());
    let target = Target::new("k.sock", TargetKind::Kubelet, Vec::new(), Duration::from_secs(5));
    Arc::new(Target { quantities: Arc::new(quantities), ..target })
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

const IN_LLM: (Field, &str) = (Field::Namespace, "llm");

fn local(targets: &[Arc<Target>], of_file: &[(&str, &str)]) -> Join {
    let own = Whereabouts { host: Some("n1"), namespace: Some("llm"), pod: Some("engine-0") };
    let upstream = Upstream { name: "a", is_local: true };
    joined(targets, &[upstream], &assigned(of_file), own).remove(0)
}

#[test]
fn the_kubelet_comes_before_labels_and_behind_the_configuration() {
    let exporter = gpus(&[
        &[(Field::Gpu, "GPU-1"), IN_LLM, (Field::Pod, "engine-9")],
        &[(Field::Gpu, "GPU-2"), IN_LLM, (Field::Pod, "engine-0")],
        &[(Field::Gpu, "GPU-3")],
    ]);
    let targets = [exporter, kubelet(&["engine-0 e GPU-1", "engine-0 e GPU-3", "other e GPU-2"])];
    let by_kubelet = local(&targets, &[]);
    assert_eq!(shown(&by_kubelet.gpus), ["GPU-1 by podresources", "GPU-3 by podresources"]);
    assert_eq!(shown(&by_kubelet.hosts), ["n1 by address"]);
    assert_eq!(
        by_kubelet.doubts,
        [
            "its exporter says that GPU-1 is of llm/engine-9",
            "its exporter gives GPU-2 to its pod, and the kubelet does not",
        ]
    );
    let by_file = local(&targets, &[("GPU-2", "a"), ("GPU-3", "a")]);
    assert_eq!(shown(&by_file.gpus), ["GPU-2 by configuration", "GPU-3 by configuration"]);
    assert_eq!(
        by_file.doubts,
        [
            "the kubelet says that GPU-2 is of llm/other",
            "the kubelet gives GPU-1 to its pod, and the configuration does not",
            "its exporter gives GPU-2 to its pod, and the kubelet does not",
        ]
    );
    // A kubelet that gives nothing to anybody.
    let nothing = local(&[kubelet(&[])], &[]);
    let why = "unknown: neither the kubelet nor an exporter says that a GPU is of its pod";
    assert_eq!(shown(&nothing.gpus), [why]);
    let doubted = local(&[targets[0].clone(), kubelet(&[])], &[]);
    assert_eq!(shown(&doubted.gpus), ["GPU-2 by labels"]);
    assert_eq!(doubted.doubts, ["its exporter gives GPU-2 to its pod, and the kubelet does not"]);
}

#[test]
fn a_gpu_that_several_have_by_the_kubelet_says_so() {
    let told = |held: &[&str]| {
        let exporter = gpus(&[&[(Field::Gpu, "GPU-1")]]);
        let join = local(&[exporter, kubelet(held)], &[]);
        assert_eq!(shown(&join.gpus), ["GPU-1 by podresources"]);
        join.doubts.join("; ")
    };
    assert_eq!(told(&["engine-0 e GPU-1"]), "");
    let containers = "GPU-1 is shared by the containers e, f of its pod";
    assert_eq!(told(&["engine-0 e GPU-1", "engine-0 f GPU-1"]), containers);
    let shared = told(&["engine-0 e GPU-1::0", "engine-1 e GPU-1::1"]);
    assert_eq!(shared, "GPU-1 is shared with llm/engine-1");
    let replica = "GPU-1 is given as a replica, so others may have it too";
    assert_eq!(told(&["engine-0 e GPU-1::5"]), replica);
}

#[test]
fn a_device_that_the_kubelet_calls_otherwise_is_found_by_its_place_or_by_labels() {
    let exporter = gpus(&[
        &[(Field::Gpu, "SN-0"), (Field::Pci, "0000:3b:00.0"), (Field::Node, "n1")],
        &[(Field::Gpu, "SN-9"), (Field::Pci, "0000:3b:00.0"), (Field::Node, "n2")],
    ]);
    let placed = local(&[exporter, kubelet(&["engine-0 e 0000:3b:00.0"])], &[]);
    assert_eq!(shown(&placed.gpus), ["SN-0 by podresources"], "the one of our own node");
    assert_eq!(placed.doubts, [""; 0]);
    // No exporter knows a part by the name that the kubelet has for it.
    let part = gpus(&[&[
        (Field::Gpu, "GPU-1"),
        (Field::Part, "2"),
        (Field::Profile, "3g.40gb"),
        (Field::Pod, "engine-0"),
    ]]);
    let named = local(&[part, kubelet(&["engine-0 e MIG-7"])], &[]);
    assert_eq!(shown(&named.gpus), ["GPU-1/2 by labels", "MIG-7 by podresources"]);
    assert_eq!(named.doubts, ["no exporter tells of MIG-7"]);
}

#[test]
fn whole_gpus_of_amd_are_not_taken_for_one() {
    let whole = |serial| {
        let part = [(Field::Part, "0"), (Field::Profile, "spx"), (Field::Pod, "engine-0")];
        [&[(Field::Gpu, serial)], &part[..]].concat()
    };
    let (one, other) = (whole("SN-0"), whole("SN-1"));
    let targets = [engine("a", &[(Field::Pod, "engine-0")]), gpus(&[&one, &other])];
    let joins = joined(&targets, &[remote("a")], &BTreeMap::new(), Whereabouts::default());
    assert_eq!(shown(&joins[0].gpus), ["SN-0 by labels", "SN-1 by labels"]);
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
        held in prop::option::of(prop::collection::vec((0..4_u8, 0..4_u8), 0..4)),
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
        let words = |(gpu, pod): &(u8, u8)| format!("p{pod} e g{gpu}");
        let words: Option<Vec<_>> = held.as_ref().map(|held| held.iter().map(words).collect());
        let words = words.map(|words| kubelet(&words.iter().map(String::as_str).collect::<Vec<_>>()));
        targets.extend(words);
        let held = held.unwrap_or_default();
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
                let of_kubelet: Vec<_> = held.iter()
                    .filter(|(number, _)| names('g', *number) == gpu.to)
                    .map(|(_, pod)| names('p', *pod))
                    .collect();
                match gpu.basis {
                    Basis::Configuration => prop_assert_eq!(&file[&gpu.to], &join.upstream),
                    Basis::Podresources => prop_assert!(of_kubelet.contains(&pods[at]), "{:?}", join),
                    Basis::Labels => prop_assert!(is_labelled, "{:?}", join),
                    Basis::Address => prop_assert!(false, "{:?}", join),
                }
                let mut said = its.iter().chain(&of_kubelet).peekable();
                let is_told = labelled.iter().any(|(number, ..)| names('g', *number) == gpu.to);
                let is_sure = is_told && said.peek().is_some() && said.all(|pod| *pod == pods[at]);
                let is_doubted = join.doubts.iter().any(|doubt| doubt.contains(&gpu.to));
                prop_assert!(is_sure || is_doubted, "{:?}", join);
            }
        }
    }
}
