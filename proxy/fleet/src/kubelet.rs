//! Whose each GPU of a node is, as its kubelet says it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::identity::{Field, Identity, is_pci};
use crate::quantity::GPU_OWNER;
use crate::reading::{Measured, Program, Reading, Unknown, Value};

/// What kubelets are called among programs.
const PROGRAM: &str = "kubelet";
/// What stands before the number of a replica, of plugins that give a GPU to several: NVIDIA's, GKE's, AMD's.
const REPLICAS: [&str; 3] = ["::", "/vgpu", "-slice-"];
/// What is left out of an id.
const REPLICA: &str = "its id is that of a replica, whose number is left out";
/// What tells devices apart.
const DEVICE: &[Field] = &[Field::Gpu, Field::Pci, Field::Part];

/// A device that a container has.
#[derive(Debug, Clone)]
pub struct Held<'a> {
    /// The namespace of its pod.
    pub namespace: &'a str,
    /// Its pod.
    pub pod: &'a str,
    /// The container.
    pub container: &'a str,
    /// The resource, such as `nvidia.com/gpu`, or the driver of a claim, such as `gpu.nvidia.com`.
    pub resource: &'a str,
    /// What the plugin calls the device; of a claim its driver, pool and device, with `/` between them.
    pub id: Cow<'a, str>,
}

/// The owners of GPUs among all devices that containers have.
#[must_use]
pub fn read_held<'a>(all: impl IntoIterator<Item = Held<'a>>) -> Reading {
    let mut devices: BTreeMap<Identity, BTreeMap<Identity, bool>> = BTreeMap::new();
    for held in all.into_iter().filter(is_gpu) {
        let (who, is_replica) = identity(&held);
        let owners = devices.entry(who.part(DEVICE)).or_default();
        *owners.entry(who).or_default() |= is_replica;
    }
    let mut measured = Vec::new();
    for owners in devices.into_values() {
        let several = owners.len() > 1;
        for (who, is_replica) in owners {
            let sharing = sharing(several || is_replica, who.is_part());
            measured.push(Measured {
                quantity: GPU_OWNER,
                value: Value::Number(1.0),
                buckets: None,
                identity: Arc::new(who),
                attributes: vec![("sharing".to_owned(), sharing.to_owned())],
                program: PROGRAM,
                from: "podresources".to_owned(),
                how: if is_replica { REPLICA.to_owned() } else { String::new() },
                age: None,
            });
        }
    }
    let program = Program {
        name: PROGRAM,
        title: PROGRAM,
        is_read: true,
        is_certain: true,
        marks: vec!["it answers podresources v1".to_owned()],
        generation: None,
    };
    let none = measured.is_empty().then(|| Unknown {
        quantity: GPU_OWNER,
        attributes: Vec::new(),
        program: PROGRAM,
        why: "no container of this node has a GPU of NVIDIA or AMD".to_owned(),
        of: Vec::new(),
    });
    let unknown = none.into_iter().collect();
    Reading { programs: vec![program], measured, unknown, is_live: true, ..Reading::default() }
}

/// How a GPU is given to its owner.
pub(crate) const fn sharing(is_shared: bool, is_part: bool) -> &'static str {
    match (is_shared, is_part) {
        (true, _) => "shared",
        (false, true) => "part",
        (false, false) => "exclusive",
    }
}

/// Whether it is a GPU, or a part of one: both vendors have plugins for network cards too.
fn is_gpu(held: &Held<'_>) -> bool {
    match held.resource.split_once('/') {
        Some(("nvidia.com", what)) => {
            let is_named = |mark| held.id.starts_with(mark);
            what.starts_with("gpu")
                || what.starts_with("mig-")
                || is_named("GPU-")
                || is_named("MIG-")
        }
        Some(("amd.com", what)) => !what.starts_with("nic") && !what.starts_with("vnic"),
        Some(_) => false,
        None => matches!(held.resource, "gpu.nvidia.com" | "gpu.amd.com"),
    }
}

