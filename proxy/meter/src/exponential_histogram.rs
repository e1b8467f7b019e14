//! A histogram with exponential buckets, as in Prometheus' native histograms. Nobody has to choose
//! its bounds.

/// Buckets at most; where samples lie so far apart that they would be more, the buckets get wider.
const BUCKETS_MAX: usize = 160;
/// The narrowest: each bound is 9 % above the one before.
const SCHEMA_MAX: i8 = 3;
/// Bounds within one doubling, from a half on, in the narrowest schema: 2^(n/8 − 1).
const BOUNDS: [f64; 8] = [
    0.5,
    0.545_253_866_332_628_8,
    0.594_603_557_501_360_5,
    0.648_419_777_325_504_8,
    0.707_106_781_186_547_5,
    0.771_105_412_703_970_4,
    0.840_896_415_253_714_4,
    0.917_004_043_204_671_1,
];

/// How samples that are not negative are spread.
///
/// Source: Prometheus, `docs/specs/native_histograms`, standard schemas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExponentialHistogram {
    /// A bound is the one before times 2^(2^−schema).
    schema: i8,
    /// Samples that are none, or next to it.
    zeros: u64,
    /// Number of the first bucket that is kept. Bucket n ends with the n-th power of the factor,
    /// and has that.
    first: i32,
    counts: Vec<u64>,
}

impl Default for ExponentialHistogram {
    fn default() -> Self {
        Self { schema: SCHEMA_MAX, zeros: 0, first: 0, counts: Vec::new() }
    }
}

impl ExponentialHistogram {
    /// Samples up to here count as zero: 2^−128.
    pub const ZERO_MAX: f64 = f64::from_bits(0x37f0_0000_0000_0000);

    /// Adds a sample; one that is no number or negative is left out.
    pub fn record(&mut self, sample: f64) {
        if (0.0..=Self::ZERO_MAX).contains(&sample) {
            self.zeros += 1;
        } else if sample > 0.0 && sample.is_finite() {
            self.add(bucket(sample), SCHEMA_MAX, 1);
        }
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.zeros += other.zeros;
        for (number, count) in other.buckets() {
            self.add(number, other.schema, count);
        }
    }

    /// What it has more than `before`, which it has grown from.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut more = self.clone();
        more.zeros = more.zeros.saturating_sub(before.zeros);
        for (number, count) in before.buckets() {
            let number = widened(number, before.schema.saturating_sub(more.schema));
            let place = usize::try_from(i64::from(number) - i64::from(more.first)).ok();
            if let Some(left) = place.and_then(|place| more.counts.get_mut(place)) {
                *left = left.saturating_sub(count);
            }
        }
        more
    }

    /// Samples so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.zeros
    }

    /// Samples that count as zero.
    #[must_use]
    pub const fn zeros(&self) -> u64 {
        self.zeros
    }

    /// A bound is the one before times 2^(2^−schema).
    #[must_use]
    pub const fn schema(&self) -> i8 {
        self.schema
    }

    /// The buckets that have samples: their numbers, rising, and how many.
    pub fn buckets(&self) -> impl Iterator<Item = (i32, u64)> {
        let numbered = (self.first..).zip(self.counts.iter().copied());
        numbered.filter(|(_, count)| *count > 0)
    }

    /// Adds to a bucket of some schema, at least as narrow as ours.
    fn add(&mut self, number: i32, schema: i8, count: u64) {
        let number = |of: i8| widened(number, schema - of);
        while self.schema > schema || self.width_with(number(self.schema)) > BUCKETS_MAX {
            self.widen();
        }
        let number = number(self.schema);
        if self.counts.is_empty() {
            self.first = number;
        }
        while number < self.first {
            self.counts.insert(0, 0);
            self.first -= 1;
        }
        let place = usize::try_from(number - self.first).unwrap_or_default();
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        if let Some(sum) = self.counts.get_mut(place) {
            *sum += count;
        }
    }

    /// How many buckets there would be, from the first to the last.
    fn width_with(&self, number: i32) -> usize {
        let Ok(kept) = i32::try_from(self.counts.len()) else { return usize::MAX };
        if kept == 0 {
            return 1;
        }
        let (first, last) = (self.first.min(number), (self.first + kept - 1).max(number));
        usize::try_from(last - first + 1).unwrap_or(usize::MAX)
    }

    /// Two neighbours become one.
    fn widen(&mut self) {
        let wide: Vec<_> =
            self.buckets().map(|(number, count)| (widened(number, 1), count)).collect();
        self.schema -= 1;
        self.counts.clear();
        for (number, count) in wide {
            self.add(number, self.schema, count);
        }
    }
}

