//! A past that the program's own code has written, with a clock that runs fast.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use taximeter_control::exposition::{Bounds, read};
use taximeter_fleet::{Pool, Recorder, Target, TargetKind};
use taximeter_store::memory::{Keep, Memory};

pub(crate) const HOUR: i64 = 3_600;
pub(crate) const WEEK: i64 = 7 * 24 * HOUR;
/// An engine is asked each 15 seconds while nothing runs.
pub(crate) const EVERY: i64 = 15;

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

/// A fast clock, and a source that tells what it is told to.
pub(crate) struct Past {
    memory: Memory,
    recorder: Recorder,
    pool: Pool,
    target: Target,
    begun: Instant,
}

impl Past {
    #[expect(clippy::disallowed_methods, reason = "the first instant; the others are made from it")]
    pub(crate) fn of(source: &str, data_dir: &Path) -> Self {
        let every = Duration::from_secs(EVERY.unsigned_abs());
        Self {
            memory: Memory::open(data_dir).expect("a folder for samples"),
            recorder: Recorder::default(),
            pool: Pool::default(),
            target: Target::new(source, TargetKind::Engine, Vec::new(), every),
            begun: Instant::now(),
        }
    }

    /// It tells this at `second`; what is due then is done.
    pub(crate) fn tell(&mut self, second: i64, text: &str) {
        let exposition = read(text.as_bytes(), &Bounds::default());
        let reading = taximeter_fleet::read(&exposition.samples, at(second));
        let now = self.begun + Duration::from_secs(second.unsigned_abs());
        let quantities = self.target.quantities.after(reading, now, &mut self.pool);
        self.target.quantities = Arc::new(quantities);
        self.target.answered_at = Some(at(second));
        self.recorder.note(&[Arc::new(self.target.clone())]);
        if second % 60 == 0 {
            self.memory.write(&mut self.recorder, at(second)).expect("samples are kept");
        }
    }

    /// Nothing is told, but what is over is put together, and what is old goes.
    pub(crate) fn pass(&self, second: i64) {
        while self.memory.merge_next(at(second), &|| true).expect("files are merged") {}
        let times = [2, 90, 1_095].map(|days| Duration::from_secs(days * 24 * 3_600));
        let keep = Keep { times, bytes_max: u64::MAX };
        self.memory.bound(Some(at(second)), &keep).expect("old files go");
    }
}

/// What vLLM tells.
pub(crate) fn engine_text(waiting: i64, generated: i64) -> String {
    format!(
        "# TYPE vllm:num_requests_waiting gauge\n\
         vllm:num_requests_waiting{{engine=\"0\",model_name=\"m\"}} {waiting}\n\
         # TYPE vllm:num_requests_running gauge\n\
         vllm:num_requests_running{{engine=\"0\",model_name=\"m\"}} 4\n\
         # TYPE vllm:generation_tokens counter\n\
         vllm:generation_tokens_total{{engine=\"0\",model_name=\"m\"}} {generated}\n\
         # TYPE vllm:cache_config_info gauge\n\
         vllm:cache_config_info{{block_size=\"16\",engine=\"0\",num_gpu_blocks=\"1000\"}} 1\n"
    )
}
