//! Merges symbols until none merges: the earliest pair first, and the left one of equal pairs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::pairs::{NEVER, Pairs};

/// Most symbols that are searched from end to end for the next merge; more of them are queued.
const SEARCHED_MAX: usize = 64;

/// Symbols that are merged at once in a long piece.
pub(super) const WINDOW: usize = 48;

/// Tokens that a window should have room for.
const WINDOW_TOKENS: usize = 16;

/// Last tokens of a window that are not taken, since its end may have cut one.
const CUT_TOKENS: usize = 3;

/// A token, or what may become one.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    symbol: u32,
    /// Where the next one begins.
    end: u32,
    /// What it and the next one merge into.
    merge: u32,
}

/// A part that knows its neighbours by number.
#[derive(Debug, Clone, Copy)]
struct Linked {
    symbol: u32,
    before: u32,
    after: u32,
    merge: u32,
}

/// What was merged last, and where its tokens ended.
#[derive(Default)]
struct Recent {
    range: Range<usize>,
    ends: Vec<u32>,
}

/// What merging needs, kept to be used again.
#[derive(Default)]
pub(super) struct Workspace {
    pub(super) symbols: Vec<u32>,
    parts: Vec<Symbol>,
    linked: Vec<Linked>,
    /// What may be merged into next, and the place of it.
    queue: BinaryHeap<Reverse<u64>>,
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

/// What `workspace.symbols`, which are few, merge into: each symbol and where the next one begins.
pub(super) fn merged<'w>(
    pairs: &Pairs,
    workspace: &'w mut Workspace,
) -> impl Iterator<Item = (u32, u32)> + Clone + use<'w> {
    let symbols = std::mem::take(&mut workspace.symbols);
    workspace.search(pairs, &symbols);
    workspace.symbols = symbols;
    workspace.parts.iter().map(|part| (part.symbol, part.end))
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
    /// tried, and when it does not hold, the next begins further back.
    fn count_by_windows(&mut self, pairs: &Pairs, symbols: &[u32]) -> usize {
        let (mut windows, mut seams) = (Recent::default(), Recent::default());
        let mut ends: Vec<usize> = Vec::new();
        let mut window = WINDOW;
        let mut back = 1;
        loop {
            let taken = ends.len();
            let start = ends.last().copied().unwrap_or(0);
            let stop = symbols.len().min(start + window);
            let found = self.recall(pairs, symbols, start..stop, &mut windows);
            if let (Some(left), Some(&right)) = (taken.checked_sub(1), found.first()) {
                let from = left.checked_sub(1).and_then(|at| ends.get(at)).copied().unwrap_or(0);
                let seam = from..start + right as usize;
                let both = self.recall(pairs, symbols, seam, &mut seams);
                if !matches!(*both, [end, _] if from + end as usize == start) {
                    ends.truncate(taken.saturating_sub(back));
                    window = 2 * (stop - ends.last().copied().unwrap_or(0));
                    back *= 2;
                    continue;
                }
            }
            let last = stop == symbols.len();
            let kept = if last { found.len() } else { found.len().saturating_sub(CUT_TOKENS) };
            ends.extend(found.iter().take(kept).map(|&end| start + end as usize));
            if last {
                return ends.len();
            }
            window = WINDOW.max(window / found.len().max(1) * WINDOW_TOKENS);
            back = 1;
        }
    }

    /// Where the tokens end that `symbols[range]` merge into, counted from its start.
    ///
    /// Long pieces tend to be one thing over and over: then it is what it was the last time.
    fn recall<'r>(
        &mut self,
        pairs: &Pairs,
        symbols: &[u32],
        range: Range<usize>,
        recent: &'r mut Recent,
    ) -> &'r [u32] {
        let merging = symbols.get(range.clone()).unwrap_or_default();
        if symbols.get(recent.range.clone()) != Some(merging) {
            self.merge(pairs, merging);
            std::mem::swap(&mut self.ends, &mut recent.ends);
        }
        recent.range = range;
        &recent.ends
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
        let mut next = (NEVER, 0);
        for (at, two) in symbols.windows(2).enumerate() {
            let &[symbol, after] = two else { break };
            let merge = pairs.get(symbol, after);
            if merge < next.0 {
                next = (merge, at);
            }
            parts.push(Symbol { symbol, end: offset(at) + 1, merge });
        }
        if let Some(&symbol) = symbols.last() {
            parts.push(Symbol { symbol, end: offset(symbols.len()), merge: NEVER });
        }
        while next.0 != NEVER && next.1 + 1 < parts.len() {
            let (symbol, at) = next;
            let end = parts.remove(at + 1).end;
            let after = parts.get(at + 1).map(|after| after.symbol);
            let merge = after.map_or(NEVER, |after| pairs.get(symbol, after));
            if let Some(part) = parts.get_mut(at) {
                *part = Symbol { symbol, end, merge };
            }
            if let Some(before) = at.checked_sub(1).and_then(|before| parts.get_mut(before)) {
                before.merge = pairs.get(before.symbol, symbol);
            }
            next = (NEVER, 0);
            for (at, part) in parts.iter().enumerate() {
                if part.merge < next.0 {
                    next = (part.merge, at);
                }
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
            linked.push(Linked { symbol, before: at.wrapping_sub(1), after: at + 1, merge: NEVER });
        }
        for at in 0..offset(symbols.len()) {
            let merge = relink(linked, pairs, at);
            if merge != NEVER {
                waiting.push(Reverse(queued(merge, at)));
            }
        }
        *queue = waiting.into();
        while let Some(Reverse(next)) = queue.pop() {
            let at = place(next);
            // What merged meanwhile is another pair now, or none.
            let Some(part) = linked
                .get_mut(at as usize)
                .filter(|part| part.merge != NEVER && queued(part.merge, at) == next)
            else {
                continue;
            };
            part.symbol = part.merge;
            let (before, gone) = (part.before, part.after);
            let Some(gone) = linked.get_mut(gone as usize) else { continue };
            gone.merge = NEVER;
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
                if merge != NEVER {
                    queue.push(Reverse(queued(merge, at)));
                }
            }
        }
        ends.extend(linked.iter().filter(|part| part.symbol != GONE).map(|part| part.after));
    }
}

/// Of what has become part of the symbol before it.
const GONE: u32 = u32::MAX;

/// Looks up what the part at `at` and the next one merge into now.
fn relink(linked: &mut [Linked], pairs: &Pairs, at: u32) -> u32 {
    let merge = linked.get(at as usize).and_then(|part| {
        let after = linked.get(part.after as usize)?;
        Some(pairs.get(part.symbol, after.symbol))
    });
    let merge = merge.unwrap_or(NEVER);
    if let Some(part) = linked.get_mut(at as usize) {
        part.merge = merge;
    }
    merge
}

/// Less is merged earlier: the lower symbol, and of equals the left one.
const fn queued(merge: u32, at: u32) -> u64 {
    (merge as u64) << 32 | at as u64
}

/// The place in what [`queued`] made.
#[expect(clippy::cast_possible_truncation, reason = "the place is in the lower half")]
const fn place(queued: u64) -> u32 {
    queued as u32
}

/// Texts are far shorter than 4 GiB; one that is not is merged no further.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
