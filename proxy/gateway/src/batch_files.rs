//! Remembers which file has the results of a batch. Only the object of the batch says so.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use taximeter_ledger::TenantId;

/// Most files that are remembered. The oldest one goes for a new one.
const FILES_MAX: usize = 1024;

/// The files of results that are known, of all tenants.
#[derive(Debug, Default)]
pub struct BatchFiles(Mutex<VecDeque<BatchFile>>);

/// A file with the results of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BatchFile {
    pub(crate) tenant: TenantId,
    pub(crate) upstream: String,
    /// `id` of the file.
    pub(crate) file: String,
    /// `id` of the batch.
    pub(crate) batch: String,
    /// Number of its requests that were answered, as far as that is known.
    pub(crate) answered: Option<u64>,
}

impl BatchFiles {
    /// Remembers a file.
    pub(crate) fn put(&self, file: BatchFile) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if files.contains(&file) {
            return;
        }
        if files.len() >= FILES_MAX {
            files.pop_front();
        }
        files.push_back(file);
    }

    /// What is known of a file of this tenant at this upstream.
    pub(crate) fn find(&self, tenant: &TenantId, upstream: &str, file: &str) -> Option<BatchFile> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it =
            |it: &&BatchFile| it.tenant == *tenant && it.upstream == upstream && it.file == file;
        files.iter().rfind(is_it).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(number: usize) -> BatchFile {
        BatchFile {
            tenant: TenantId("acme".into()),
            upstream: "openai".to_owned(),
            file: format!("file-{number}"),
            batch: format!("batch_{number}"),
            answered: None,
        }
    }

    #[test]
    fn a_file_belongs_to_its_tenant_and_upstream_and_the_oldest_goes_first() {
        let files = BatchFiles::default();
        for number in 0..=FILES_MAX {
            files.put(file(number));
            files.put(file(number));
        }
        let find = |tenant: &str, upstream, number| {
            let file = format!("file-{number}");
            files.find(&TenantId(tenant.into()), upstream, &file).map(|file| file.batch)
        };
        assert_eq!(find("acme", "openai", 1).as_deref(), Some("batch_1"));
        assert_eq!(find("acme", "openai", 0), None);
        assert_eq!(find("beta", "openai", 1), None);
        assert_eq!(find("acme", "azure", 1), None);
        assert_eq!(files.0.lock().unwrap().len(), FILES_MAX);
    }
}
