//! Collects the usage objects of one answer, and decides which numbers count.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use taximeter_pricing::{Flag, Member};

use crate::dialect::Reasoning;
use crate::measurement::Reported;
use crate::usage::{Reading, Report};

/// Choices whose output is kept apart.
const CHOICES_MAX: usize = 128;

/// All that was reported so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reports {
    latest: Option<Box<Report>>,
    /// The latest of each part, where they come apart.
    parts: Vec<Report>,
    /// The latest is a running total.
    is_running: bool,
    /// The output of each choice, by its running totals.
    outputs: Vec<(u64, Reading)>,
    /// Used when no usage object ever comes.
    timings: Option<Box<Report>>,
    /// Reports with smaller numbers than the one before.
    pub(crate) fell: u32,
    /// Members that were no whole number in range.
    invalid: u32,
    /// What the provider asked in a report that has nothing else.
    cost: Option<String>,
    /// The same by number.
    flagged: BTreeMap<Member, BTreeSet<Flag>>,
}

impl Reports {
    /// The last report wins, member by member.
    pub(crate) fn add(&mut self, report: Box<Report>) {
        self.put(report, None);
    }

    /// The same for a running total of one choice.
    pub(crate) fn add_running(&mut self, report: Box<Report>, choice: u64) {
        self.put(report, Some(choice));
    }

    fn put(&mut self, report: Box<Report>, running_choice: Option<u64>) {
        self.note_invalid(&report);
        if report.is_silent() {
            self.cost = report.cost().or(self.cost.take());
            return;
        }
        let earlier = match report.part {
            None => self.latest.take(),
            Some(_) => {
                let at = self.parts.iter().position(|earlier| earlier.part == report.part);
                at.map(|at| Box::new(self.parts.swap_remove(at)))
            }
        };
        let report = match earlier {
            // Zeros behind numbers are no report.
            Some(earlier) if report.is_zero() => earlier,
            earlier => {
                self.is_running = running_choice.is_some();
                let output = report.output();
                let of_choice = running_choice.map(|choice| self.note_output(choice, output));
                match earlier {
                    Some(earlier) => self.renew(*earlier, *report, of_choice),
                    None => report,
                }
            }
        };
        match report.part {
            None => self.latest = Some(report),
            Some(_) if self.parts.len() < CHOICES_MAX => self.parts.push(*report),
            Some(_) => {}
        }
    }

    /// Puts a report over the earlier one. The earlier output is that of the same choice, where it
    /// is a running total.
    fn renew(
        &mut self,
        earlier: Report,
        report: Report,
        of_choice: Option<Reading>,
    ) -> Box<Report> {
        let (input, output) = (earlier.input(), of_choice.unwrap_or_else(|| earlier.output()));
        let of_this_choice = of_choice.map(|_| report.output());
        let report = report.over(earlier);
        let told = of_this_choice.unwrap_or_else(|| report.output());
        let fell = |before: Reading, now: Reading| {
            before.number().zip(now.number()).is_some_and(|(before, now)| now < before)
        };
        let input = fell(input, report.input()).then_some(Member::InputTokens);
        let output = (told.is_positive() && fell(output, told)).then_some(Member::OutputTokens);
        for member in input.into_iter().chain(output) {
            self.flag(member, Flag::Changed);
        }
        self.fell = self.fell.saturating_add(input.or(output).is_some().into());
        Box::new(report)
    }

    fn flag(&mut self, member: Member, flag: Flag) {
        self.flagged.entry(member).or_default().insert(flag);
    }

    /// Notes the output of a choice; gives what it was before.
    fn note_output(&mut self, choice: u64, output: Reading) -> Reading {
        let known = self.outputs.iter_mut().find(|(known, _)| *known == choice);
        if let Some((_, known)) = known {
            let before = *known;
            *known = output.over(before);
            return before;
        }
        if self.outputs.len() < CHOICES_MAX {
            self.outputs.push((choice, output));
        }
        Reading::Absent
    }

    /// Makes the running totals of several choices one, for engines that count each by itself.
    pub(crate) fn add_up_choices(&mut self) {
        if let Some(report) = self.latest.as_mut().filter(|_| self.is_running)
            && self.outputs.len() > 1
        {
            let outputs = self.outputs.iter().filter_map(|(_, output)| output.number());
            report.set_output(outputs.sum());
        }
    }

    pub(crate) fn add_timings(&mut self, timings: Box<Report>) {
        if !timings.is_empty() {
            self.timings = Some(timings);
        }
    }

