//! Merging symbols, the earliest pair first and of equals the left one, until none merges.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::pairs::{Merge, Pairs};

/// Most symbols that are searched from end to end for the next merge; more of them are queued.
const SEARCHED_MAX: usize = 96;

/// Symbols that are merged at once in a long piece.
pub(super) const WINDOW: usize = 96;

/// A token, or what may become one.
#[derive(Debug, Clone, Copy)]
struct Part {
    symbol: u32,
    /// Where the next one begins.
    end: u32,
    /// What it and the next one merge into.
    merge: Merge,
}

/// A part that knows its neighbours by number.
#[derive(Debug, Clone, Copy)]
struct Linked {
    symbol: u32,
    before: u32,
    after: u32,
    merge: Merge,
}

/// What merging needs, kept to be used again.
#[derive(Default)]
pub(super) struct Workspace {
    pub(super) symbols: Vec<u32>,
    parts: Vec<Part>,
    linked: Vec<Linked>,
    queue: BinaryHeap<Reverse<(Merge, u32)>>,
    /// Where the tokens end that the last merging left.
    ends: Vec<u32>,
}

/// How many tokens `workspace.symbols` merge into.
///
/// Takes time in proportion to the symbols, whatever they are, but for a factor that grows with the
/// logarithm of how far one merge can reach.
pub(super) fn count(pairs: &Pairs, workspace: &mut Workspace) -> usize {
    let symbols = std::mem::take(&mut workspace.symbols);
    let tokens = if symbols.len() <= SEARCHED_MAX {
        workspace.search(pairs, &symbols);
        workspace.parts.len()
    } else {
        workspace.count_by_windows(pairs, &symbols)
    };
    workspace.symbols = symbols;
    tokens
}

/// The two symbols that `workspace.symbols` merge into, if they are two.
pub(super) fn pair(pairs: &Pairs, workspace: &mut Workspace) -> Option<(u32, u32)> {
    let symbols = std::mem::take(&mut workspace.symbols);
    workspace.search(pairs, &symbols);
    workspace.symbols = symbols;
    match *workspace.parts {
        [left, right] => Some((left.symbol, right.symbol)),
        _ => None,
    }
}

/// What both ways of merging without windows make of `workspace.symbols`: how many tokens.
#[cfg(test)]
pub(super) fn at_once(pairs: &Pairs, workspace: &mut Workspace) -> [usize; 2] {
    let symbols = workspace.symbols.clone();
    workspace.search(pairs, &symbols);
    workspace.ends.clear();
    workspace.queue(pairs, &symbols);
    [workspace.parts.len(), workspace.ends.len()]
}

impl Workspace {
    /// Merges a long run window by window.
    ///
    /// Tokens in a row are what the whole merges into if and only if each two neighbours are what
    /// they merge into by themselves. Within a window that holds; between one and the next it is
    /// tried, and when it does not hold, the next begins further back. The last tokens of a window
    /// are not taken, since its end may have cut one.
    fn count_by_windows(&mut self, pairs: &Pairs, symbols: &[u32]) -> usize {
        let mut ends: Vec<u32> = Vec::new();
        let mut window = WINDOW;
        let mut back = 1;
        loop {
            let start = ends.last().map_or(0, |&end| end as usize);
            let stop = symbols.len().min(start + window);
            self.merge(pairs, symbols.get(start..stop).unwrap_or_default());
            let first = self.ends.first().map_or(start, |&end| start + end as usize);
            if let Some((&last, before)) = ends.split_last() {
                let from = before.last().map_or(0, |&end| end as usize);
                self.search(pairs, symbols.get(from..first).unwrap_or_default());
                let as_they_are = matches!(
                    *self.parts, [left, _] if from + left.end as usize == last as usize
                );
                if !as_they_are {
                    ends.truncate(ends.len().saturating_sub(back));
                    window = 2 * (stop - ends.last().map_or(0, |&end| end as usize));
                    back *= 2;
                    continue;
                }
            }
            if stop == symbols.len() {
                return ends.len() + self.ends.len();
            }
            let kept = self.ends.len() - (self.ends.len() / 4).max(2).min(self.ends.len());
            ends.extend(self.ends.iter().take(kept).map(|end| offset(start) + end));
            if kept == 0 {
                window *= 2;
            } else {
                (window, back) = (WINDOW, 1);
            }
        }
    }

