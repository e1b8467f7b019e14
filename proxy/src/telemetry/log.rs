//! Log lines on stderr, and to the collector where one is named. Never a prompt, never a secret;
//! each kind of event at most so many lines a second, but for the line of each request.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use pingora_limits::rate::Rate;

use super::line::{Field, Line};
use super::logs::Logs;
use super::names::log_event::{Level, LogEvent};
use super::trace::Found;
use crate::edge::clock;
use crate::edge::lines::Writer;

pub(crate) use super::line::Format;

/// Lines of one kind a second; the number left out is told with the next one.
const LINES_PER_KIND_PER_SECOND_MAX: isize = 10;

/// Where lines go.
pub(crate) struct Log {
    /// Only what is broken and needs somebody is written.
    quiet: bool,
    lines: Rate,
    /// Lines of a kind that were over its rate since the last one that was not.
    left_out: DashMap<LogEvent, u64>,
    writer: Writer<Arc<Line>>,
    /// `None` where no collector wants lines.
    pub(crate) logs: Option<Logs>,
}

impl Log {
    /// Lines to stderr.
    ///
    /// Errors: the system has no thread for it.
    pub(crate) fn new(format: Format) -> io::Result<Self> {
        let render = move |line: &Arc<Line>, lost, to: &mut Vec<u8>| line.render(format, lost, to);
        Ok(Self {
            quiet: false,
            lines: Rate::new(Duration::from_secs(1)),
            left_out: DashMap::new(),
            writer: Writer::start(io::stderr(), render)?,
            logs: None,
        })
    }

    /// Only what is broken and needs somebody: for a gateway that shares its terminal.
    ///
    /// Errors: as of `new`.
    pub(crate) fn quiet(format: Format) -> io::Result<Self> {
        Ok(Self { quiet: true, ..Self::new(format)? })
    }

    /// Lines go this way too.
    pub(super) fn pushing(self, logs: Option<Logs>) -> Self {
        Self { logs, ..self }
    }

    /// Tells what happened.
    pub(crate) fn tell<const N: usize>(&self, event: LogEvent, fields: [Field; N]) {
        self.tell_of(None, event, fields.into());
    }

    /// Tells what happened to a request, which can be found again in its trace.
    pub(crate) fn tell_of(&self, trace: Option<Found>, event: LogEvent, mut fields: Vec<Field>) {
        let is_over = || self.lines.observe(&event, 1) > LINES_PER_KIND_PER_SECOND_MAX;
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
        let line = Arc::new(Line::new(clock::wall(), event, trace, fields));
        if let Some(logs) = &self.logs {
            logs.queue(&line);
        }
        if !self.quiet || event.row().level == Level::Critical {
            self.writer.push(line);
        }
    }

    /// Lines that could not be written because too many waited, since the start.
    pub(crate) fn lost(&self) -> u64 {
        self.writer.lost()
    }

    /// Waits until what was told is written, but no longer than a second.
    pub(crate) fn flush(&self) {
        self.writer.flush();
    }
}
