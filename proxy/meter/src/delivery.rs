//! Decides which bytes of a read go to the client at once, and which wait.

use bytes::Bytes;

use crate::cut::Trim;

/// Longest event that is withheld until it is whole, in bytes. A longer one passes as it comes.
const WITHHELD_BYTES_MAX: usize = 64 << 10;

/// One read, divided. `forward` then `hold` are the read's bytes, but for what stays withheld and
/// what only we asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delivery {
    /// To be forwarded now.
    pub forward: Bytes,
    /// To be forwarded when the exchange has been settled: the provider's end mark and all behind
    /// it.
    pub hold: Bytes,
}

/// What becomes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes on.
    Pass,
    /// Only we asked for it: it goes nowhere.
    Remove,
    /// Only we asked for part of it: the rest goes on.
    Trim,
    /// It ends the answer: it waits, and so does all that follows.
    End,
}

/// Decides what of one event stream the client gets.
#[derive(Debug, Default)]
pub(crate) struct EventFilter {
    /// Blocks may have to be removed or trimmed: one that is not whole is withheld.
    hides: bool,
    withheld: Vec<u8>,
    /// The unfinished block grew too long and has begun to pass.
    is_passing: bool,
    /// What became of the last block, if it ended with CR: an LF that follows belongs to it.
    after_cr: Option<Verdict>,
    is_over: bool,
}

/// One read on its way through.
#[derive(Debug)]
pub(crate) struct FilteringRead<'g> {
    filter: &'g mut EventFilter,
    /// Where the current block begins in the read.
    block: usize,
    /// Where that begins which goes on but is not in `forward` yet.
    run: usize,
    forward: Joined,
    /// Set once the end mark is in this read or behind us.
    hold: Option<Bytes>,
}

impl EventFilter {
    pub(crate) fn new(hides: bool) -> Self {
        Self { hides, ..Self::default() }
    }

    /// Begins to divide `read`, which every step is handed again: the last one takes it.
    pub(crate) fn start_read(&mut self, read: &Bytes) -> FilteringRead<'_> {
        let hold = self.is_over.then(|| read.clone());
        let mut filtering =
            FilteringRead { filter: self, block: 0, run: 0, forward: Joined::default(), hold };
        filtering.step_over_lf(read);
        filtering
    }

    /// Whether bytes are withheld. Nobody has been sent them.
    pub(crate) const fn withholds(&self) -> bool {
        !self.withheld.is_empty()
    }

    /// What is left of the withheld block, of which no more will come.
    pub(crate) fn release_last(&mut self, verdict: Verdict, trim: Trim<'_>) -> Bytes {
        let withheld = self.release();
        match verdict {
            Verdict::Remove => Bytes::new(),
            Verdict::Trim => {
                let mut left = Vec::new();
                trim.copy(&withheld, &mut left);
                left.into()
            }
            Verdict::Pass | Verdict::End => withheld,
        }
    }

    /// Whether something may have to be taken out.
    pub(crate) const fn hides(&self) -> bool {
        self.hides
    }

    /// Withholds a read whose kind is not known, if there is room and something may have to be taken
    /// out of it.
    pub(crate) fn withhold(&mut self, read: &[u8]) -> bool {
        let fits = self.hides && self.withheld.len() + read.len() <= WITHHELD_BYTES_MAX;
        if fits {
            self.withheld.extend_from_slice(read);
        }
        fits
    }

    /// What is withheld.
    pub(crate) fn release(&mut self) -> Bytes {
        std::mem::take(&mut self.withheld).into()
    }
}

impl FilteringRead<'_> {
    /// The current block ends at `end`; `trim` says what to take out of it, if that is the verdict.
    pub(crate) fn block(&mut self, read: &Bytes, end: usize, verdict: Verdict, trim: Trim<'_>) {
        if self.hold.is_some() {
            return;
        }
        let length = self.filter.withheld.len() + end.saturating_sub(self.block);
        let is_whole = !std::mem::take(&mut self.filter.is_passing) && length <= WITHHELD_BYTES_MAX;
        let ended_with = end.checked_sub(1).and_then(|last| read.get(last));
        let ended_with_cr = ended_with == Some(&b'\r');
        let verdict = match verdict {
            Verdict::Remove | Verdict::Trim if !(self.filter.hides && is_whole) => Verdict::Pass,
            verdict => verdict,
        };
        match verdict {
            Verdict::End => {
                self.forward.push(slice(read, self.run, self.block));
                let mut hold = Joined::default();
                hold.push(self.filter.release());
                hold.push(slice(read, self.block, read.len()));
                self.hold = Some(hold.finish());
                self.filter.is_over = true;
            }
            Verdict::Remove => {
                self.forward.push(slice(read, self.run, self.block));
                self.filter.withheld.clear();
                self.run = end;
            }
            Verdict::Trim => {
                self.forward.push(slice(read, self.run, self.block));
                let last = read.get(self.block..end).unwrap_or_default();
                if self.filter.withheld.is_empty() {
                    trim.copy(last, self.forward.open());
                } else {
                    self.filter.withheld.extend_from_slice(last);
                    trim.copy(&self.filter.withheld, self.forward.open());
                    self.filter.withheld.clear();
                }
                self.run = end;
            }
            Verdict::Pass if self.filter.withheld.is_empty() => {}
            Verdict::Pass => self.forward.push(self.filter.release()),
        }
        self.filter.after_cr = ended_with_cr.then_some(verdict);
        self.block = end;
        self.step_over_lf(read);
    }

    /// The read is used up.
    pub(crate) fn finish(mut self, read: Bytes) -> Delivery {
        if let Some(hold) = self.hold {
            return Delivery { forward: self.forward.finish(), hold };
        }
        let end = read.len();
        let unfinished = self.filter.withheld.len() + end.saturating_sub(self.block);
        if unfinished > 0 {
            if self.filter.hides && !self.filter.is_passing && unfinished <= WITHHELD_BYTES_MAX {
                self.filter.withheld.extend_from_slice(read.get(self.block..).unwrap_or_default());
                self.forward.push(slice(&read, self.run, self.block));
                return Delivery { forward: self.forward.finish(), hold: Bytes::new() };
            }
            self.filter.is_passing = true;
            self.forward.push(self.filter.release());
        }
        // Nearly always all of it, handed on as it came.
        self.forward.push(if self.run == 0 { read } else { slice(&read, self.run, end) });
        Delivery { forward: self.forward.finish(), hold: Bytes::new() }
    }

    fn step_over_lf(&mut self, read: &[u8]) {
        let Some(next) = read.get(self.block) else { return };
        if let Some(verdict) = self.filter.after_cr.take()
            && *next == b'\n'
        {
            self.block += 1;
            if verdict == Verdict::Remove {
                self.run = self.block;
            }
        }
    }
}

fn slice(read: &Bytes, from: usize, to: usize) -> Bytes {
    if from < to { read.slice(from..to) } else { Bytes::new() }
}

/// Pieces put together; a single one is not copied.
#[derive(Debug, Default)]
struct Joined {
    first: Bytes,
    all: Vec<u8>,
}

impl Joined {
    fn push(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        if self.first.is_empty() && self.all.is_empty() {
            self.first = piece;
            return;
        }
        self.open().extend_from_slice(&piece);
    }

    /// All so far, to be added to.
    fn open(&mut self) -> &mut Vec<u8> {
        if self.all.is_empty() {
            self.all.extend_from_slice(&self.first);
        }
        &mut self.all
    }

    fn finish(self) -> Bytes {
        if self.all.is_empty() { self.first } else { self.all.into() }
    }
}