    /// Merges, and leaves the ends of the tokens.
    fn merge(&mut self, pairs: &Pairs, symbols: &[u32]) {
        self.ends.clear();
        if symbols.len() <= SEARCHED_MAX {
            self.search(pairs, symbols);
            self.ends.extend(self.parts.iter().map(|part| part.end));
        } else {
            self.queue(pairs, symbols);
        }
    }

    /// Merges few symbols: looks at all of them for the next merge.
    fn search(&mut self, pairs: &Pairs, symbols: &[u32]) {
        let parts = &mut self.parts;
        parts.clear();
        let mut rest = symbols.iter().copied().zip(1..).peekable();
        while let Some((symbol, end)) = rest.next() {
            let merge = rest.peek().map_or(Merge::NONE, |&(after, _)| pairs.get(symbol, after));
            parts.push(Part { symbol, end, merge });
        }
        loop {
            let mut next = (Merge::NONE, 0);
            for (at, part) in parts.iter().enumerate() {
                if part.merge < next.0 {
                    next = (part.merge, at);
                }
            }
            let (merge, at) = next;
            if merge == Merge::NONE || at + 1 >= parts.len() {
                return;
            }
            let end = parts.remove(at + 1).end;
            let symbol = merge.merged();
            let after = parts.get(at + 1).map(|after| after.symbol);
            let merge = after.map_or(Merge::NONE, |after| pairs.get(symbol, after));
            if let Some(part) = parts.get_mut(at) {
                *part = Part { symbol, end, merge };
            }
            if let Some(before) = at.checked_sub(1).and_then(|before| parts.get_mut(before)) {
                before.merge = pairs.get(before.symbol, symbol);
            }
        }
    }

    /// Merges many symbols: keeps a queue of what merges next.
    fn queue(&mut self, pairs: &Pairs, symbols: &[u32]) {
        let Self { linked, queue, ends, .. } = self;
        linked.clear();
        let mut waiting = std::mem::take(queue).into_vec();
        waiting.clear();
        for (at, &symbol) in (0_u32..).zip(symbols) {
            linked.push(Linked {
                symbol,
                before: at.wrapping_sub(1),
                after: at + 1,
                merge: Merge::NONE,
            });
        }
        for at in 0..offset(symbols.len()) {
            let merge = relink(linked, pairs, at);
            if merge != Merge::NONE {
                waiting.push(Reverse((merge, at)));
            }
        }
        *queue = waiting.into();
        while let Some(Reverse((merge, at))) = queue.pop() {
            let Some(part) = linked.get_mut(at as usize).filter(|part| part.merge == merge) else {
                continue;
            };
            part.symbol = merge.merged();
            let (before, gone) = (part.before, part.after);
            let Some(gone) = linked.get_mut(gone as usize) else { continue };
            gone.merge = Merge::NONE;
            gone.symbol = GONE;
            let after = gone.after;
            if let Some(part) = linked.get_mut(at as usize) {
                part.after = after;
            }
            if let Some(after) = linked.get_mut(after as usize) {
                after.before = at;
            }
            for at in [before, at] {
                let merge = relink(linked, pairs, at);
                if merge != Merge::NONE {
                    queue.push(Reverse((merge, at)));
                }
            }
        }
        ends.extend(linked.iter().filter(|part| part.symbol != GONE).map(|part| part.after));
    }
}

/// Of what has become part of the symbol before it.
const GONE: u32 = u32::MAX;

/// Looks up what the part at `at` and the next one merge into now.
fn relink(linked: &mut [Linked], pairs: &Pairs, at: u32) -> Merge {
    let merge = linked.get(at as usize).and_then(|part| {
        let after = linked.get(part.after as usize)?;
        Some(pairs.get(part.symbol, after.symbol))
    });
    let merge = merge.unwrap_or(Merge::NONE);
    if let Some(part) = linked.get_mut(at as usize) {
        part.merge = merge;
    }
    merge
}

/// Texts are far shorter than 4 GiB; one that is not is merged no further.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
