//! The gaps between the events of a stream, as a histogram.

use serde::{Deserialize, Serialize, Serializer};

/// Number of buckets.
pub const GAP_BUCKETS: usize = 15;

/// How many gaps between two events with content fell into each bucket. The bounds are 10 ms, 20 ms
/// and so on, each twice the one before. The last bucket has no upper bound.
///
/// In JSON this is a list of counts without the zeros at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Vec<u32>")]
pub struct Gaps(pub [u32; GAP_BUCKETS]);

impl Serialize for Gaps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let end = self.0.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        serializer.collect_seq(self.0.iter().take(end))
    }
}

impl From<Vec<u32>> for Gaps {
    fn from(written: Vec<u32>) -> Self {
        let mut counts = written.into_iter();
        Self([(); GAP_BUCKETS].map(|()| counts.next().unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_at_the_end_are_not_written() {
        let mut gaps = Gaps::default();
        assert_eq!(serde_json::to_string(&gaps).unwrap(), "[]");
        (gaps.0[0], gaps.0[3]) = (93, 2);
        assert_eq!(serde_json::to_string(&gaps).unwrap(), "[93,0,0,2]");
        gaps.0[14] = 1;
        let whole = serde_json::to_string(&gaps).unwrap();
        assert_eq!(whole, "[93,0,0,2,0,0,0,0,0,0,0,0,0,0,1]");
        for written in ["[]", "[93,0,0,2]", &whole] {
            let read: Gaps = serde_json::from_str(written).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), written);
        }
    }
}
