//! Starts threads and makes their end a future, so that a caller can wait for it with a time limit.
//! Gives a thread less of the CPU than others.

use std::convert::Infallible;
use std::io;
use std::thread::{self, Thread};

use tokio::sync::oneshot;

/// A thread that was started. If this value is dropped, the thread continues.
#[derive(Debug)]
pub struct Started {
    /// The handle to unpark it.
    pub thread: Thread,
    ended: oneshot::Receiver<Infallible>,
}

impl Started {
    /// Starts `work` on a thread of this name.
    ///
    /// Errors: the system has no thread for it.
    pub fn new(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let (ends, ended) = oneshot::channel();
        let handle = thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Dropped with the thread, also where it panics, which has been told of on stderr.
            let _ends = ends;
            work();
        })?;
        Ok(Self { thread: handle.thread().clone(), ended })
    }

    /// Waits until the thread has ended, also by a panic.
    pub async fn ended(self) {
        let _ = self.ended.await;
    }
}

/// How much of the CPU a thread gets where others want it as well.
#[derive(Debug, Clone, Copy)]
pub enum Share {
    /// Hardly any: its work has time.
    Least,
    /// About a tenth of what another one gets: its work has to be done soon.
    Tenth,
}

/// Gives this thread less of the CPU than others. Where the system refuses, it is as before.
pub fn yield_to_others(share: Share) {
    let nice = match share {
        Share::Least => 19,
        Share::Tenth => 10,
    };
    // On Linux the priority belongs to the thread that asks.
    let _ = rustix::process::setpriority_process(None, nice);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn its_end_is_noticed_also_by_a_panic_and_not_before() {
        let (go, gone) = mpsc::channel::<()>();
        let mut waits = Started::new("waits", move || {
            let _ = gone.recv();
        })
        .unwrap();
        assert!(
            waits.ended.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Empty)
        );
        drop(go);
        waits.ended().await;
        Started::new("panics", || panic!("on purpose")).unwrap().ended().await;
    }
}