/// The number of the bucket that has a bucket's samples when they are so many times wider.
const fn widened(number: i32, times: i8) -> i32 {
    if times <= 0 {
        return number;
    }
    (number + (1 << times) - 1) >> times
}

/// The bucket of a positive sample, in the narrowest schema.
fn bucket(sample: f64) -> i32 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const HALF: u64 = 1022;
    let bits = sample.to_bits();
    let exponent = i32::try_from(bits >> 52).unwrap_or_default() - 1022;
    let part = f64::from_bits(HALF << 52 | bits & MANTISSA);
    let within = BOUNDS.partition_point(|bound| *bound < part);
    let buckets = 1 << SCHEMA_MAX;
    i32::try_from(within).unwrap_or_default() + (exponent - 1) * buckets
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Where a bucket ends.
    fn bound(number: i32, schema: i8) -> f64 {
        2_f64.powf(f64::from(number) * 2_f64.powi(-i32::from(schema)))
    }

    fn of(samples: &[f64]) -> ExponentialHistogram {
        let mut all = ExponentialHistogram::default();
        samples.iter().for_each(|sample| all.record(*sample));
        all
    }

    #[test]
    fn a_bound_belongs_to_the_bucket_below_it() {
        for (sample, bucket) in
            [(1.0, 0), (1.000_001, 1), (2.0, 8), (0.5, -8), (0.51, -7), (1.0905, 1), (1.0906, 2)]
        {
            assert_eq!(of(&[sample]).buckets().collect::<Vec<_>>(), [(bucket, 1)], "{sample}");
        }
        let odd = of(&[0.0, 1e-300, -1.0, f64::NAN, f64::INFINITY]);
        assert_eq!((odd.zeros(), odd.count()), (2, 2));
        assert!((ExponentialHistogram::ZERO_MAX - 2_f64.powi(-128)).abs() < f64::MIN_POSITIVE);
    }

    #[test]
    fn samples_far_apart_share_wider_buckets() {
        let samples: Vec<_> = (-30..30).map(|power| 10_f64.powi(power)).collect();
        let wide = of(&samples);
        assert_eq!((wide.schema(), wide.count()), (-1, 60));
        assert!(wide.counts.len() <= BUCKETS_MAX);
        let all = of(&[1e-38, 1e308]);
        assert_eq!((all.schema(), all.count()), (-3, 2));
    }

    proptest! {
        #[test]
        fn what_came_since_is_what_was_added(
            before in proptest::collection::vec(0.0..10.0_f64, 0..50),
            after in proptest::collection::vec(1e-30..1e30_f64, 0..50),
        ) {
            let before = of(&before);
            let mut now = before.clone();
            now.merge(&of(&after));
            let more = now.since(&before);
            prop_assert_eq!(more.count(), after.len() as u64);
            let mut again = before;
            again.merge(&more);
            prop_assert_eq!(again.buckets().collect::<Vec<_>>(), now.buckets().collect::<Vec<_>>());
        }

        #[test]
        fn every_sample_is_within_its_bounds_in_whatever_order_and_parts(
            samples in proptest::collection::vec(
                prop_oneof![0.0..10.0_f64, 1e-9..1e-3_f64, 1e-30..1e30_f64], 0..300),
            split in 0_usize..300,
        ) {
            let whole = of(&samples);
            let (head, tail) = samples.split_at(split.min(samples.len()));
            let mut parts = of(tail);
            parts.merge(&of(head));
            // Which buckets are needed depends on the samples alone.
            prop_assert_eq!(&parts, &whole);
            prop_assert_eq!(whole.count(), samples.len() as u64);
            let schema = whole.schema();
            for (number, count) in whole.buckets() {
                let (above, to) = (bound(number - 1, schema), bound(number, schema));
                // As exact as powers are.
                let within = |s: &&f64| **s > above * (1.0 + 1e-12) && **s <= to * (1.0 - 1e-12);
                let near = |s: &&f64| **s > above * (1.0 - 1e-12) && **s <= to * (1.0 + 1e-12);
                let least = samples.iter().filter(within).count() as u64;
                let most = samples.iter().filter(near).count() as u64;
                prop_assert!(least <= count && count <= most, "{number}: {least} {count} {most}");
            }
        }
    }
}
