//! What became of a push.

/// The result of a batch.
#[derive(Debug, PartialEq, Eq)]
pub enum ExportOutcome<'a> {
    /// The collector has it.
    Sent {
        /// Which signal.
        signal: &'static str,
        /// Items in it.
        items: usize,
        /// Those among them that it does not take.
        rejected: usize,
        /// What it said.
        message: &'a str,
    },
    /// The collector took nothing. The batch is sent again.
    Failed {
        /// Which signal.
        signal: &'static str,
        /// Why.
        reason: &'a str,
    },
    /// The batch is given up.
    Dropped {
        /// Which signal.
        signal: &'static str,
        /// Items that were not sent.
        items: usize,
        /// Why.
        reason: &'a str,
    },
    /// A round panicked. The next one begins normally.
    Panicked,
}

/// Tells what became of a push.
pub(super) struct Teller {
    pub(super) signal: &'static str,
    pub(super) tell: Box<dyn Fn(&ExportOutcome<'_>) + Send>,
}

impl Teller {
    pub(super) fn sent(&self, items: usize, rejected: usize, message: &str) {
        (self.tell)(&ExportOutcome::Sent { signal: self.signal, items, rejected, message });
    }

    pub(super) fn failed(&self, reason: &str) {
        (self.tell)(&ExportOutcome::Failed { signal: self.signal, reason });
    }

    /// Tells that so many items are given up, if it is any.
    pub(super) fn dropped(&self, items: usize, reason: &str) {
        if items > 0 {
            (self.tell)(&ExportOutcome::Dropped { signal: self.signal, items, reason });
        }
    }

    pub(super) fn panicked(&self) {
        (self.tell)(&ExportOutcome::Panicked);
    }
}