/// Who has what, and whether that is a replica.
fn identity(held: &Held<'_>) -> (Identity, bool) {
    let replica = REPLICAS.iter().find_map(|mark| held.id.split_once(mark));
    let id = replica.map_or(&*held.id, |(id, _)| id);
    let mut who = Identity::default();
    // Old drivers call a part by its GPU and the numbers of its instances.
    let old = id.strip_prefix("MIG-").filter(|rest| rest.starts_with("GPU-"));
    match old.and_then(|rest| rest.split_once('/')) {
        Some((gpu, instance)) => {
            who.set(Field::Gpu, gpu);
            who.set(Field::Part, instance.split('/').next().unwrap_or(instance));
        }
        None if id.starts_with("MIG-") || id.starts_with("amdgpu_xcp_") => who.set(Field::Part, id),
        None if is_pci(id) => who.set(Field::Pci, id),
        None => who.set(Field::Gpu, id),
    }
    if let Some(profile) = held.resource.strip_prefix("nvidia.com/mig-") {
        who.set(Field::Profile, profile);
    }
    who.identify();
    who.set(Field::Namespace, held.namespace);
    who.set(Field::Pod, held.pod);
    who.set(Field::Container, held.container);
    (who, replica.is_some())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn held<'a>(pod: &'a str, container: &'a str, resource: &'a str, id: &'a str) -> Held<'a> {
        Held { namespace: "llm", pod, container, resource, id: id.into() }
    }

    /// Each owner as `device namespace/pod/container sharing`, with what was done.
    fn owners(all: &[Held<'_>]) -> Vec<String> {
        let reading = read_held(all.iter().cloned());
        let told = reading.measured.iter().map(|one| {
            let who = &one.identity;
            let get = |field| who.get(field).unwrap_or("?");
            let owner = [Field::Namespace, Field::Pod, Field::Container].map(get).join("/");
            let how = if one.how.is_empty() { "" } else { ", a replica" };
            format!("{} {owner} {}{how}", who.device().unwrap(), one.attributes[0].1)
        });
        told.collect()
    }

    #[test]
    fn a_gpu_is_one_container_s_or_shared_and_a_part_is_a_part() {
        let gpu = "nvidia.com/gpu";
        let all = [
            held("a", "engine", gpu, "GPU-1"),
            held("a", "engine", gpu, "GPU-2"),
            held("b", "one", gpu, "GPU-2"),
            held("b", "two", gpu, "GPU-2"),
            held("c", "engine", gpu, "GPU-3::5"),
            held("c", "engine", gpu, "GPU-3::6"),
            held("d", "engine", "nvidia.com/mig-3g.40gb", "MIG-4"),
            held("d", "engine", "nvidia.com/mig-3g.40gb", "MIG-GPU-5/0/0"),
            held("e", "engine", "nvidia.com/mig-1g.10gb.shared", "MIG-6::0"),
        ];
        let expected = [
            "MIG-4 llm/d/engine part",
            "MIG-6 llm/e/engine shared, a replica",
            "GPU-1 llm/a/engine exclusive",
            "GPU-2 llm/a/engine shared",
            "GPU-2 llm/b/one shared",
            "GPU-2 llm/b/two shared",
            "GPU-3 llm/c/engine shared, a replica",
            "GPU-5/0 llm/d/engine part",
        ];
        let mut told = owners(&all);
        told.sort();
        let mut expected: Vec<_> = expected.iter().map(|line| (*line).to_owned()).collect();
        expected.sort();
        assert_eq!(told, expected);
    }

    #[test]
    fn every_way_to_name_a_device_is_read_and_what_is_no_gpu_is_left_out() {
        for (resource, id, device) in [
            ("amd.com/gpu", "0000:3B:00.0", "0000:3b:00.0 llm/p/c exclusive"),
            ("amd.com/gpu", "0000:3b:00.0-slice-1", "0000:3b:00.0 llm/p/c shared, a replica"),
            ("amd.com/cpx_nps4", "amdgpu_xcp_12", "amdgpu_xcp_12 llm/p/c part"),
            ("nvidia.com/gpu", "nvidia0/vgpu3", "nvidia0 llm/p/c shared, a replica"),
            ("nvidia.com/renamed", "GPU-1", "GPU-1 llm/p/c exclusive"),
            (
                "gpu.nvidia.com",
                "gpu.nvidia.com/node/gpu-0",
                "gpu.nvidia.com/node/gpu-0 llm/p/c exclusive",
            ),
        ] {
            assert_eq!(owners(&[held("p", "c", resource, id)]), [device]);
        }
        let others = [
            held("p", "c", "nvidia.com/hostdev", "0000:3b:00.1"),
            held("p", "c", "amd.com/nic", "0000:3b:00.1"),
            held("p", "c", "intel.com/sriov", "GPU-1"),
            held("p", "c", "compute-domain.nvidia.com", "compute-domain.nvidia.com/n/channel-0"),
            held("p", "c", "cpu", "1"),
        ];
        let reading = read_held(others);
        assert_eq!((reading.measured.len(), reading.unknown.len()), (0, 1));
    }

    proptest! {
        /// Whoever has what: each container that has a device is told once, as one of several or alone.
        #[test]
        fn each_owner_is_told_once(
            all in prop::collection::vec((0..3_u8, 0..2_u8, 0..4_u8, 0..3_u8), 0..12),
        ) {
            let texts: Vec<_> = all.iter().map(|(pod, container, gpu, replica)| {
                let id = match replica { 0 => format!("GPU-{gpu}"), _ => format!("GPU-{gpu}::{replica}") };
                (format!("p{pod}"), format!("c{container}"), id)
            }).collect();
            let held = texts.iter().map(|(pod, container, id)| held(pod, container, "nvidia.com/gpu", id));
            let reading = read_held(held);
            let mut pairs: Vec<_> = all.iter().map(|(pod, container, gpu, _)| (gpu, pod, container)).collect();
            pairs.sort();
            pairs.dedup();
            prop_assert_eq!(reading.measured.len(), pairs.len());
            for (one, (gpu, pod, container)) in reading.measured.iter().zip(&pairs) {
                prop_assert_eq!(one.identity.get(Field::Gpu), Some(&*format!("GPU-{gpu}")));
                let alone = pairs.iter().filter(|(of, ..)| of == gpu).count() == 1;
                let whole = all.iter()
                    .filter(|(p, c, g, _)| (g, p, c) == (*gpu, *pod, *container))
                    .all(|(.., replica)| *replica == 0);
                let expected = if alone && whole { "exclusive" } else { "shared" };
                prop_assert_eq!(&*one.attributes[0].1, expected);
            }
        }
    }
}
