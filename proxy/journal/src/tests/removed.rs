//! Removes segments while they are compressed, in every order of the steps of both.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use tempfile::TempDir;

use super::super::compress::closed;
use super::super::disk::{Disk, How, Kernel, OpenFile, Status};
use super::super::files;

/// Segments before the removal, of so many entries. The last one is open.
const SEGMENTS: u64 = 3;
const ENTRIES: u64 = 10;
/// So many of them are removed.
const REMOVED: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Compresses,
    Removes,
}

/// Whose operation is next. When one has ended, the other goes on as it likes.
#[derive(Debug, Default)]
struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The last of them is the next one.
    order: Vec<Who>,
    ended: Vec<Who>,
    /// Operations of both.
    done: Vec<Who>,
}

/// The disk as one of them has it: each operation waits for its turn, and the journal is looked at behind
/// it.
#[derive(Debug)]
struct InTurn<'a> {
    who: Who,
    turns: &'a Turns,
    dir: &'a Path,
}

impl InTurn<'_> {
    fn step<T>(&self, operation: impl FnOnce() -> T) -> T {
        let state = self.turns.state.lock().unwrap();
        let mut state = self
            .turns
            .changed
            .wait_while(state, |state| {
                state.order.last().is_some_and(|who| *who != self.who && !state.ended.contains(who))
            })
            .unwrap();
        if state.order.last() == Some(&self.who) {
            state.order.pop();
        }
        let done = operation();
        state.done.push(self.who);
        assert_no_gap(self.dir);
        drop(state);
        self.turns.changed.notify_all();
        done
    }
}

impl Drop for InTurn<'_> {
    fn drop(&mut self) {
        if let Ok(mut state) = self.turns.state.lock() {
            state.ended.push(self.who);
        }
        self.turns.changed.notify_all();
    }
}

impl Disk for InTurn<'_> {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.step(|| Kernel.create_dir(dir))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.step(|| Kernel.list(dir))
    }

    fn open(&self, path: &Path, how: How) -> io::Result<Arc<dyn OpenFile>> {
        self.step(|| Kernel.open(path, how))
    }

    fn status(&self, path: &Path) -> io::Result<Status> {
        self.step(|| Kernel.status(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(|| Kernel.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step(|| Kernel.remove(path))
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        // No power is cut here.
        self.step(|| Ok(()))
    }
}

/// The numbers with which the segments begin that are there.
fn firsts(dir: &Path) -> Vec<u64> {
    files::list(dir, &Kernel).unwrap().into_iter().map(|(first, _)| first).collect()
}

/// All segments behind the oldest one are there.
fn assert_no_gap(dir: &Path) {
    let there = firsts(dir);
    let all: Vec<_> = (0..SEGMENTS).map(|segment| segment * ENTRIES + 1).collect();
    assert!(all.ends_with(&there), "{there:?}");
}

/// Compresses and removes in this order, and then as it comes. Whose operations there were.
fn run(mut order: Vec<Who>) -> Vec<Who> {
    let dir = TempDir::new().unwrap();
    let dir = dir.path();
    let paths: Vec<_> =
        (0..SEGMENTS).map(|segment| files::path(dir, segment * ENTRIES + 1)).collect();
    for path in &paths {
        std::fs::write(path, b"what is in it does not matter here").unwrap();
    }
    let old = &paths[..REMOVED];
    order.reverse();
    let turns = &Turns { state: State { order, ..State::default() }.into(), ..Turns::default() };
    thread::scope(|scope| {
        scope.spawn(move || {
            let disk = InTurn { who: Who::Compresses, turns, dir };
            closed(dir, u64::MAX, &disk, &mut || true).unwrap();
        });
        scope.spawn(move || {
            let disk = InTurn { who: Who::Removes, turns, dir };
            old.iter().for_each(|path| files::remove(path, &disk).unwrap());
        });
    });
    let left = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(left.collect::<Vec<_>>(), paths[REMOVED..]);
    std::mem::take(&mut turns.state.lock().unwrap().done)
}

#[test]
fn no_segment_that_is_removed_while_it_is_compressed_comes_back_for_a_moment() {
    use Who::{Compresses, Removes};
    let count = |done: &[Who], who| done.iter().filter(|it| **it == who).count();
    // First all of the one, then all of the other.
    let alone = run(vec![Compresses; 100]);
    let [most, removals] = [Compresses, Removes].map(|who| count(&alone, who));
    assert!(most > 8 && removals >= 2 * REMOVED, "{most} {removals}");
    // The one is interrupted at each operation by each part of the other, and goes on after that.
    for before in 0..most {
        for first in 0..=removals {
            for between in 0..most - before {
                let parts = [(Compresses, before), (Removes, first), (Compresses, between)];
                let order = parts.map(|(who, count)| std::iter::repeat_n(who, count));
                let rest = std::iter::repeat_n(Removes, 4 * REMOVED);
                run(order.into_iter().flatten().chain(rest).collect());
            }
        }
    }
}
