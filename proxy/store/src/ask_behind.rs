//! Questions of who reads a journal and finds that segments have gone.

use taximeter_database::behind::{Behind, EntryPage, Lacked};
use taximeter_database::error::StoreError;
use taximeter_journal::REQUESTS;
use taximeter_ledger::LedgerId;

use super::Store;

impl Store {
    /// Entries of a journal in order: at most `limit` of them, unless more have one number.
    ///
    /// Errors: `Unavailable` while the store lacks some of what is asked for; `Damaged`, `DayFile`.
    pub fn behind(&mut self, asked: &Behind<'_>, limit: usize) -> Result<EntryPage, StoreError> {
        self.need_fed(asked.journal, asked.until)?;
        self.database.behind(asked, limit)
    }

    /// Errors: `Unavailable` while the store lacks entries of the journal up to this one.
    fn need_fed(&mut self, journal: &str, entry: u64) -> Result<(), StoreError> {
        let fed = self.database.cursor(journal)?.map_or(0, |cursor| cursor.seq);
        if fed >= entry {
            return Ok(());
        }
        let (store, source) = (journal.to_owned(), "the store is not fed so far".into());
        Err(StoreError::Unavailable { store, source })
    }

    /// The last entry of a ledger behind `after` and up to `until` whose request is no longer here.
    /// `None` if there is none. `was_request` says that `after` is one of a request that was here.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn gone_behind(
        &mut self,
        ledger: LedgerId,
        (after, was_request): (u64, bool),
        until: u64,
    ) -> Result<Option<u64>, StoreError> {
        let days = self.database.gone_days()?.into_iter();
        let with_day = days.filter_map(|day| day.last_entries.get(&ledger).copied()).max();
        // A store that was made anew begins where the journal did then.
        let first = if was_request { self.database.first_entry(ledger)? } else { Some(0) };
        let before = match first {
            Some(first) if first <= after => None,
            first => Some(first.map_or(until, |first| first - 1)),
        };
        let last = with_day.max(before).map(|last| last.min(until));
        Ok(last.filter(|last| *last > after))
    }

    /// How much is behind an entry of the journal of requests, which is one of `ledger`.
    ///
    /// Errors: `Unavailable` while the store has nothing behind it; `Damaged`, `DayFile`.
    pub fn lacked(&mut self, ledger: LedgerId, after: u64) -> Result<Lacked, StoreError> {
        self.need_fed(REQUESTS, after.saturating_add(1))?;
        self.database.lacked(ledger, after)
    }
}
