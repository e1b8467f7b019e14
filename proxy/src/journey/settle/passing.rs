//! Counting an answer's text while it passes, so that little of it is kept and little is left to
//! do when it ends.

use std::panic::{AssertUnwindSafe, catch_unwind};

use taximeter_meter::Meter;
use taximeter_tokenizer::{Choice, Count, Counter, Tokenizer};

/// Text that gathers before it is counted, in bytes: counting has a start that should be worth it,
/// and the chunk that completes it waits for all of it.
const FOLD_BYTES: usize = 512;

/// What becomes of an answer's text while it passes.
#[derive(Debug, Default)]
pub(super) enum Passing {
    /// Too little has passed to choose what to count with.
    #[default]
    Undecided,
    /// The meter keeps it, up to its limit.
    Kept,
    /// The meter keeps it until the vocabulary is there.
    Loading(Tokenizer),
    /// Counted as it comes.
    Counted(Box<Counting>),
    /// The counter panicked; it takes what it was given with it.
    Lost,
}

/// A count under way.
#[derive(Debug)]
pub(super) struct Counting {
    tokenizer: Tokenizer,
    counter: Counter,
    /// What it was given.
    bytes: u64,
}

/// What follows from a step.
#[derive(Debug)]
pub(super) enum Next {
    Nothing,
    /// This has to be loaded, on a thread that carries nothing.
    Load(Tokenizer),
    /// The counter panicked just now.
    Panicked,
}

impl Passing {
    /// Counts what has gathered, if it is enough. `choose` is asked once.
    pub(super) fn step(
        &mut self,
        meter: &mut Meter,
        choose: impl FnOnce(&Meter) -> Option<Choice>,
    ) -> Next {
        if meter.kept_text_bytes() < FOLD_BYTES {
            return Next::Nothing;
        }
        if let Self::Undecided = self {
            let exact = choose(meter).filter(|choice| choice.exact);
            *self = exact.map_or(Self::Kept, |choice| Self::Loading(choice.tokenizer));
        }
        if let Self::Loading(tokenizer) = self
            && tokenizer.is_loaded()
        {
            let (tokenizer, counter) = (tokenizer.clone(), tokenizer.counter());
            *self = Self::Counted(Box::new(Counting { tokenizer, counter, bytes: 0 }));
        }
        if let Self::Counted(counting) = self {
            let whole =
                catch_unwind(AssertUnwindSafe(|| meter.fold_text(|text| counting.add(text))));
            if whole.is_err() {
                *self = Self::Lost;
                return Next::Panicked;
            }
        }
        match self {
            Self::Loading(tokenizer) => Next::Load(tokenizer.clone()),
            _ => Next::Nothing,
        }
    }

    /// Bytes that were taken from the meter.
    pub(super) const fn bytes(&self) -> u64 {
        match self {
            Self::Counted(counting) => counting.bytes,
            _ => 0,
        }
    }

    /// Bytes of them that are still to be counted.
    pub(super) const fn waiting_bytes(&self) -> usize {
        match self {
            Self::Counted(counting) => counting.counter.waiting_bytes(),
            _ => 0,
        }
    }
}

impl Counting {
    fn add(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.counter.push(text.as_bytes());
    }

    pub(super) fn tokenizer_name(&self) -> &str {
        self.tokenizer.name()
    }

    /// The count, with what was not given yet.
    pub(super) fn finish(mut self, rest: &str) -> Count {
        self.counter.push(rest.as_bytes());
        self.counter.finish()
    }
}
