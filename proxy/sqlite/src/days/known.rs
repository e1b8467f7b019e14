//! Looks for requests that have left the tables, by their time of admission and their id.

use std::collections::BTreeSet;

use taximeter_ledger::{Place, RequestId};

use super::open::Days;

/// Which of these requests are in a file. The tables must be as of the moment of the list.
pub(crate) fn sealed(
    days: &mut Days,
    requests: impl Iterator<Item = (i64, RequestId)> + Clone,
) -> rusqlite::Result<BTreeSet<RequestId>> {
    let mut known = BTreeSet::new();
    let (first, last) = requests
        .clone()
        .fold((i64::MAX, i64::MIN), |(first, last), (at, _)| (first.min(at), last.max(at)));
    for file in days.between(first, last.saturating_add(1)) {
        let is_within = |(at, _): &(i64, RequestId)| file.first <= *at && *at <= file.last;
        let mut ids: Vec<_> = requests.clone().filter(is_within).map(|(_, id)| id).collect();
        ids.sort_unstable();
        let shown = days.open(&file)?.has(&ids, &mut |place| known.extend(ids.get(place)));
        shown.map_err(|error| days.fault(&file.name, error))?;
    }
    Ok(known)
}

/// The request that was admitted then: where its entry is, and in `payload` its complete payload.
pub(crate) fn find(
    days: &mut Days,
    at: i64,
    id: RequestId,
    payload: &mut Vec<u8>,
) -> rusqlite::Result<Option<Place>> {
    for file in days.between(at, at.saturating_add(1)) {
        let found = days.open(&file)?.find(id, payload);
        if let Some(place) = found.map_err(|error| days.fault(&file.name, error))? {
            return Ok(Some(place));
        }
    }
    Ok(None)
}
