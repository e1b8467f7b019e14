//! Which of some requests a file has, and which tenants, without reading whole rows.

use taximeter_ledger::RequestId;

use super::file::DayFile;
use crate::error::ReadError;
use crate::kept::{ReadAt, RowFilter, batches};
use crate::record::place_of;

impl<R: ReadAt + 'static> DayFile<R> {
    /// Shows `found` the place among `ids` of each one that the file has. `ids` must be sorted: then
    /// a page is read once for all of them.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn has(&self, ids: &[RequestId], found: &mut dyn FnMut(usize)) -> Result<(), ReadError> {
        let column = place_of("id");
        for group in 0..self.kept.groups() {
            let bounds = self.kept.bounds(group, column)?;
            let mut wanted = Vec::new();
            for (place, id) in ids.iter().enumerate() {
                let id = id.0.as_bytes().as_slice();
                if bounds.is_none_or(|(least, most)| least <= id && id <= most)
                    && self.filter_takes(group, id)?
                {
                    wanted.push((id, place));
                }
            }
            if wanted.is_empty() {
                continue;
            }
            let pages = self.kept.pages_between(group, column, |least, most| {
                let at = wanted.partition_point(|(id, _)| *id < least);
                wanted.get(at).is_some_and(|(id, _)| *id <= most)
            })?;
            let mut cursor = self.cursor(group, "id")?;
            for batch in batches(&pages) {
                cursor.read(batch.start, batch.len())?;
                for _ in batch {
                    let id = cursor.next_value().and_then(|it| it.bytes().ok());
                    let place = id.and_then(|id| wanted.binary_search_by_key(&id, |it| it.0).ok());
                    if let Some((_, place)) = place.and_then(|place| wanted.get(place)) {
                        found(*place);
                    }
                }
            }
        }
        Ok(())
    }

    /// Shows `visit` the tenants of the rows that `filter` takes, of each at least once.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn tenants(
        &self,
        filter: &RowFilter,
        visit: &mut dyn FnMut(&str),
    ) -> Result<(), ReadError> {
        let mut show = |group, tenant: &[u8]| {
            let tenant = std::str::from_utf8(tenant);
            tenant.map(&mut *visit).map_err(|error| ReadError::group(group, error))
        };
        for group in 0..self.kept.groups() {
            let rows = self.kept.matching(group, filter)?;
            let bounds = self.kept.bounds(group, place_of("tenant"))?;
            if let Some((only, _)) = bounds.filter(|(least, most)| least == most) {
                if !rows.is_empty() {
                    show(group, only)?;
                }
                continue;
            }
            let mut cursor = self.cursor(group, "tenant")?;
            let mut last = None::<Vec<u8>>;
            for batch in batches(&rows) {
                cursor.read(batch.start, batch.len())?;
                for _ in batch {
                    let tenant = cursor.next_value().and_then(|it| it.bytes().ok());
                    let tenant =
                        tenant.ok_or_else(|| ReadError::group(group, "a row has no tenant"))?;
                    // Rows of one tenant follow each other.
                    if last.as_deref() != Some(tenant) {
                        show(group, tenant)?;
                        last = Some(tenant.to_vec());
                    }
                }
            }
        }
        Ok(())
    }
}
