//! The result for what sessions add up to.

use taximeter_sessions::DaySum;

use super::findings::{CURE, Findings, TOLD_MAX};
use crate::SessionSum;

/// The result for the sums of sessions in the store.
#[derive(Default)]
pub(super) struct SessionSums {
    right: u64,
    /// Sums whose cost was not compared.
    without_cost: u64,
    wrong: u64,
    messages: Vec<String>,
}

impl SessionSums {
    pub(super) fn add(&mut self, sum: &SessionSum<'_>) {
        self.without_cost += u64::from(!sum.with_cost);
        if sum.is_right() {
            self.right += 1;
        } else {
            self.wrong += 1;
            if self.messages.len() < TOLD_MAX {
                self.messages.push(wrong_sum(sum));
            }
        }
    }

    pub(super) fn tell(self, findings: &mut Findings) {
        if self.right > 0 {
            findings.hear(format!(
                "store: {} sums of sessions by the day, each equal to its requests",
                self.right
            ));
        }
        if self.without_cost > 0 {
            findings.note(format!(
                "the costs of {} sums of sessions are of several currencies or too large for one number, \
                 and were not compared",
                self.without_cost
            ));
        }
        let more = self.wrong.saturating_sub(self.messages.len() as u64);
        self.messages.into_iter().for_each(|message| findings.tell(message));
        findings.tell_more(usize::try_from(more).unwrap_or(usize::MAX));
    }
}

/// The text for a wrong sum.
fn wrong_sum(sum: &SessionSum<'_>) -> String {
    let SessionSum { day, tenant, session, file, .. } = sum;
    let [kept, due] = [sum.kept, sum.due].map(|sum| sum.map(amount));
    let [is, should] = match (&kept, &due) {
        (Some(kept), Some(due)) if kept == due => {
            [kept, "the same, but with other times, ids, agents or clients"]
        }
        _ => [&kept, &due].map(|amount| amount.as_deref().unwrap_or("nothing")),
    };
    let place = file.map(|file| format!("{file} and ")).unwrap_or_default();
    let (session, tenant) = (session.escape_debug(), tenant.escape_debug());
    format!(
        "the session {session} of {tenant} on {day} has {is} in {place}the store, but its requests add up \
         to {should}: {CURE}"
    )
}

/// The most important figures of a sum.
fn amount(sum: &DaySum) -> String {
    let sums = &sum.sums;
    let tokens = |tokens: Option<u64>| tokens.map_or("unknown".to_owned(), |it| it.to_string());
    let at_least = if sums.is_at_least() { "at least " } else { "" };
    let cost = match (sums.cost, &sum.currency) {
        (Some(cost), Some(currency)) => format!("{at_least}{} {currency}", cost.normalize()),
        _ => "an unknown cost".to_owned(),
    };
    let (input, output) = (tokens(sums.input_tokens), tokens(sums.output_tokens));
    format!("{cost} ({} requests, {input} tokens in, {output} out)", sums.requests)
}
