//! The gateway of the demo. Its figures come from its journal, as those of a bill do.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::Parser as _;
use rust_decimal::Decimal;
use taximeter_config::Config;
use taximeter_ledger::{Entry, Record, RequestId};
use taximeter_system::clock;
use taximeter_telemetry::log::{Log, LogFormat};

use super::live::LiveRow;
use crate::bill;
use crate::serve;

/// A gateway that the demo started.
pub(super) struct Gateway {
    running: serve::Running,
    data_dir: PathBuf,
    measured: Mutex<Measured>,
}

/// The figures so far.
#[derive(Default)]
struct Measured {
    next_seq: u64,
    /// Running requests, with tenant and model.
    open: HashMap<RequestId, (String, String)>,
    ended: BTreeMap<(String, String), Ended>,
}

#[derive(Default)]
struct Ended {
    requests: u64,
    input_tokens: u64,
    output_tokens: u64,
    first_tokens: Vec<Duration>,
    cost: Option<Decimal>,
}

impl Gateway {
    /// Starts a gateway with a configuration.
    ///
    /// Errors: the configuration has mistakes; the gateway cannot start.
    pub(super) fn start(text: &str) -> anyhow::Result<Self> {
        let none = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
        let config = Config::from_yaml(text, "demo", &|_| None, &none)
            .map_err(|mistakes| anyhow::anyhow!("{mistakes}"))?;
        let data_dir = config.data_dir.clone();
        let running = serve::start(config, Log::quiet(LogFormat::Json)?)?;
        Ok(Self { running, data_dir, measured: Mutex::default() })
    }

    /// The address for clients.
    pub(super) fn listen(&self) -> SocketAddr {
        self.running.listen.first()
    }

    /// The admin address.
    pub(super) fn admin(&self) -> SocketAddr {
        self.running.admin.first()
    }

    /// The figures so far, always in the same order.
    pub(super) fn rows(&self) -> Vec<LiveRow> {
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        // What cannot be read now is read at the next look.
        for framed in taximeter_journal::read(&self.data_dir, measured.next_seq).flatten() {
            measured.next_seq = framed.seq + 1;
            if let Ok(entry) = framed.entry() {
                measured.hear(entry);
            }
        }
        measured.rows()
    }

    /// Writes the bill.
    pub(super) fn bill(&self, out: &mut (dyn Write + Send)) -> anyhow::Result<()> {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            bill: bill::BillArgs,
        }
        let mut line = Line::try_parse_from([
            std::ffi::OsStr::new("bill"),
            std::ffi::OsStr::new("--data-dir"),
            self.data_dir.as_os_str(),
        ])?;
        // Whatever the environment names.
        (line.bill.ledger.config, line.bill.ledger.store) = (None, None);
        let ledger = line.bill.ledger.find()?;
        bill::run(&line.bill, &ledger, clock::wall(), &mut ledger.feeds(), out)?;
        Ok(())
    }

    /// Stops the gateway.
    pub(super) fn stop(self) {
        self.running.stop();
    }
}

impl Measured {
    fn hear(&mut self, entry: Entry) {
        match entry {
            Entry::Reserve(reserve) => {
                let model = reserve.request_model.unwrap_or_default();
                self.open.insert(reserve.id, (reserve.tenant.as_str().to_owned(), model));
            }
            Entry::Void(void) => {
                self.open.remove(&void.id);
            }
            Entry::Post(record) if record.used_nothing() => {
                self.open.remove(&record.id);
            }
            Entry::Post(record) => {
                let kind = self.open.remove(&record.id).unwrap_or_default();
                self.ended.entry(kind).or_default().add(&record);
            }
            Entry::Progress(_)
            | Entry::Correction(_)
            | Entry::Checkpoint(_)
            | Entry::Refusals(_) => {}
        }
    }

    fn rows(&self) -> Vec<LiveRow> {
        let mut running: BTreeMap<&(String, String), u64> = BTreeMap::new();
        for kind in self.ended.keys() {
            running.insert(kind, 0);
        }
        for kind in self.open.values() {
            *running.entry(kind).or_default() += 1;
        }
        let none = Ended::default();
        running
            .into_iter()
            .map(|(kind, in_flight)| {
                let ended = self.ended.get(kind).unwrap_or(&none);
                LiveRow {
                    tenant: kind.0.clone(),
                    model: kind.1.clone(),
                    requests: ended.requests,
                    in_flight,
                    input_tokens: ended.input_tokens,
                    output_tokens: ended.output_tokens,
                    time_to_first_token_p50: percentile(&ended.first_tokens, 50),
                    time_to_first_token_p95: percentile(&ended.first_tokens, 95),
                    cost: if ended.requests == 0 { Some(Decimal::ZERO) } else { ended.cost },
                }
            })
            .collect()
    }
}

impl Ended {
    fn add(&mut self, record: &Record) {
        let cost = record.cost.as_ref().map(|cost| cost.amount);
        // One unknown cost makes the sum unknown.
        self.cost = match (self.requests, self.cost, cost) {
            (0, _, cost) => cost,
            (_, Some(sum), Some(cost)) => sum.checked_add(cost),
            _ => None,
        };
        self.requests += 1;
        self.input_tokens += record.usage.input_tokens.unwrap_or(0);
        self.output_tokens += record.usage.output_tokens.unwrap_or(0);
        if let Some(seconds) = record.timing.time_to_first_token {
            let first = Duration::try_from_secs_f64(seconds).unwrap_or_default();
            let at = self.first_tokens.partition_point(|earlier| *earlier < first);
            self.first_tokens.insert(at, first);
        }
    }
}

/// A percentile of sorted values.
fn percentile(sorted: &[Duration], percent: usize) -> Option<Duration> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1).min(last)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let sorted: Vec<_> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(percentile(&sorted, 50), Some(Duration::from_millis(50)));
        assert_eq!(percentile(&sorted, 95), Some(Duration::from_millis(95)));
        assert_eq!(percentile(&sorted[..1], 95), Some(Duration::from_millis(1)));
        assert_eq!(percentile(&[], 50), None);
    }
}
