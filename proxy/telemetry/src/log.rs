//! Writes log lines to stderr, and to the collector if one is configured. A line never contains a
//! prompt or a secret. Each kind of event has a maximum of lines per second, except for the access
//! log.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use dashmap::DashMap;
use pingora_limits::rate::Rate;
use taximeter_config::Limits;
use taximeter_system::clock;

use super::line::{Field, Line};
use super::logs::Logs;
use super::names::log_event::{Level, LogEvent};
use super::trace::Found;
use crate::lines::Writer;

pub use super::line::LogFormat;

/// The log.
pub struct Log {
    /// Only what is broken and needs somebody is written.
    quiet: bool,
    lines: Rate,
    /// Lines of one kind a second; the number left out is told with the next one.
    lines_max: AtomicIsize,
    /// Longest text in a field, in bytes.
    field_bytes_max: AtomicUsize,
    /// Lines of a kind that were over its rate since the last one that was not.
    left_out: DashMap<LogEvent, u64>,
    writer: Writer<Arc<Line>>,
    /// Log lines for a collector; `None` if none is configured.
    pub logs: Option<Logs>,
}

impl Log {
    /// A log on stderr.
    ///
    /// Errors: the system has no thread for it.
    pub fn new(format: LogFormat) -> io::Result<Self> {
        let render = move |line: &Arc<Line>, lost, to: &mut Vec<u8>| line.render(format, lost, to);
        let log = Self {
            quiet: false,
            lines: Rate::new(Duration::from_secs(1)),
            lines_max: AtomicIsize::default(),
            field_bytes_max: AtomicUsize::default(),
            left_out: DashMap::new(),
            writer: Writer::start(io::stderr(), render)?,
            logs: None,
        };
        log.limit(&Limits::default());
        Ok(log)
    }

    /// A log of critical events only, for a gateway that shares its terminal.
    ///
    /// Errors: as of `new`.
    pub fn quiet(format: LogFormat) -> io::Result<Self> {
        Ok(Self { quiet: true, ..Self::new(format)? })
    }

    /// Lines go this way too.
    pub(super) fn pushing(self, logs: Option<Logs>) -> Self {
        Self { logs, ..self }
    }

    /// Applies these limits from now on.
    pub fn limit(&self, limits: &Limits) {
        let lines_max = limits.log_lines_per_kind_per_second_max;
        self.lines_max.store(lines_max.try_into().unwrap_or(isize::MAX), Relaxed);
        self.field_bytes_max.store(limits.log_field_bytes_max, Relaxed);
    }

    /// Writes a line about an event.
    pub fn tell<const N: usize>(&self, event: LogEvent, fields: [Field; N]) {
        self.tell_of(None, event, fields.into());
    }

    /// Tells what happened to a request, which can be found again in its trace.
    pub(crate) fn tell_of(&self, trace: Option<Found>, event: LogEvent, mut fields: Vec<Field>) {
        let is_over = || self.lines.observe(&event, 1) > self.lines_max.load(Relaxed);
        if !event.is_access() && is_over() {
            *self.left_out.entry(event).or_default() += 1;
            return;
        }
        debug_assert!(
            fields.iter().all(|(name, _)| event.row().fields.contains(name)),
            "{event:?} has other fields: {fields:?}"
        );
        if let Some((_, left_out)) = self.left_out.remove(&event) {
            fields.push(("left_out", left_out.into()));
        }
        let bytes_max = self.field_bytes_max.load(Relaxed);
        let line = Arc::new(Line::new(clock::wall(), event, trace, fields, bytes_max));
        if let Some(logs) = &self.logs {
            logs.queue(&line);
        }
        if event.is_written() && (!self.quiet || event.row().level == Level::Critical) {
            self.writer.push(line);
        }
    }

    /// Lines since the start that were lost because too many waited.
    pub fn lost(&self) -> u64 {
        self.writer.lost()
    }

    /// Waits until all lines are written, but no longer than a second.
    pub fn flush(&self) {
        self.writer.flush();
    }
}

#[cfg(test)]
mod tests {
    use taximeter_config::GenAi;

    use super::*;

    #[test]
    fn a_kind_has_as_many_lines_a_second_as_it_may_and_other_kinds_theirs() {
        for lines_max in [1, 10, 1_000] {
            let log = Log::quiet(LogFormat::Json).unwrap().pushing(Some(Logs::new(GenAi::V1_41)));
            log.limit(&Limits {
                log_lines_per_kind_per_second_max: lines_max,
                ..Limits::default()
            });
            let lines = || log.logs.as_ref().unwrap().waiting();
            let most = lines_max as usize;
            (0..most).for_each(|_| log.tell(LogEvent::Leaving, []));
            assert_eq!(lines(), most);
            (0..5).for_each(|_| log.tell(LogEvent::Leaving, []));
            assert_eq!(lines(), most, "no more of this kind");
            assert_eq!(log.left_out.get(&LogEvent::Leaving).map(|count| *count), Some(5));
            log.tell(LogEvent::Draining, []);
            assert_eq!(lines(), most + 1, "another kind");
        }
    }
}
