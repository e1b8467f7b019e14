use proptest::prelude::*;

use super::*;
use crate::events::tests::Sources;
use crate::events::watcher::Watcher;

const NOTHING: [&str; 0] = [];

fn moved(to: &str, from: &str) -> Vec<String> {
    vec![format!("gpu_owner: GPU-1 is given to {to} now, and was to {from}")]
}

/// Both have told that `GPU-1` is of pod `a`.
fn both() -> Sources {
    let mut all = Sources::new();
    assert_eq!(all.exporter_says(&[("GPU-1", "a")]), NOTHING);
    assert_eq!(all.kubelet_says(&[("a", "GPU-1")]), NOTHING);
    all
}

#[test]
fn a_move_that_both_tell_is_one_event_in_either_order() {
    let mut all = both();
    assert_eq!(all.kubelet_says(&[("b", "GPU-1")]), moved("llm/b", "llm/a"));
    assert_eq!(all.exporter_says(&[("GPU-1", "b")]), NOTHING);
    // The labels are first, and wait for the kubelet.
    assert_eq!(all.exporter_says(&[("GPU-1", "c")]), NOTHING);
    assert_eq!(all.kubelet_says(&[("c", "GPU-1")]), moved("llm/c", "llm/b"));
    assert_eq!(all.exporter_says(&[("GPU-1", "c")]), NOTHING);
    // Given back, and given again.
    assert_eq!(all.kubelet_says(&[]), moved("no pod", "llm/c"));
    assert_eq!(all.exporter_says(&[("GPU-1", "")]), NOTHING);
    assert_eq!(all.exporter_says(&[("GPU-1", "d")]), NOTHING);
    assert_eq!(all.kubelet_says(&[("d", "GPU-1")]), moved("llm/d", "no pod"));
}

#[test]
fn a_gpu_that_was_never_given_before_is_told_once_in_either_order() {
    for is_kubelet_first in [true, false] {
        let mut all = Sources::new();
        all.exporter_says(&[("GPU-1", "")]);
        all.kubelet_says(&[]);
        let mut told = Vec::new();
        if is_kubelet_first {
            told.extend(all.kubelet_says(&[("a", "GPU-1")]));
            told.extend(all.exporter_says(&[("GPU-1", "a")]));
        } else {
            told.extend(all.exporter_says(&[("GPU-1", "a")]));
            told.extend(all.kubelet_says(&[("a", "GPU-1")]));
        }
        told.extend(all.exporter_says(&[("GPU-1", "a")]));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].ends_with("now, and was to no pod"), "{told:?}");
    }
}

#[test]
fn a_move_that_only_one_of_them_tells_is_one_event() {
    let mut labels = Sources::new();
    labels.exporter_says(&[("GPU-1", "a")]);
    assert_eq!(labels.exporter_says(&[("GPU-1", "b")]), moved("b", "a"));
    assert_eq!(labels.exporter_says(&[("GPU-1", "")]), moved("no pod", "b"));
    // An exporter that knows no pods.
    let mut kubelet = Sources::new();
    kubelet.exporter_says(&[("GPU-1", "")]);
    assert_eq!(kubelet.kubelet_says(&[("a", "GPU-1")]), NOTHING, "its first word");
    assert_eq!(kubelet.kubelet_says(&[("b", "GPU-1")]), moved("llm/b", "llm/a"));
    assert_eq!(kubelet.exporter_says(&[("GPU-1", "")]), NOTHING);
    assert_eq!(kubelet.kubelet_says(&[("b", "GPU-1")]), NOTHING);
    // One of another node, which the kubelet never lists.
    let mut other = both();
    other.exporter_says(&[("GPU-1", "a"), ("GPU-2", "x")]);
    let told = other.exporter_says(&[("GPU-1", "a"), ("GPU-2", "y")]);
    assert_eq!(told, ["gpu_owner: GPU-2 is given to y now, and was to x"]);
}

#[test]
fn sources_that_disagree_tell_no_move_also_while_the_kubelet_comes_and_goes() {
    let mut all = Sources::new();
    all.exporter_says(&[("GPU-1", "x")]);
    all.kubelet_says(&[("a", "GPU-1")]);
    for _ in 0..3 {
        assert_eq!(all.exporter_says(&[("GPU-1", "x")]), NOTHING);
        assert_eq!(all.kubelet_says(&[("a", "GPU-1")]), NOTHING);
        assert_eq!(all.silence_of_kubelet(&[("GPU-1", "x")]), NOTHING);
        let back = all.kubelet_says(&[("a", "GPU-1")]);
        assert!(back.iter().all(|text| text.starts_with("source_state")), "{back:?}");
        all.restart();
        assert_eq!(all.exporter_says(&[("GPU-1", "x")]), NOTHING);
        assert_eq!(all.kubelet_says(&[("a", "GPU-1")]), NOTHING);
    }
    // Nobody else tells it, so labels count.
    assert_eq!(all.silence_of_kubelet(&[("GPU-1", "y")]), moved("y", "llm/a"));
    let back = all.kubelet_says(&[("y", "GPU-1")]);
    assert_eq!(back, ["source_state: k.sock tells something again"]);
}

#[test]
fn a_move_while_the_gateway_was_away_is_one_event_whoever_answers_first() {
    let mut all = both();
    all.restart();
    assert_eq!(all.exporter_says(&[("GPU-1", "b")]), NOTHING, "the kubelet will say it");
    assert_eq!(all.kubelet_says(&[("b", "GPU-1")]), moved("llm/b", "llm/a"));
    assert_eq!(all.exporter_says(&[("GPU-1", "b")]), NOTHING);
    all.restart();
    assert_eq!(all.kubelet_says(&[("c", "GPU-1")]), moved("llm/c", "llm/b"));
    assert_eq!(all.exporter_says(&[("GPU-1", "c")]), NOTHING);
}

