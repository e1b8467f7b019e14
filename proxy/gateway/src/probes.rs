//! Remembers for a second what an engine has answered to probes, so that many who ask at once are
//! one question to it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Response};
use taximeter_net::upstream::DialFault;

/// How long an answer holds, or that there was none.
const REMEMBERED_FOR: Duration = Duration::from_secs(1);

/// Different questions that are remembered of one engine, those without an answer yet included.
const QUESTIONS_MAX: usize = 32;

/// The probes of one engine.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    questions: Mutex<HashMap<Question, Arc<Slot>>>,
}

/// What is asked: method and target.
pub(crate) type Question = (Method, String);

/// Whoever asks holds it, and others wait for what is put in.
type Slot = tokio::sync::Mutex<Option<(Instant, Answer)>>;

/// What an engine has answered, or why it has not.
pub(crate) type Answer = Result<Response<Bytes>, ProbeFault>;

/// Why a probe has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProbeFault {
    /// No connection; a fixed word for the cause.
    Connect(&'static str),
    /// No file descriptor is left for one.
    Descriptors,
    /// The connection broke before an answer.
    Reset,
    /// What came is no answer, or a longer one than is kept.
    Protocol,
    /// No answer in time.
    Timeout,
}

impl From<&DialFault> for ProbeFault {
    fn from(fault: &DialFault) -> Self {
        match fault {
            DialFault::Descriptors => Self::Descriptors,
            fault => Self::Connect(fault.cause()),
        }
    }
}

impl Probes {
    /// What the engine answers to a question: what it has answered within the last second, or what
    /// `ask` brings. Of those who ask at once only one does. `None` where too many different ones
    /// are asked.
    pub(crate) async fn answer<F: Future<Output = Answer>>(
        &self,
        question: Question,
        now: impl Fn() -> Instant,
        ask: impl FnOnce() -> F,
    ) -> Option<Answer> {
        let slot = self.slot(question, now())?;
        let mut remembered = slot.lock().await;
        if let Some((at, answer)) = &*remembered
            && is_fresh(*at, now())
        {
            return Some(answer.clone());
        }
        let answer = ask().await;
        *remembered = Some((now(), answer.clone()));
        Some(answer)
    }

    fn slot(&self, question: Question, now: Instant) -> Option<Arc<Slot>> {
        let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = questions.get(&question) {
            return Some(slot.clone());
        }
        if questions.len() >= QUESTIONS_MAX {
            questions.retain(|_, slot| is_in_use(slot, now));
        }
        if questions.len() >= QUESTIONS_MAX {
            return None;
        }
        Some(questions.entry(question).or_default().clone())
    }
}

/// Whether somebody asks, waits, or would be answered from it.
fn is_in_use(slot: &Arc<Slot>, now: Instant) -> bool {
    let is_held = Arc::strong_count(slot) > 1;
    is_held
        || slot.try_lock().is_ok_and(|said| said.as_ref().is_some_and(|(at, _)| is_fresh(*at, now)))
}

fn is_fresh(at: Instant, now: Instant) -> bool {
    now.saturating_duration_since(at) < REMEMBERED_FOR
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, ready};

    use taximeter_system::clock;

    use super::*;

    fn question(target: &str) -> Question {
        (Method::GET, target.to_owned())
    }

    fn answer(text: &'static str) -> Answer {
        Ok(Response::new(Bytes::from_static(text.as_bytes())))
    }

    fn text(answer: Option<Answer>) -> Option<Bytes> {
        answer?.ok().map(Response::into_body)
    }

    #[tokio::test]
    async fn an_answer_holds_for_a_second_and_so_does_that_there_is_none() {
        let begin = clock::now();
        let asked = Cell::new(0);
        let probes = Probes::default();
        let ask = async |millis, said: Answer| {
            let now = || begin + Duration::from_millis(millis);
            let ask = || {
                asked.set(asked.get() + 1);
                ready(said)
            };
            let answer = probes.answer(question("/health"), now, ask).await;
            (answer.map(|answer| answer.map(Response::into_body)), asked.get())
        };
        let one = Some(Ok(Bytes::from("one")));
        assert_eq!(ask(0, answer("one")).await, (one.clone(), 1));
        assert_eq!(ask(999, answer("two")).await, (one, 1));
        let none = Some(Err(ProbeFault::Timeout));
        assert_eq!(ask(1000, Err(ProbeFault::Timeout)).await, (none.clone(), 2));
        assert_eq!(ask(1999, answer("two")).await, (none, 2));
        assert_eq!(ask(2000, answer("two")).await, (Some(Ok(Bytes::from("two"))), 3));
    }

    #[tokio::test]
    async fn many_who_ask_at_once_are_one_question_and_one_who_leaves_passes_it_on() {
        let probes = Probes::default();
        let now = clock::now;
        let mut left = Box::pin(probes.answer(question("/health"), now, pending));
        assert!(futures_util::poll!(left.as_mut()).is_pending());
        let asked = Cell::new(0);
        let ask = || {
            asked.set(asked.get() + 1);
            ready(answer("one"))
        };
        let mut waiting: Vec<_> =
            (0..3).map(|_| Box::pin(probes.answer(question("/health"), now, ask))).collect();
        for one in &mut waiting {
            assert!(futures_util::poll!(one.as_mut()).is_pending());
        }
        drop(left);
        for one in waiting {
            assert_eq!(text(one.await), Some(Bytes::from("one")));
        }
        assert_eq!(asked.get(), 1);
    }

    #[tokio::test]
    async fn different_questions_have_a_maximum_of_which_old_ones_are_no_part() {
        let probes = Probes::default();
        let begin = clock::now();
        let ask = async |target: String, after| {
            let now = || begin + Duration::from_secs(after);
            probes.answer((Method::GET, target), now, || ready(answer("x"))).await.is_some()
        };
        for number in 0..QUESTIONS_MAX {
            assert!(ask(format!("/health?{number}"), 0).await);
        }
        assert!(!ask("/health".to_owned(), 0).await);
        assert!(ask("/health?0".to_owned(), 0).await);
        assert!(ask("/health".to_owned(), 1).await);
    }
}
