//! Latency on the overview: percentiles of the newest requests of a period. Times are exact. Gaps
//! between chunks are known by histogram buckets.

use maud::{Markup, html};
use taximeter_billing::Period;
use taximeter_ledger::{GAP_BUCKETS, Gaps, Record};
use taximeter_meter::GapHistogram;
use taximeter_store::{Filter, Store};

use super::charts::{Bin, distribution};
use super::text::{count, grouped, seconds, seconds_text, unknown};
use crate::ask::Deadline;
use crate::problem::ApiError;

/// Most requests in the percentiles.
const REQUESTS_MAX: u32 = 1000;
/// The percentiles.
const PERCENTS: [u64; 3] = [50, 95, 99];
/// Bins of a chart for each power of ten, from one millisecond on.
const BINS_PER_DECADE: i32 = 16;
const BINS: i32 = 6 * BINS_PER_DECADE;
const SMALLEST_SECONDS: f64 = 0.001;

/// Times of the newest requests of a period, in seconds, sorted.
#[derive(Debug, Default)]
pub(super) struct Latency {
    /// The number of requests.
    requests: u64,
    first_token: Vec<f64>,
    per_token: Vec<f64>,
    stall: Vec<f64>,
    duration: Vec<f64>,
    gaps: [u64; GAP_BUCKETS],
}

/// For each bucket bound, the number of gaps at or below it.
type CumulativeGaps = [(f64, u64)];

impl Latency {
    /// Reads the newest records from the store.
    ///
    /// Errors: those of the store; it takes too long.
    pub(super) fn of(
        store: &mut Store,
        period: Period,
        tenant: Option<&str>,
        deadline: Deadline,
    ) -> Result<Self, ApiError> {
        // What is known of the requests that are left.
        let from = store.details_from()?.map_or(period.from(), |from| from.max(period.from()));
        let (from, to) = (Some(from), Some(period.to()));
        let filter = Filter { tenant: tenant.map(str::to_owned), from, to };
        let newest = store.newest()?;
        let mut latency = Self::default();
        store.records(&filter, newest, Some(REQUESTS_MAX), |record| {
            latency.add(record);
            deadline.check()
        })?;
        Ok(latency.sorted())
    }

    fn add(&mut self, record: &Record) {
        let timing = &record.timing;
        self.requests += 1;
        self.first_token.extend(timing.time_to_first_token);
        self.per_token.extend(timing.time_per_output_token);
        self.stall.extend(timing.longest_stall);
        self.duration.push(timing.duration);
        let Gaps(gaps) = timing.gaps.unwrap_or_default();
        for (sum, gaps) in self.gaps.iter_mut().zip(gaps) {
            *sum += u64::from(gaps);
        }
    }

    fn sorted(mut self) -> Self {
        for times in
            [&mut self.first_token, &mut self.per_token, &mut self.stall, &mut self.duration]
        {
            taximeter_collections::sort_by(times, f64::total_cmp);
        }
        self
    }

    /// The number of gaps at or below each bound.
    fn gaps(&self) -> Vec<(f64, u64)> {
        let bounds = GapHistogram::BOUNDS_SECONDS.into_iter().chain([f64::INFINITY]);
        let mut below = 0;
        let within = |(bound, gaps)| {
            below += gaps;
            (bound, below)
        };
        bounds.zip(self.gaps).map(within).collect()
    }

    /// The section on the page.
    pub(super) fn section(&self) -> Markup {
        let gaps = &self.gaps();
        let measures = [
            ("Time to first token", &self.first_token),
            ("Time per output token", &self.per_token),
            ("Longest stall", &self.stall),
            ("Duration", &self.duration),
        ];
        let all_gaps = gaps.last().map_or(0, |(_, all)| *all);
        html! {
            section aria-labelledby="latency" {
                h2 #latency { "Latency" }
                div.pair {
                    figure {
                        figcaption { "Time to first token" }
                        (distribution("Requests by time to first token", &bins(&self.first_token)))
                    }
                    figure {
                        figcaption { "Gap between chunks" }
                        (distribution("Gaps between chunks by length", &gap_bins(gaps)))
                    }
                }
                div.scroll { table {
                    caption {
                        "The newest " (grouped(&self.requests.to_string()))
                        " requests of the period. A gap between chunks is shown by the upper bound \
                        of its histogram bucket."
                    }
                    thead { tr {
                        th scope="col" { "Measure" }
                        @for percent in PERCENTS { th.number scope="col" { "p" (percent) } }
                        th.number scope="col" { "Samples" }
                    } }
                    tbody {
                        @for (word, times) in measures {
                            tr {
                                th scope="row" { (word) }
                                @for percent in PERCENTS {
                                    td.number {
                                        (percentile(times, percent).map_or_else(unknown, seconds))
                                    }
                                }
                                td.number { (count(times.len() as u64)) }
                            }
                        }
                        tr {
                            th scope="row" { "Gap between chunks" }
                            @for percent in PERCENTS { td.number { (bound(gaps, percent)) } }
                            td.number data-samples="gaps" { (count(all_gaps)) }
                        }
                    }
                } }
            }
        }
    }
}

