//! What a verification has read, and what is wrong.

use std::io::{self, Write};

/// Faults of one kind that are told; of more, the number is.
pub(super) const TOLD_MAX: usize = 20;

/// What was read, and what is wrong.
#[derive(Debug, Default)]
pub struct Findings {
    /// What was read, a line each.
    read: Vec<String>,
    /// What to know that is no fault.
    notes: Vec<String>,
    /// What is wrong.
    wrong: Vec<String>,
    /// Further faults, which are not in `wrong`.
    more: usize,
}

impl Findings {
    /// How much is wrong.
    pub fn wrong(&self) -> usize {
        self.wrong.len() + self.more
    }

    /// Says it.
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

    /// Something was read.
    pub fn hear(&mut self, line: String) {
        self.read.push(line);
    }

    /// Something to know that is no fault.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// So many faults more than can be told.
    pub const fn tell_more(&mut self, faults: usize) {
        self.more += faults;
    }

    /// Something is wrong.
    pub fn tell(&mut self, fault: String) {
        if self.wrong.len() < TOLD_MAX {
            self.wrong.push(fault);
        } else {
            self.more += 1;
        }
    }
}
