//! The report of a verification.

use std::io::{self, Write};

/// How to repair a store.
pub(super) const CURE: &str = "rebuild the store with `taximeter verify --rebuild`";

/// Most faults of one kind in the report. Further ones are only counted.
pub(super) const TOLD_MAX: usize = 20;

/// The report.
#[derive(Debug, Default)]
pub struct Findings {
    /// What was read, one line each.
    read: Vec<String>,
    /// Notes that are no faults.
    notes: Vec<String>,
    /// Faults.
    wrong: Vec<String>,
    /// Further faults, which are not in `wrong`.
    more: usize,
}

impl Findings {
    /// The number of faults.
    pub fn wrong(&self) -> usize {
        self.wrong.len() + self.more
    }

    /// Prints the report.
    ///
    /// Errors: those of writing.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for line in &self.read {
            writeln!(out, "{line}")?;
        }
        for note in &self.notes {
            writeln!(out, "note: {note}")?;
        }
        for fault in &self.wrong {
            writeln!(out, "wrong: {fault}")?;
        }
        if self.more > 0 {
            writeln!(out, "wrong: and {} more", self.more)?;
        }
        match self.wrong() {
            0 => writeln!(out, "Nothing is wrong."),
            1 => writeln!(out, "1 thing is wrong."),
            wrong => writeln!(out, "{wrong} things are wrong."),
        }
    }

    /// Adds a line about what was read.
    pub fn hear(&mut self, line: String) {
        self.read.push(line);
    }

    /// Adds a note.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds all of another report.
    pub(super) fn add(&mut self, other: Self) {
        let Self { read, notes, wrong, more } = other;
        self.read.extend(read);
        self.notes.extend(notes);
        wrong.into_iter().for_each(|fault| self.tell(fault));
        self.tell_more(more);
    }

    /// Counts further faults.
    pub const fn tell_more(&mut self, faults: usize) {
        self.more += faults;
    }

    /// Adds a fault.
    pub fn tell(&mut self, fault: String) {
        if self.wrong.len() < TOLD_MAX {
            self.wrong.push(fault);
        } else {
            self.more += 1;
        }
    }
}