/// A percentile of sorted values.
fn percentile(sorted: &[f64], percent: u64) -> Option<f64> {
    let rank = rank(sorted.len() as u64, percent)?;
    sorted.get(usize::try_from(rank).ok()?).copied()
}

/// The index of a percentile among sorted samples.
fn rank(samples: u64, percent: u64) -> Option<u64> {
    let last = samples.checked_sub(1)?;
    Some(samples.saturating_mul(percent).div_ceil(100).saturating_sub(1).min(last))
}

/// The bucket bound at or above a percentile of the gaps.
fn bound(gaps: &CumulativeGaps, percent: u64) -> Markup {
    let all = gaps.last().map_or(0, |(_, all)| *all);
    let Some(rank) = rank(all, percent) else { return unknown() };
    let within = gaps.iter().position(|(_, below)| *below > rank).unwrap_or(gaps.len());
    match gaps.get(within) {
        Some((bound, _)) if bound.is_finite() => {
            html! { data value=(bound) { "≤ " (seconds_text(*bound)) } }
        }
        _ => {
            let (largest, _) = gaps.iter().rev().nth(1).copied().unwrap_or_default();
            html! { data value="+Inf" { "> " (seconds_text(largest)) } }
        }
    }
}

/// The bins of a chart. Their width grows, so milliseconds and minutes fit on one axis.
pub(super) fn bins(sorted: &[f64]) -> Vec<Bin> {
    let bound =
        |index: i32| SMALLEST_SECONDS * 10_f64.powf(f64::from(index) / f64::from(BINS_PER_DECADE));
    let at_most = |bound: f64| sorted.partition_point(|sample| *sample <= bound) as u64;
    let bin = |from: f64, to: f64| Bin { from, to, samples: at_most(to) - at_most(from) };
    let mut bins = vec![Bin { from: 0.0, to: bound(0), samples: at_most(bound(0)) }];
    bins.extend((0..BINS).map(|index| bin(bound(index), bound(index + 1))));
    bins.push(bin(bound(BINS), f64::INFINITY));
    bins
}

fn gap_bins(gaps: &CumulativeGaps) -> Vec<Bin> {
    let (mut from, mut before) = (0.0, 0);
    let bin = |(to, below): &(f64, u64)| {
        let bin = Bin { from, to: *to, samples: below.saturating_sub(before) };
        (from, before) = (*to, *below);
        bin
    };
    gaps.iter().map(bin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let sorted: Vec<_> = (1..=200).map(f64::from).collect();
        let of = |percent| percentile(&sorted, percent);
        assert_eq!((of(50), of(95), of(99)), (Some(100.0), Some(190.0), Some(198.0)));
        assert_eq!(percentile(&[0.25], 99), Some(0.25));
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn gaps_are_known_by_the_bound_they_stay_within() {
        let gaps = [(0.01, 90), (0.02, 98), (0.04, 98), (f64::INFINITY, 100)];
        let shown = |percent| bound(&gaps, percent).into_string();
        assert_eq!(shown(50), "<data value=\"0.01\">≤ 10.0 ms</data>");
        assert_eq!(shown(95), "<data value=\"0.02\">≤ 20.0 ms</data>");
        assert_eq!(shown(99), "<data value=\"+Inf\">&gt; 40.0 ms</data>");
        assert_eq!(bound(&[], 50).into_string(), unknown().into_string());
        let samples: Vec<_> = gap_bins(&gaps).iter().map(|bin| bin.samples).collect();
        assert_eq!(samples, [90, 8, 0, 2]);
    }

    #[test]
    fn every_sample_is_in_one_bin() {
        let mut times = vec![0.0, 0.0005, 0.001, 0.0011, 0.25, 3.0, 999.0, 5000.0, 1e9];
        times.sort_by(f64::total_cmp);
        let bins = bins(&times);
        assert_eq!(bins.iter().map(|bin| bin.samples).sum::<u64>(), times.len() as u64);
        assert_eq!(bins.last().map(|bin| bin.samples), Some(2));
    }
}
