//! The thread that writes log lines, so that a pipe that nobody reads holds up no request.
//!
//! Lines wait in a bounded queue. Lines that do not fit are lost. The next line that fits says how
//! many were lost, so a gap in the log is reported where it is.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Lines that may wait to be written.
const LINES_WAITING_MAX: usize = 8_192;
/// Lines in one write.
const BATCH_LINES_MAX: usize = 64;
/// How long what waits may take at the end.
const END_WAIT: Duration = Duration::from_secs(1);

/// Writes lines on a thread of its own.
pub(crate) struct Writer<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    state: Mutex<WriterState<T>>,
    /// There is something to do.
    work: Condvar,
    /// There is nothing to do.
    idle: Condvar,
    /// Lines lost since the start.
    lost: AtomicU64,
}

struct WriterState<T> {
    /// Lines, each with how many were lost before it.
    waiting: VecDeque<(T, u64)>,
    /// Lines lost since the last one that was not.
    gap: u64,
    is_writing: bool,
    is_ended: bool,
}

impl<T: Send + 'static> Writer<T> {
    /// Writes to `to` what `render` makes of a line and of how many were lost before it.
    ///
    /// Errors: the system has no thread for it.
    pub(crate) fn start(
        to: impl Write + Send + 'static,
        render: impl Fn(&T, u64, &mut Vec<u8>) + Send + 'static,
    ) -> io::Result<Self> {
        let state =
            WriterState { waiting: VecDeque::new(), gap: 0, is_writing: false, is_ended: false };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            work: Condvar::new(),
            idle: Condvar::new(),
            lost: AtomicU64::new(0),
        });
        let its = shared.clone();
        thread::Builder::new().name("log".to_owned()).spawn(move || its.write(to, render))?;
        Ok(Self { shared })
    }

    /// Puts a line on its way if there is room; never waits for whom it is written to.
    pub(crate) fn push(&self, line: T) {
        let mut state = self.shared.lock();
        if state.waiting.len() >= LINES_WAITING_MAX {
            state.gap += 1;
            self.shared.lost.fetch_add(1, Relaxed);
            return;
        }
        let gap = std::mem::take(&mut state.gap);
        state.waiting.push_back((line, gap));
        drop(state);
        self.shared.work.notify_one();
    }
}

impl<T> Writer<T> {
    /// Lines lost since the start.
    pub(crate) fn lost(&self) -> u64 {
        self.shared.lost.load(Relaxed)
    }

    /// Waits until everything is written, but no longer than a second.
    pub(crate) fn flush(&self) {
        let state = self.shared.lock();
        let is_busy = |state: &mut WriterState<T>| state.is_writing || !state.waiting.is_empty();
        // Whoever does not read by then does not get it.
        let _ = self.shared.idle.wait_timeout_while(state, END_WAIT, is_busy);
    }
}

impl<T> Drop for Writer<T> {
    fn drop(&mut self) {
        self.shared.lock().is_ended = true;
        self.shared.work.notify_one();
        self.flush();
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, WriterState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, mut to: impl Write, render: impl Fn(&T, u64, &mut Vec<u8>)) {
        let mut bytes = Vec::new();
        while let Some(lines) = self.next() {
            bytes.clear();
            for (line, gap) in &lines {
                render(line, *gap, &mut bytes);
            }
            // A closed stderr must not stop the gateway.
            let _ = to.write_all(&bytes);
        }
    }

    /// The next lines to write; `None` once it is over.
    fn next(&self) -> Option<Vec<(T, u64)>> {
        let mut state = self.lock();
        state.is_writing = false;
        if state.waiting.is_empty() {
            self.idle.notify_all();
        }
        let is_idle = |state: &mut WriterState<T>| state.waiting.is_empty() && !state.is_ended;
        state = self.work.wait_while(state, is_idle).unwrap_or_else(PoisonError::into_inner);
        let count = state.waiting.len().min(BATCH_LINES_MAX);
        state.is_writing = count > 0;
        (count > 0).then(|| state.waiting.drain(..count).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A pipe that tells what comes, and takes it when it is told to.
    struct Pipe {
        told: Sender<String>,
        taken: Receiver<()>,
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.told.send(String::from_utf8_lossy(bytes).into_owned());
            self.taken.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn start() -> (Writer<usize>, Receiver<String>, Sender<()>) {
        let ((told, text), (take, taken)) = (channel(), channel());
        let render = |line: &usize, gap: u64, bytes: &mut Vec<u8>| {
            bytes.extend(format!("{line}-{gap} ").bytes());
        };
        (Writer::start(Pipe { told, taken }, render).unwrap(), text, take)
    }

    #[test]
    fn what_a_stalled_pipe_does_not_take_is_lost_and_told_with_the_next_line() {
        let (writer, text, take) = start();
        writer.push(0);
        assert_eq!(text.recv().unwrap(), "0-0 ");
        (0..LINES_WAITING_MAX + 5).for_each(|line| writer.push(line));
        assert_eq!(writer.lost(), 5);
        let mut kept = String::new();
        while kept.matches("-0 ").count() < LINES_WAITING_MAX {
            take.send(()).unwrap();
            kept += &text.recv().unwrap();
        }
        writer.push(1);
        writer.push(2);
        let mut last = String::new();
        while last != "1-5 2-0 " {
            take.send(()).unwrap();
            last += &text.recv().unwrap();
        }
        assert_eq!(writer.lost(), 5);
        take.send(()).unwrap();
    }

    #[test]
    fn what_waits_is_written_before_the_writer_ends() {
        let (writer, text, take) = start();
        (0..9).for_each(|_| take.send(()).unwrap());
        (0..9).for_each(|line| writer.push(line));
        drop(writer);
        let written: String = text.try_iter().collect();
        assert_eq!(written.split_whitespace().count(), 9, "{written}");
    }

    #[test]
    fn nobody_waits_for_ever_for_a_pipe_that_takes_nothing() {
        let (writer, text, take) = start();
        writer.push(1);
        drop(writer);
        assert_eq!(text.recv().unwrap(), "1-0 ");
        drop(take);
    }
}