    /// Whether usage was reported that comes at an end. Partial and running reports begin with the
    /// first event.
    pub(crate) fn has_final(&self) -> bool {
        let mut latest =
            self.latest.as_deref().filter(|_| !self.is_running).into_iter().chain(&self.parts);
        self.timings.is_some() || latest.any(|report| !report.is_partial)
    }

    /// Whether any report says that something was used.
    pub(crate) fn has_tokens(&self) -> bool {
        let mut reports = self.latest.as_deref().into_iter().chain(&self.parts);
        self.timings.is_some() || self.invalid > 0 || reports.any(Report::has_tokens)
    }

    /// What the provider asks for it, in its own currency.
    pub(crate) fn cost(&self) -> Option<String> {
        let latest = self.latest.as_ref().and_then(|report| report.cost());
        latest.or_else(|| self.cost.clone())
    }

    /// Those of the calls of hosted tools that no report tells. `is_whole` tells whether the answer
    /// has come to its end.
    pub(crate) fn untold(
        &self,
        calls: BTreeMap<String, Decimal>,
        is_whole: bool,
    ) -> BTreeMap<String, Decimal> {
        match &self.latest {
            Some(report) if !calls.is_empty() => report.untold(calls, is_whole),
            _ => calls,
        }
    }

    /// Forgets that there was no output, and no input either: an input that was told stays.
    pub(crate) fn drop_zero(&mut self) {
        let Some(report) = self.latest.take().filter(|report| !report.is_zero()) else { return };
        let is_zero = report.output() == Reading::Number(0);
        self.latest = Some(if is_zero { report.without_output() } else { report });
    }

    /// The usage that the engine reported, or else `counted`; `None` when there is neither. Where
    /// the engine reported values and none of them is a number, the flags say so.
    pub(crate) fn settle(
        mut self,
        placed: Reasoning,
        counted: Option<Reported>,
    ) -> Option<Reported> {
        let Some(mut report) = self.take_all() else {
            return if self.invalid > 0 {
                Some(self.flags_on(counted.unwrap_or_default()))
            } else {
                counted
            };
        };
        report.complete_by_total();
        let mut flags = Vec::new();
        let usage = report.settle(placed, &mut flags);
        if flags.contains(&Flag::Hidden) {
            self.flag(Member::OutputTokens, Flag::Hidden);
        }
        for member in usage.inconsistent() {
            self.flag(member, Flag::Inconsistent);
        }
        // A sum is invalid where one of its parts is.
        if report.output().number().is_some() && usage.output_tokens.is_none() {
            self.flag(Member::OutputTokens, Flag::Invalid);
        }
        Some(self.flags_on(Reported { usage, flags, flagged: BTreeMap::new() }))
    }

    /// One report of all: of the whole answer, or else of its parts, or else llama.cpp's timings.
    /// One that has nothing but zeros gives way.
    fn take_all(&mut self) -> Option<Box<Report>> {
        let parts = std::mem::take(&mut self.parts).into_iter().reduce(Report::plus).map(Box::new);
        let zero = match self.latest.take() {
            Some(report) if report.is_zero() => Some(report),
            Some(report) => return Some(report),
            None => None,
        };
        parts.or_else(|| self.take_timings()).or(zero)
    }

    /// Members that are no whole number in range. llama.cpp's timings count where nothing else
    /// does.
    pub(crate) fn invalid(&self) -> u32 {
        let is_alone = self.latest.is_none() && self.parts.is_empty();
        let timings = self.timings.as_ref().filter(|_| is_alone);
        self.invalid.saturating_add(timings.map_or(0, |timings| timings.invalid))
    }

    /// llama.cpp's timings. They count where the engine reports nothing else.
    fn take_timings(&mut self) -> Option<Box<Report>> {
        let timings = self.timings.take()?;
        self.note_invalid(&timings);
        (!timings.is_silent()).then_some(timings)
    }

    fn note_invalid(&mut self, report: &Report) {
        self.invalid = self.invalid.saturating_add(report.invalid);
        if report.invalid > 0 {
            for member in report.invalid_members() {
                self.flag(member, Flag::Invalid);
            }
        }
    }

    /// Adds the flags of all reports.
    fn flags_on(self, mut reported: Reported) -> Reported {
        for (member, flags) in self.flagged {
            reported.flagged.entry(member).or_default().extend(flags);
        }
        reported.flags.extend((self.fell > 0).then_some(Flag::Changed));
        reported.flags.extend((self.invalid > 0).then_some(Flag::Invalid));
        reported.flags.sort_unstable();
        reported.flags.dedup();
        reported
    }
}