#[test]
fn a_kubelet_makes_no_gpu_come_or_go() {
    let mut all = both();
    let told = all.kubelet_says(&[("a", "GPU-1"), ("a", "GPU-7")]);
    assert_eq!(told, ["gpu_owner: GPU-7 is given to llm/a now, and was to no pod"]);
    let told = all.kubelet_says(&[]);
    assert!(told.iter().all(|text| text.starts_with("gpu_owner")), "{told:?}");
    assert_eq!(told.len(), 2);
    // One that goes, and comes again with another pod, is told as such.
    all.exporter_says(&[("GPU-1", ""), ("GPU-9", "")]);
    assert_eq!(all.exporter_says(&[("GPU-9", "")]).len(), 1);
    let told = all.exporter_says(&[("GPU-9", ""), ("GPU-1", "")]);
    assert_eq!(told, ["gpu_appeared: GPU-1 has come: a GPU"]);
}

#[test]
fn a_gpu_that_the_kubelet_calls_by_its_place_is_the_exporter_s_where_that_tells_the_place() {
    let mut all = Sources::new();
    all.exporter_says(&[("SN-1@0000:3b:00.0", "a"), ("SN-2", "a")]);
    assert_eq!(all.kubelet_says(&[("a", "0000:3b:00.0")]), NOTHING);
    let told = all.kubelet_says(&[("b", "0000:3b:00.0")]);
    assert_eq!(told, ["gpu_owner: SN-1 is given to llm/b now, and was to llm/a"]);
    assert_eq!(all.exporter_says(&[("SN-1@0000:3b:00.0", "b"), ("SN-2", "a")]), NOTHING);
    // What no exporter calls so may be any of its GPUs, and its labels say whose those are.
    let told = all.kubelet_says(&[("b", "0000:5e:00.0")]);
    assert_eq!(told, NOTHING);
    let told = all.exporter_says(&[("SN-1@0000:3b:00.0", "b"), ("SN-2", "c")]);
    assert_eq!(told, ["gpu_owner: SN-2 is given to c now, and was to a"]);
}

#[test]
fn what_a_kubelet_says_is_as_things_are_however_rarely_it_changes() {
    let mut all = both();
    let owners = |told: Vec<String>| -> Vec<String> {
        told.into_iter().filter(|text| text.starts_with("gpu_owner")).collect()
    };
    for _ in 0..2 {
        all.pass(3_600);
        assert_eq!(owners(all.kubelet_says(&[])), moved("no pod", "llm/a"));
        assert_eq!(owners(all.kubelet_says(&[("a", "GPU-1")])), moved("llm/a", "no pod"));
    }
    let told = all.silence_of_kubelet(&[("GPU-1", "b")]);
    assert_eq!(told, moved("b", "llm/a"), "it is stale soon");
}

#[test]
fn an_event_of_a_crash_is_known_of_its_source_and_of_the_gpu() {
    let mut all = both();
    let mut kept = all.watcher.known(Timestamp::UNIX_EPOCH, true).unwrap();
    let fact = Fact::new(KIND, "GPU-1", "llm/b", Vec::new());
    let event =
        all.watcher.all.held_by(&"k.sock".into(), &fact, true, Timestamp::UNIX_EPOCH).unwrap();
    kept.after(&event);
    all.watcher = Watcher::new(kept);
    assert_eq!(all.kubelet_says(&[("b", "GPU-1")]), NOTHING, "it was told before the crash");
    assert_eq!(all.kubelet_says(&[("a", "GPU-1")]), moved("llm/a", "llm/b"));
}

#[test]
fn pods_are_the_same_also_where_a_label_lacks_the_namespace() {
    assert!(are_same("llm/a, llm/b", "b, a") && are_same("", "") && are_same("a", "llm/a"));
    assert!(!are_same("llm/a", "a, b") && !are_same("llm/a", "x/a") && !are_same("", "llm/a"));
    assert!(!are_same("llm/aa", "a"));
}

proptest! {
    /// However a GPU moves, and in whatever order both tell it: each move is told once, as the kubelet
    /// tells it, or as labels do where there is no kubelet.
    #[test]
    fn each_move_is_one_event(
        pods in prop::collection::vec(0_u8..3, 1..20),
        late in prop::collection::vec(0_u8..3, 20),
        has_kubelet: bool,
    ) {
        let name = |pod: u8| ["", "a", "b"][usize::from(pod)];
        let mut all = Sources::new();
        all.exporter_says(&[("GPU-1", "a")]);
        if has_kubelet {
            all.kubelet_says(&[("a", "GPU-1")]);
        }
        let (mut told, mut moves, mut before) = (0, 0, 1);
        for (pod, late) in pods.into_iter().zip(late) {
            moves += usize::from(pod != before);
            let held = [(name(pod), "GPU-1")];
            let held = &held[..usize::from(pod > 0)];
            // The exporter tells it before the kubelet, after it, or not yet.
            if late == 0 {
                told += all.exporter_says(&[("GPU-1", name(pod))]).len();
            }
            if has_kubelet {
                told += all.kubelet_says(held).len();
            }
            if late == 1 || !has_kubelet {
                told += all.exporter_says(&[("GPU-1", name(pod))]).len();
            }
            before = pod;
        }
        let left_out: usize =
            all.watcher.all.held.values().map(|held| held.left_out as usize).sum();
        prop_assert_eq!(told + left_out, moves);
    }
}
