//! How a ledger is written, and what happens where it cannot be.

/// When an entry counts as written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// The kernel has it: survives the death of this process.
    Os,
    /// The kernel has it, and the disk within 10 ms.
    #[default]
    Group,
    /// The disk has it: survives a power cut.
    Sync,
}

/// A journal that is damaged before its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnDamage {
    /// Nothing is started.
    #[default]
    Strict,
    /// What cannot be read is left out, and told.
    Salvage,
}

/// A ledger that cannot be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnUnavailable {
    /// 503 `ledger_unavailable`.
    #[default]
    Refuse,
    /// Requests go on while there is room to queue what they owe.
    Serve,
}
