//! Measures the times of one exchange. Nothing else in this crate looks at the time.

use std::time::{Duration, Instant};

use crate::measurement::{GapHistogram, Timing};

/// Notes when what happened, from the start on.
#[derive(Debug, Clone)]
pub(crate) struct TimingRecorder {
    started_at: Instant,
    /// When the last read came: what a half event at the end is timed by.
    read_at: Instant,
    content_at: Option<Instant>,
    timing: Timing,
}

impl TimingRecorder {
    pub(crate) fn new(started_at: Instant) -> Self {
        Self { started_at, read_at: started_at, content_at: None, timing: Timing::default() }
    }

    /// Gaps are kept in fine buckets too.
    pub(crate) fn keep_fine_gaps(&mut self) {
        self.timing.gaps.fine = Some(Box::default());
    }

    /// Bytes came off the wire; what follows happened then.
    pub(crate) const fn read(&mut self, now: Instant) {
        self.read_at = now;
    }

    /// When the last bytes came.
    pub(crate) const fn read_at(&self) -> Instant {
        self.read_at
    }

    /// An event with data was complete.
    pub(crate) fn event(&mut self) {
        if self.timing.time_to_first_chunk.is_none() {
            self.timing.time_to_first_chunk = Some(self.elapsed());
        }
    }

    /// That event brought generated content.
    pub(crate) fn content(&mut self) {
        if let Some(before) = self.content_at.replace(self.read_at) {
            let gap = self.read_at.saturating_duration_since(before);
            self.timing.gaps.record(gap);
            self.timing.longest_stall = self.timing.longest_stall.max(Some(gap));
        } else {
            self.timing.time_to_first_token = Some(self.elapsed());
        }
        self.timing.output_chunks += 1;
    }

    pub(crate) const fn output_chunks(&self) -> u64 {
        self.timing.output_chunks
    }

    pub(crate) const fn time_to_first_token(&self) -> Option<Duration> {
        self.timing.time_to_first_token
    }

    pub(crate) fn finish(mut self, now: Instant) -> Timing {
        self.timing.time_to_last_token =
            self.content_at.map(|last| last.saturating_duration_since(self.started_at));
        self.timing.duration = now.saturating_duration_since(self.started_at);
        self.timing
    }

    fn elapsed(&self) -> Duration {
        self.read_at.saturating_duration_since(self.started_at)
    }
}

impl Timing {
    /// (last − first content event) ÷ (`output_tokens` − 1); `None` below two tokens or without
    /// content.
    #[must_use]
    pub fn time_per_output_token(&self, output_tokens: u64) -> Option<Duration> {
        let intervals = output_tokens.checked_sub(1).filter(|intervals| *intervals > 0)?;
        let span = self.time_to_last_token?.saturating_sub(self.time_to_first_token?);
        u64::try_from(span.as_nanos() / u128::from(intervals)).ok().map(Duration::from_nanos)
    }
}

impl GapHistogram {
    /// Adds one gap.
    pub fn record(&mut self, gap: Duration) {
        let seconds = gap.as_secs_f64();
        let above = Self::BOUNDS_SECONDS.iter().take_while(|bound| seconds > **bound).count();
        if let Some(bucket) = self.buckets.get_mut(above) {
            *bucket = bucket.saturating_add(1);
        }
        self.sum = self.sum.saturating_add(gap);
        if let Some(fine) = &mut self.fine {
            fine.record(seconds);
        }
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, more) in self.buckets.iter_mut().zip(other.buckets) {
            *bucket = bucket.saturating_add(more);
        }
        self.sum = self.sum.saturating_add(other.sum);
        if let (Some(fine), Some(more)) = (&mut self.fine, &other.fine) {
            fine.merge(more);
        }
    }

    /// Samples so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().copied().map(u64::from).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[expect(clippy::disallowed_methods, reason = "tests count from one epoch")]
    fn epoch() -> Instant {
        Instant::now()
    }

    #[test]
    fn every_gap_between_content_events_is_a_sample() {
        let epoch = epoch();
        let mut timing = TimingRecorder::new(epoch);
        timing.read(epoch + 5 * MS);
        timing.event();
        for at in [10, 30, 30, 430] {
            timing.read(epoch + at * MS);
            timing.event();
            timing.content();
        }
        let timing = timing.finish(epoch + 500 * MS);
        assert_eq!(timing.time_to_first_chunk, Some(5 * MS));
        assert_eq!(timing.time_to_first_token, Some(10 * MS));
        assert_eq!(timing.time_to_last_token, Some(430 * MS));
        assert_eq!(timing.output_chunks, 4);
        assert_eq!(timing.longest_stall, Some(400 * MS));
        assert_eq!(timing.gaps.count(), 3);
        assert_eq!(timing.gaps.sum, 420 * MS);
        assert_eq!(timing.duration, 500 * MS);
        assert_eq!(timing.time_per_output_token(8), Some(60 * MS));
        assert_eq!(timing.time_per_output_token(1), None);
        assert_eq!(timing.time_per_output_token(0), None);
    }

    #[test]
    fn without_content_there_is_no_time_to_first_token() {
        let epoch = epoch();
        let timing = TimingRecorder::new(epoch).finish(epoch);
        assert_eq!(timing, Timing::default());
        assert_eq!(timing.time_per_output_token(9), None);
    }

    #[test]
    fn bounds_belong_to_the_bucket_below() {
        let mut gaps = GapHistogram::default();
        for gap in [Duration::ZERO, 10 * MS, 11 * MS, 81_920 * MS, 81_921 * MS] {
            gaps.record(gap);
        }
        assert_eq!(gaps.buckets, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        let mut both = gaps.clone();
        both.merge(&gaps);
        assert_eq!(both.count(), 10);
        assert_eq!(both.sum, 2 * gaps.sum);
    }
}
