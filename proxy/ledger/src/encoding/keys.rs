//! The keys of strings and members. A key keeps its meaning for ever, and new ones get new keys.

/// Length of the id at the start of a payload, in bytes.
pub(crate) const ID_BYTES: usize = 16;

/// The last byte of a payload.
pub(crate) const END: u8 = b'.';

/// Strings of entries, by their key.
pub(crate) mod string {
    pub(crate) const TENANT: u64 = 1;
    pub(crate) const CALLER: u64 = 2;
    pub(crate) const CALL: u64 = 3;
    pub(crate) const REQUEST_MODEL: u64 = 4;
    pub(crate) const RESPONSE_MODEL: u64 = 5;
    pub(crate) const SERVICE_TIER: u64 = 6;
    pub(crate) const ORIGIN: u64 = 7;
    pub(crate) const OUTCOME: u64 = 8;
    pub(crate) const SOURCES: u64 = 9;
    pub(crate) const PRICE: u64 = 10;
    pub(crate) const RATE: u64 = 11;
    pub(crate) const UNKNOWN_COST: u64 = 12;
    pub(crate) const PRICE_BEFORE: u64 = 13;
    pub(crate) const RATE_BEFORE: u64 = 14;
    pub(crate) const REASON: u64 = 15;
    pub(crate) const GATEWAY: u64 = 16;
}

/// Members of entries, by their key.
pub(crate) mod member_key {
    pub(crate) const STARTED_AT: u64 = 1;
    pub(crate) const DURATION: u64 = 2;
    pub(crate) const ENDED_AT: u64 = 3;
    pub(crate) const REQUEST_ID: u64 = 4;
    pub(crate) const REQUEST_UUID: u64 = 5;
    pub(crate) const RESPONSE_ID: u64 = 6;
    pub(crate) const ATTEMPT: u64 = 7;
    pub(crate) const TOKENS: u64 = 8;
    pub(crate) const COUNTED: u64 = 9;
    pub(crate) const MODALITY: u64 = 10;
    pub(crate) const UNIT: u64 = 11;
    pub(crate) const PASS: u64 = 12;
    pub(crate) const TIMING: u64 = 13;
    pub(crate) const GAPS: u64 = 14;
    pub(crate) const LINES: u64 = 15;
    pub(crate) const AMOUNT: u64 = 16;
    pub(crate) const LIST_AMOUNT: u64 = 17;
    pub(crate) const REPORTED_COST: u64 = 18;
    pub(crate) const AT: u64 = 19;
    pub(crate) const VOID_REASON: u64 = 20;
    pub(crate) const HAS_PASSES: u64 = 21;
    pub(crate) const LINES_BEFORE: u64 = 22;
    pub(crate) const AMOUNT_BEFORE: u64 = 23;
    pub(crate) const LIST_AMOUNT_BEFORE: u64 = 24;
    pub(crate) const CORRECTS: u64 = 25;
    pub(crate) const COMPLETION: u64 = 26;
    pub(crate) const COMPLETED: u64 = 27;
    pub(crate) const POSTS: u64 = 28;
    pub(crate) const VOIDS: u64 = 29;
    pub(crate) const CORRECTIONS: u64 = 30;
    pub(crate) const COST: u64 = 31;
    pub(crate) const UNKNOWN_COSTS: u64 = 32;
    pub(crate) const OLDEST_OPEN: u64 = 33;
    pub(crate) const PENDING: u64 = 34;
    pub(crate) const MINUTE: u64 = 35;
    pub(crate) const REFUSAL: u64 = 36;
    pub(crate) const SETTLED: u64 = 37;
    /// The first member of an entry that has it.
    pub(crate) const DIMENSIONS: u64 = 38;
    pub(crate) const UNREADABLE_JSON: u64 = 64;
}
