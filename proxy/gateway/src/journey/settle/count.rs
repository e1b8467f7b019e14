//! Counts what the engine did not report. It also counts what the engine reported, where the count
//! is exact.

use taximeter_meter::Wire;
use taximeter_net::upstream::RequestBody;
use taximeter_system::clock;
use taximeter_tokenizer::{Choice, estimate};
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::passing::Passing;
use crate::contexts::PromptContext;
use crate::counting::{Counting, input_tokens};

/// Texts up to this size are counted where they are, in bytes: that takes some ten microseconds,
/// about what handing them to another thread takes.
pub(super) const SHORT_BYTES_MAX: usize = 2 << 10;

/// What was counted; `None` was not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) input: Option<Tally>,
    pub(super) output: Option<Tally>,
    /// The prompt has more than the request.
    pub(super) context: bool,
}

impl Count {
    /// The count of a prompt that has `context` beside the request: a part is no count.
    pub(super) fn within(self, context: PromptContext) -> Self {
        let input = match context {
            PromptContext::None => return self,
            PromptContext::Known(size) => self.input.map(|tally| Tally {
                tokens: tally.tokens.saturating_add(size.likely),
                estimated: true,
            }),
            PromptContext::Unknown => None,
        };
        Self { input, context: true, ..self }
    }
}

/// One count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) tokens: u64,
    /// By bytes, or with a vocabulary or a form that may not be the model's.
    pub(super) estimated: bool,
}

/// What is to be counted at the end.
pub(super) struct Job {
    pub(super) counting: Counting,
    pub(super) input: Option<Input>,
    pub(super) output: Option<GeneratedText>,
}

/// A prompt to count.
pub(super) enum Input {
    /// Began when the request was sent, with the vocabulary of this name.
    Begun(oneshot::Receiver<Tally>, String),
    /// Began, and is over; `None` when the counter panicked.
    Counted(Option<Tally>, String),
    /// What the client sent.
    Body(Wire, RequestBody),
    /// Only its length is known.
    Bytes(u64),
}

/// Generated text to count.
pub(super) struct GeneratedText {
    /// What was counted while it passed.
    pub(super) passed: Passing,
    /// What was not.
    pub(super) rest: String,
    /// Bytes of all of it.
    pub(super) bytes: u64,
    /// Several answers, one within the other: counted as one text, they are an estimate.
    pub(super) mixed: bool,
}

impl Job {
    /// Whether it takes too little time to be worth a thread.
    pub(super) fn is_short(&mut self) -> bool {
        if self.input.as_mut().is_some_and(Input::is_being_counted) {
            return false;
        }
        let input = match &self.input {
            Some(Input::Body(_, body)) => {
                body.len() <= SHORT_BYTES_MAX as u64 && self.counting.is_quick()
            }
            _ => true,
        };
        let output = self.output.as_ref().is_none_or(|output| {
            let waiting = output.rest.len() + output.passed.waiting_bytes();
            waiting == 0 || waiting <= SHORT_BYTES_MAX && self.counting.choice.tokenizer.is_loaded()
        });
        input && output
    }

    /// Counts. Takes milliseconds for long texts, and waits for a prompt that is being counted.
    pub(super) fn run(self) -> Count {
        let Self { counting, input, output } = self;
        Count {
            input: input.and_then(|input| input.count(&counting)),
            output: output.and_then(|output| output.count(&counting.choice)),
            ..Count::default()
        }
    }

    /// The same without counting: what was counted already, and else by bytes. The body has
    /// `body_bytes`.
    pub(super) fn estimate(self, body_bytes: u64) -> Count {
        Count {
            input: self.input.and_then(|input| input.estimate(body_bytes, &self.counting.choice)),
            output: self.output.and_then(|output| output.estimate()),
            ..Count::default()
        }
    }
}

impl Tally {
    /// By bytes; of none there are none.
    pub(super) fn of_bytes(bytes: u64) -> Self {
        Self { tokens: estimate(bytes), estimated: bytes > 0 }
    }

    /// The same, counted with the vocabulary `name` where `choice` turned out to be right.
    pub(super) fn by(self, name: &str, choice: &Choice) -> Self {
        let is_right = choice.exact && choice.tokenizer.name() == name;
        Self { estimated: self.estimated || !is_right, ..self }
    }
}

impl Input {
    /// Whether it began and is not over.
    pub(super) fn is_being_counted(&mut self) -> bool {
        let Self::Begun(receiver, name) = self else { return false };
        let tally = match receiver.try_recv() {
            Ok(tally) => Some(tally),
            Err(TryRecvError::Closed) => None,
            Err(TryRecvError::Empty) => return true,
        };
        *self = Self::Counted(tally, std::mem::take(name));
        false
    }

