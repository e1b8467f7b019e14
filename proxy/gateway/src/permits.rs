//! Limits the work of the admin address. Each gateway has permits of its own, and a reload keeps
//! them.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Questions to the store at once.
const QUESTIONS_MAX: usize = 4;
/// Exports at once.
const EXPORTS_MAX: usize = 2;
/// Listeners to running requests at once.
const LISTENERS_MAX: usize = 16;

/// What the admin address of one gateway may do at once.
#[derive(Debug)]
pub struct AdminPermits {
    /// For questions to the store.
    pub questions: Permits,
    /// For exports.
    pub exports: Permits,
    /// For listeners to running requests.
    pub listeners: Permits,
}

/// Permits of one kind.
#[derive(Debug)]
pub struct Permits {
    free: Arc<Semaphore>,
    /// How many there are, taken or free.
    pub most: usize,
}

impl Default for AdminPermits {
    fn default() -> Self {
        Self {
            questions: Permits::new(QUESTIONS_MAX),
            exports: Permits::new(EXPORTS_MAX),
            listeners: Permits::new(LISTENERS_MAX),
        }
    }
}

impl Permits {
    fn new(most: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(most)), most }
    }

    /// One of them, free again when it is dropped; `None` while all are taken.
    pub fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.free.clone().try_acquire_owned().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_takes_no_permit_of_another_one_in_its_process() {
        let (one, other) = (AdminPermits::default(), AdminPermits::default());
        let kinds: [fn(&AdminPermits) -> &Permits; 3] =
            [|all| &all.questions, |all| &all.exports, |all| &all.listeners];
        for kind in kinds {
            let taken: Vec<_> = std::iter::from_fn(|| kind(&one).take()).collect();
            assert_eq!(taken.len(), kind(&one).most);
            assert!(kind(&other).take().is_some());
            drop(taken);
            assert!(kind(&one).take().is_some());
        }
    }
}
