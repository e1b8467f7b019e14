//! Reads the store on the caller's thread while another thread writes.

use std::io;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use taximeter_billing::export::ExportError;

use crate::job::ExportFault;

/// Pieces that wait for the writer: neither is idle while the other has a long moment, as the writer has
/// where a group of rows ends.
const WAITING_MAX: usize = 24;

/// What `write` makes of the pieces that `read` hands on, in their order.
///
/// Errors: `write`'s, which are why `read` could not go on, or else `read`'s.
pub(super) fn written_beside<T: Send, U: Send, E: Into<ExportFault> + Send>(
    write: impl FnOnce(Receiver<T>) -> Result<U, E> + Send,
    read: impl FnOnce(&dyn Fn(T) -> Result<(), ExportFault>) -> Result<(), ExportFault>,
) -> Result<U, ExportFault> {
    let (to_writer, pieces) = sync_channel(WAITING_MAX);
    thread::scope(|scope| {
        let written = scope.spawn(move || write(pieces));
        let ended = |_| ExportError::Write(io::ErrorKind::BrokenPipe.into()).into();
        let read = read(&|piece| to_writer.send(piece).map_err(ended));
        drop(to_writer);
        let written = written.join().unwrap_or_else(|panic| resume_unwind(panic));
        let written = written.map_err(Into::into)?;
        read.map(|()| written)
    })
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    const FULL: fn() -> ExportError = || ExportError::Write(io::ErrorKind::StorageFull.into());

    fn add_up(pieces: Receiver<u32>) -> Result<u32, ExportError> {
        Ok(pieces.iter().sum())
    }

    #[test]
    fn what_is_handed_on_is_written() {
        let sum = written_beside(add_up, |hand_on| (1..=100).try_for_each(hand_on));
        assert_eq!(sum.unwrap(), 5050);
    }

    #[test]
    fn a_reader_that_fails_is_an_error_whatever_was_written() {
        let sum = written_beside(add_up, |hand_on| hand_on(1).and(Err(FULL().into())));
        assert!(matches!(sum, Err(ExportFault::Write(ExportError::Write(_)))));
    }

    #[test]
    fn a_writer_that_fails_ends_the_reader_and_says_why() {
        let fails = |pieces: Receiver<u32>| pieces.recv().map_or(Ok(()), |_| Err(FULL()));
        let told = written_beside(fails, |hand_on| iter::repeat(1).try_for_each(hand_on));
        let Err(ExportFault::Write(ExportError::Write(error))) = told else { panic!("{told:?}") };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
