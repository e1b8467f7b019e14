//! Counts the text of an answer while it passes, so that little text is kept and little work is
//! left at the end.

use std::panic::{AssertUnwindSafe, catch_unwind};

use taximeter_meter::Meter;
use taximeter_tokenizer::{Choice, Count, Counter, Tokenizer};

/// Text that gathers before it is counted, in bytes: counting has a start that should be worth it,
/// and the chunk that completes it waits for all of it.
const FOLD_BYTES: usize = 512;

/// What becomes of an answer's text while it passes.
#[derive(Debug, Clone, Default)]
pub(super) enum Passing {
    /// Too little has passed to choose what to count with.
    #[default]
    Undecided,
    /// The meter keeps it, up to its limit.
    Kept,
    /// The meter keeps it until the vocabulary is there.
    Loading(Tokenizer),
    /// Counted as it comes.
    Counted(Box<RunningCount>),
    /// The counter panicked; it takes what it was given with it.
    Lost,
}

/// A count under way.
#[derive(Debug, Clone)]
pub(super) struct RunningCount {
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
            *self = Self::Counted(Box::new(RunningCount { tokenizer, counter, bytes: 0 }));
        }
        match self {
            Self::Loading(tokenizer) => Next::Load(tokenizer.clone()),
            Self::Counted(_) => self.fold(meter, RunningCount::add),
            _ => Next::Nothing,
        }
    }

    /// Counts what the meter keeps, by `add`.
    fn fold(&mut self, meter: &mut Meter, add: impl FnOnce(&mut RunningCount, &str)) -> Next {
        let Self::Counted(counting) = self else { return Next::Nothing };
        let fold = AssertUnwindSafe(|| meter.fold_text(|text| add(counting, text)));
        if catch_unwind(fold).is_ok() {
            return Next::Nothing;
        }
        *self = Self::Lost;
        Next::Panicked
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

impl RunningCount {
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use taximeter_meter::{Dialect, Hidden, Setup, StreamEnd, Wire};

    use super::super::count::{GeneratedText, Tally};
    use super::*;
    use crate::tokenizers::{Models, Server, Tokenizers};
    use taximeter_system::clock;

    const WORDS: &str =
        "The settlement is thirteen dollars; тринадцать долларов, or 十三ドル!\n\n  ";

    fn choice(model: Option<&str>) -> Choice {
        let models = Models { request: model, response: None, server: Server::OpenAi };
        Tokenizers::default().choose(models).choice
    }

    fn meter() -> Meter {
        let started_at = clock::now();
        let wire = Wire::ChatCompletions;
        Meter::new(Setup {
            wire,
            dialect: Dialect::OpenAi,
            started_at,
            hidden: Hidden::default(),
            has_one_prompt: false,
        })
    }

    /// Feeds a text in events of `step` characters, and counts as a request does.
    fn count(model: &str, text: &str, step: usize) -> Tally {
        let (mut meter, mut passed) = (meter(), Passing::default());
        let characters: Vec<char> = text.chars().collect();
        for part in characters.chunks(step) {
            let part: String = part.iter().collect();
            let event = serde_json::json!({"choices": [{"index": 0, "delta": {"content": part}}]});
            meter.on_bytes(clock::now(), Bytes::from(format!("data: {event}\n\n")));
            let _ = passed.step(&mut meter, |_| Some(choice(Some(model))));
            if let Passing::Counted(_) = passed {
                assert!(meter.kept_text_bytes() < FOLD_BYTES);
            }
        }
        let measurement = meter.finish(clock::now(), StreamEnd::ClientLeft);
        let (rest, bytes) = (measurement.output_text, measurement.output_text_bytes);
        assert_eq!(bytes, text.len() as u64);
        let choice = choice(Some(model));
        GeneratedText { passed, rest, bytes, mixed: false }.count(&choice).unwrap()
    }

    #[test]
    fn whatever_the_chunks_the_count_is_that_of_the_whole() {
        let tokenizer = Tokenizer::for_model("gpt-4o").tokenizer;
        tokenizer.load();
        let text = WORDS.repeat(60);
        let tokens = tokenizer.count([&text]).tokens;
        for step in [1, 2, 3, 7, 50, 5_000] {
            let exactly = Tally { tokens, estimated: false };
            assert_eq!(count("gpt-4o", &text, step), exactly, "by {step}");
        }
    }

    const EVENT: &str =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"To the station\"}}]}\n\n";

    fn fed() -> Meter {
        let mut meter = meter();
        let event =
            serde_json::json!({"choices": [{"index": 0, "delta": {"content": WORDS.repeat(9)}}]});
        meter.on_bytes(clock::now(), Bytes::from(format!("data: {event}\n\n")));
        meter
    }

    #[test]
    fn text_of_a_model_that_nobody_knows_is_kept() {
        let (mut meter, mut passing) = (fed(), Passing::default());
        for choice in [Some(choice(Some("tiny"))), None] {
            let next = passing.step(&mut meter, |_| choice);
            assert!(matches!((&passing, next), (Passing::Kept, Next::Nothing)));
        }
        assert_eq!(meter.kept_text_bytes(), WORDS.len() * 9);
    }

    #[test]
    fn text_is_kept_until_the_vocabulary_is_there() {
        // No other test loads this one.
        let choice = choice(Some("davinci"));
        let (mut meter, mut passing) = (fed(), Passing::default());
        let Next::Load(tokenizer) = passing.step(&mut meter, |_| Some(choice)) else {
            panic!("nothing to load");
        };
        assert_eq!(meter.kept_text_bytes(), WORDS.len() * 9);
        tokenizer.load();
        let next = passing.step(&mut meter, |_| panic!("chosen twice"));
        assert!(matches!((&passing, next), (Passing::Counted(_), Next::Nothing)));
        assert_eq!((meter.kept_text_bytes(), passing.bytes()), (0, WORDS.len() as u64 * 9));
    }

    #[test]
    fn a_counter_that_panics_takes_the_count_and_nothing_else() {
        let chosen = || Some(choice(Some("gpt-4o")));
        chosen().unwrap().tokenizer.load();
        let (mut meter, mut passing) = (fed(), Passing::default());
        let _ = passing.step(&mut meter, |_| chosen());
        meter.on_bytes(clock::now(), Bytes::from_static(EVENT.as_bytes()));
        let next = passing.fold(&mut meter, |_, _| panic!("the counter"));
        assert!(matches!((&passing, next), (Passing::Lost, Next::Panicked)));
        // It is not asked again, and bytes pass as before.
        let read = Bytes::from(EVENT.repeat(100));
        assert_eq!(meter.on_bytes(clock::now(), read.clone()).forward, read);
        assert!(matches!(passing.step(&mut meter, |_| chosen()), Next::Nothing));
        let measurement = meter.finish(clock::now(), StreamEnd::ClientLeft);
        let (rest, bytes) = (measurement.output_text, measurement.output_text_bytes);
        let output = GeneratedText { passed: passing, rest, bytes, mixed: false };
        assert_eq!(output.count(&chosen().unwrap()), None);
    }

    #[test]
    fn what_a_panic_took_is_unknown() {
        let choice = choice(Some("tiny"));
        let rest = String::new();
        let output = GeneratedText { passed: Passing::Lost, rest, bytes: 600, mixed: false };
        assert_eq!(output.count(&choice), None);
    }
}
