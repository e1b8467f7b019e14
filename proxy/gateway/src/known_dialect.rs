//! What is known of the dialect of one upstream.
//!
//! Only the configuration and the list of models name a dialect. Answers have marks, but an
//! aggregator passes on the answers of many engines. So a mark is only a guess: it says how later
//! requests may ask for usage, and changes nothing in how an answer is read, priced or recorded.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use taximeter_meter::{Dialect, UsageAsk};

/// The dialect of one upstream.
#[derive(Debug, Default)]
pub struct KnownDialect {
    /// By the configuration, the host of its URL included.
    configured: Dialect,
    /// What the answer to `/v1/models` says, once there is one.
    listed: OnceLock<Option<Dialect>>,
    /// The place in [`Dialect::ALL`] of the one whose marks an answer had last; that of `Auto` where
    /// none had.
    guess: AtomicU8,
}

impl KnownDialect {
    /// The dialect that the configuration names, or `Auto`.
    pub(crate) fn new(configured: Dialect) -> Self {
        Self { configured, ..Self::default() }
    }

    /// The dialect by which answers are read; `Auto` where nothing names it.
    pub fn named(&self) -> Dialect {
        self.recognised().unwrap_or(self.configured)
    }

    /// The engine that owns every model in the list of models.
    pub fn recognised(&self) -> Option<Dialect> {
        let listed = self.listed.get().copied().flatten();
        listed.filter(|dialect| dialect.owns_its_models())
    }

    /// The dialect that the last marks give away, where nothing names one.
    pub fn guessed(&self) -> Option<Dialect> {
        let guess = Dialect::ALL.get(usize::from(self.guess.load(Relaxed))).copied();
        guess.filter(|guess| *guess != Dialect::Auto && self.named() == Dialect::Auto)
    }

    /// How a stream can be asked for usage, where its upstream is configured to be asked for
    /// `usage`. A guess may be wrong, so it never asks for more than usage at the end.
    pub(crate) fn question(&self, usage: UsageAsk) -> (Dialect, UsageAsk) {
        match self.guessed() {
            Some(guess) => (guess, UsageAsk::Final),
            None => (self.named(), usage),
        }
    }

    /// Whether the list of models is still to be asked for.
    pub(crate) fn wants_list(&self) -> bool {
        self.configured == Dialect::Auto && self.listed.get().is_none()
    }

    /// The question for the list of models was answered, and the owner of all models is `owner`.
    /// Whether that is news.
    pub(crate) fn list_answered(&self, owner: Option<Dialect>) -> bool {
        self.listed.set(owner).is_ok() && owner.is_some()
    }

    /// An answer had the marks of `dialect`. Whether that changes the guess.
    pub(crate) fn guess(&self, dialect: Dialect) -> bool {
        if dialect == Dialect::Auto || self.named() != Dialect::Auto {
            return false;
        }
        let guess = dialect as u8;
        self.guess.swap(guess, Relaxed) != guess
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_dialect() -> impl Strategy<Value = Dialect> {
        prop::sample::select(Dialect::ALL)
    }

    #[test]
    fn every_dialect_is_at_its_place_in_the_list_of_all() {
        for (place, dialect) in Dialect::ALL.iter().enumerate() {
            assert_eq!(*dialect as usize, place);
        }
    }

    #[test]
    fn an_engine_that_owns_every_model_is_named_by_that() {
        let known = KnownDialect::new(Dialect::Auto);
        assert!(known.wants_list());
        assert!(known.list_answered(Some(Dialect::Vllm)));
        assert!(!known.wants_list() && !known.list_answered(Some(Dialect::Sglang)));
        assert_eq!((known.named(), known.recognised()), (Dialect::Vllm, Some(Dialect::Vllm)));
        assert_eq!(known.question(UsageAsk::Continuous), (Dialect::Vllm, UsageAsk::Continuous));
        assert!(!known.guess(Dialect::Groq), "it is known");
    }

    #[test]
    fn a_provider_in_a_list_of_models_is_only_a_guess() {
        let known = KnownDialect::new(Dialect::Auto);
        assert!(known.list_answered(Some(Dialect::OpenAi)));
        assert_eq!((known.named(), known.recognised()), (Dialect::Auto, None));
        assert!(known.guess(Dialect::OpenAi));
        assert_eq!(known.question(UsageAsk::TokenIds), (Dialect::OpenAi, UsageAsk::Final));
    }

    #[test]
    fn an_answer_that_tells_nothing_ends_the_question() {
        let known = KnownDialect::new(Dialect::Auto);
        assert!(!known.list_answered(None));
        assert!(!known.wants_list());
        assert!(!KnownDialect::new(Dialect::OpenAi).wants_list());
    }

    proptest! {
        /// Whatever answers have shown, in whatever order: the next one is read by what is named.
        #[test]
        fn marks_change_only_the_question(
            configured in any_dialect(),
            owner in prop::option::of(any_dialect()),
            marks in prop::collection::vec(any_dialect(), 0..6),
        ) {
            let known = KnownDialect::new(configured);
            if known.wants_list() {
                known.list_answered(owner);
            }
            let named = known.named();
            for mark in &marks {
                known.guess(*mark);
                prop_assert_eq!(known.named(), named);
                prop_assert!(named == Dialect::Auto || known.guessed().is_none());
            }
            let last = marks.iter().rev().find(|mark| **mark != Dialect::Auto).copied();
            prop_assert_eq!(known.guessed(), last.filter(|_| named == Dialect::Auto));
        }
    }
}
