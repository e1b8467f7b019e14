//! How the ledger is written, and what happens when it cannot be written.

/// When an entry counts as written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// The kernel has it: the entry survives the end of the process.
    Os,
    /// The kernel has it, and the disk has it within 10 ms.
    #[default]
    Group,
    /// The disk has it: the entry survives a power cut.
    Sync,
}

/// What a start does with a journal that is damaged before its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnDamage {
    /// It fails.
    #[default]
    Strict,
    /// It leaves out what it cannot read, and reports it.
    Salvage,
}

/// What happens to requests while the ledger cannot be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnUnavailable {
    /// Taximeter answers 503 `ledger_unavailable`.
    #[default]
    Refuse,
    /// Taximeter serves on while the queue of entries has room.
    Serve,
}
