//! How a time spreads over turns.

use serde::Serialize;
use utoipa::ToSchema;

/// The spread of a time, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Spread {
    /// How many times there are.
    pub count: u64,
    /// The shortest.
    pub min: f64,
    /// Half of them are as long or shorter.
    pub p50: f64,
    /// 95 % of them are as long or shorter.
    pub p95: f64,
    /// The longest.
    pub max: f64,
}

impl Spread {
    /// The spread of these times. `None` of none.
    pub(crate) fn of(mut times: Vec<f64>) -> Option<Self> {
        taximeter_collections::sort_by(&mut times, f64::total_cmp);
        // The nearest rank: a time that was really measured.
        let at = |percent: usize| {
            times.get((times.len() * percent).div_ceil(100).saturating_sub(1)).copied()
        };
        Some(Self {
            count: times.len() as u64,
            min: *times.first()?,
            p50: at(50)?,
            p95: at(95)?,
            max: *times.last()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        assert_eq!(Spread::of(Vec::new()), None);
        let of = |count: u32| Spread::of((1..=count).rev().map(f64::from).collect()).unwrap();
        let only = Spread { count: 1, min: 1.0, p50: 1.0, p95: 1.0, max: 1.0 };
        assert_eq!(of(1), only);
        assert_eq!(of(100), Spread { count: 100, min: 1.0, p50: 50.0, p95: 95.0, max: 100.0 });
        assert_eq!((of(20).p95, of(21).p95, of(3).p50), (19.0, 20.0, 2.0));
    }
}