    fn count(self, counting: &Counting) -> Option<Tally> {
        match self {
            Self::Begun(receiver, name) => {
                receiver.blocking_recv().ok().map(|tally| tally.by(&name, &counting.choice))
            }
            Self::Counted(tally, name) => tally.map(|tally| tally.by(&name, &counting.choice)),
            Self::Body(wire, body) => Some(input(wire, &body, counting)),
            Self::Bytes(bytes) => Some(Tally::of_bytes(bytes)),
        }
    }

    fn estimate(mut self, body_bytes: u64, choice: &Choice) -> Option<Tally> {
        let is_to_come = self.is_being_counted();
        match self {
            Self::Counted(tally, name) if !is_to_come => tally.map(|tally| tally.by(&name, choice)),
            _ => Some(Tally::of_bytes(body_bytes)),
        }
    }
}

/// Tokens of the prompt in a request's body.
pub(super) fn input(wire: Wire, body: &RequestBody, counting: &Counting) -> Tally {
    let pieces: Vec<&[u8]> = body.pieces().map(AsRef::as_ref).collect();
    let counted = input_tokens(wire, None, &pieces.concat(), counting, clock::wall());
    Tally { tokens: counted.tokens, estimated: counted.estimated }
}

impl GeneratedText {
    /// Tokens of all of it; `None` when a panic took some.
    pub(super) fn count(self, choice: &Choice) -> Option<Tally> {
        let Self { passed, rest, bytes, mixed } = self;
        let kept = passed.bytes() + rest.len() as u64;
        if bytes == 0 {
            return Some(Tally::of_bytes(0));
        }
        let (counted, same) = match passed {
            Passing::Counted(counting) => {
                let same = counting.tokenizer_name() == choice.tokenizer.name();
                (counting.finish(&rest), same)
            }
            Passing::Lost => return None,
            Passing::Undecided | Passing::Kept | Passing::Loading(_) => {
                (choice.tokenizer.count([&rest]), true)
            }
        };
        let beyond = bytes.saturating_sub(kept);
        Some(Tally {
            tokens: counted.tokens + estimate(beyond),
            estimated: !choice.exact || !same || counted.estimated || mixed || beyond > 0,
        })
    }

    fn estimate(self) -> Option<Tally> {
        (!matches!(self.passed, Passing::Lost)).then(|| Tally::of_bytes(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const O200K: &str = "o200k_base";

    #[test]
    fn a_prompt_that_was_not_kept_is_estimated_by_its_bytes() {
        let counting = Counting::built_in("gpt-4o");
        let tally = Input::Bytes(4_000_000).count(&counting).unwrap();
        assert!(tally.estimated && (500_000..4_000_000).contains(&tally.tokens), "{tally:?}");
    }

    #[test]
    fn what_nobody_has_the_time_to_count_is_estimated_unless_it_was_counted_already() {
        let job = |input| {
            let rest = "to the station ".repeat(200);
            let bytes = rest.len() as u64;
            let output = GeneratedText { passed: Passing::Kept, rest, bytes, mixed: false };
            let counting = Counting::built_in("gpt-4o");
            Job { counting, input: Some(input), output: Some(output) }.estimate(4_000)
        };
        let tally = Tally { tokens: 7, estimated: false };
        let (_tell, receiver) = oneshot::channel();
        let begun = job(Input::Begun(receiver, O200K.to_owned()));
        for count in [&begun, &job(Input::Bytes(4_000))] {
            let [input, output] = [count.input, count.output].map(Option::unwrap);
            assert!(input.estimated && (500..4_000).contains(&input.tokens), "{input:?}");
            assert!(output.estimated && (375..3_000).contains(&output.tokens), "{output:?}");
        }
        assert_eq!(job(Input::Counted(Some(tally), O200K.to_owned())).input, Some(tally));
        let other = job(Input::Counted(Some(tally), "p50k_base".to_owned())).input;
        assert_eq!(other, Some(Tally { estimated: true, ..tally }));
        let (tell, receiver) = oneshot::channel();
        tell.send(tally).unwrap();
        assert_eq!(job(Input::Begun(receiver, O200K.to_owned())).input, Some(tally));
    }

    #[test]
    fn a_prompt_whose_counter_panicked_is_unknown_and_waited_for_no_longer() {
        let (tell, receiver) = oneshot::channel::<Tally>();
        let counter = std::thread::spawn(move || {
            let _tell = tell;
            panic!("the counter");
        });
        counter.join().unwrap_err();
        let mut job = Job {
            counting: Counting::built_in("gpt-4o"),
            input: Some(Input::Begun(receiver, O200K.to_owned())),
            output: None,
        };
        assert!(job.is_short());
        assert_eq!(job.run(), Count::default());
    }
}
