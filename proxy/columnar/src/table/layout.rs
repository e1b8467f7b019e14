//! How files are laid out.

/// Bytes of a dictionary that is tried for values that hardly ever repeat.
pub(super) const TRIED_DICTIONARY_BYTES: usize = 32 << 10;

/// The level of zstd that has the smallest memory.
pub(super) const FAST_LEVEL: i32 = 1;

/// How a file is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Rows of one row group. A group can have up to as many more as are added at once.
    pub(super) group_rows: usize,
    /// Bytes of texts and numbers in one row group. A reader of a group holds a whole column of it.
    pub(super) group_bytes: usize,
    /// Rows of one page. A reader of one row reads a page of each column.
    pub(super) page_rows: usize,
    /// A level needs its strategy in the image's zstd (`deploy/image/program.sh`).
    pub(super) zstd_level: i32,
    /// Bytes of the dictionary of a column in one row group. More values are written without one.
    pub(super) dictionary_bytes: usize,
    /// Whether numbers and texts that hardly ever repeat may have a dictionary until it is full.
    pub(super) tries_dictionaries: bool,
    /// Columns of names that come again for a while, of which a file has many: requests of sessions that
    /// run at the same time are side by side.
    pub(super) named: &'static [&'static str],
    /// Columns of texts that most rows have from the row before: they are written run by run.
    pub(super) repeated: &'static [&'static str],
    /// Columns with the smallest and largest value of each page.
    pub(super) searched: &'static [&'static str],
    /// The column whose values are found by a Bloom filter.
    pub(super) found: Option<&'static str>,
    /// Columns by which the rows are sorted.
    pub(super) sorted: &'static [&'static str],
}

impl Layout {
    /// Files for other programs: written fast, in the order of time.
    pub const EXPORT: Self = Self {
        group_rows: 128 << 10,
        group_bytes: 64 << 20,
        page_rows: 20_000,
        zstd_level: FAST_LEVEL,
        dictionary_bytes: 1 << 20,
        tries_dictionaries: false,
        named: &[],
        repeated: &[],
        searched: &[],
        found: None,
        sorted: &[],
    };
    /// Files that are kept: small, and searched for single rows.
    pub const DAY: Self = Self {
        group_bytes: 96 << 20,
        page_rows: 8 << 10,
        zstd_level: 6,
        dictionary_bytes: TRIED_DICTIONARY_BYTES,
        tries_dictionaries: true,
        named: &["session", "agent", "turn", "end_user"],
        searched: &["id", "tenant", "started_at"],
        found: Some("id"),
        sorted: &["tenant", "id"],
        ..Self::EXPORT
    };
    /// The same with fewer rows of a row group and of a page.
    #[cfg(test)]
    pub(crate) const fn small(group_rows: usize, page_rows: usize) -> Self {
        Self { group_rows, page_rows, ..Self::DAY }
    }

    /// Columns that are written run by run, with few rows of a row group and of a page.
    #[cfg(test)]
    pub(crate) const fn small_runs(group_rows: usize, page_rows: usize) -> Self {
        Self { group_rows, page_rows, ..Self::SAMPLES }
    }

    /// Sums per hour that are kept.
    pub const HOURS: Self = Self {
        // The lines of all combinations of tenant and model that occur in an hour.
        dictionary_bytes: 1 << 20,
        named: &[],
        searched: &["hour", "tenant"],
        found: None,
        sorted: &["hour", "tenant"],
        ..Self::DAY
    };

    /// Samples of engines, GPUs and hosts.
    pub const SAMPLES: Self = Self {
        searched: &["quantity", "time"],
        found: None,
        named: &[],
        repeated: &[
            "quantity",
            "target",
            "labels",
            "program",
            "statistic",
            "unit",
            "host",
            "gpu",
            "part",
            "namespace",
            "pod",
            "container",
            "engine",
            "model",
        ],
        sorted: &["quantity", "target", "labels"],
        ..Self::DAY
    };

    /// Sums of sessions of a day.
    pub const SESSIONS: Self = Self {
        searched: &["tenant", "session", "started_at"],
        found: None,
        named: &[],
        sorted: &["tenant", "session"],
        ..Self::DAY
    };
}
