//! Asks the store for what the journal no longer has, on a thread that may wait.

use std::io;

use taximeter_store::{Location, Store, StoreError};
use tokio::task::spawn_blocking;

use super::fault::PushFault;

/// The store, which is opened when it is asked.
pub(super) struct Older {
    location: Location,
    store: Option<Store>,
}

impl Older {
    pub(super) const fn new(location: Location) -> Self {
        Self { location, store: None }
    }

    /// Asks the store. It stays open for the next question, unless there was a fault.
    pub(super) async fn ask<T: Send + 'static>(
        &mut self,
        question: impl FnOnce(&mut Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, PushFault> {
        let (location, store) = (self.location.clone(), self.store.take());
        let asked = spawn_blocking(move || {
            let mut store = store.map_or_else(|| location.open(), Ok)?;
            let answer = question(&mut store)?;
            Ok::<_, StoreError>((store, answer))
        });
        let (store, answer) = asked.await.map_err(io::Error::other)??;
        self.store = Some(store);
        Ok(answer)
    }

    /// Closes the store until it is asked again.
    pub(super) fn close(&mut self) {
        self.store = None;
    }
}
