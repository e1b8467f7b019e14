//! Samples of several rounds, and the table that they make.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Names of the columns, in order.
pub const SERVERS: [&str; 3] = ["direct", "nginx", "taximeter"];

/// Samples by metric and server, one per round.
#[derive(Debug, Default)]
pub struct Samples(BTreeMap<&'static str, BTreeMap<&'static str, Vec<f64>>>);

impl Samples {
    /// Adds the sample of one round.
    pub fn add(&mut self, metric: &'static str, server: &'static str, value: f64) {
        self.0.entry(metric).or_default().entry(server).or_default().push(value);
    }

    /// Adds to metric `to` what `how` makes of a server's and direct's newest samples of `from`.
    pub fn relate(
        &mut self,
        to: &'static str,
        from: &'static str,
        server: &'static str,
        how: impl Fn(f64, f64) -> f64,
    ) {
        let newest = |server| self.of(from, server).last().copied();
        if let Some((own, direct)) = newest(server).zip(newest("direct")) {
            self.add(to, server, how(own, direct));
        }
    }

    /// All samples, for machines.
    #[must_use]
    pub fn json(&self) -> Value {
        json!(self.0)
    }

    fn of(&self, metric: &str, server: &str) -> &[f64] {
        self.0.get(metric).and_then(|servers| servers.get(server)).map_or(&[], Vec::as_slice)
    }

    /// What Taximeter needs in units of what nginx needs: the median of the rounds' ratios.
    fn ratio(&self, metric: &str) -> Option<f64> {
        let pairs = self.of(metric, "taximeter").iter().zip(self.of(metric, "nginx"));
        Spread::of(&pairs.map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>())
            .map(|spread| spread.median)
    }
}

/// One line of the table.
#[derive(Debug)]
pub struct Row {
    metric: &'static str,
    label: &'static str,
    digits: usize,
    goal: &'static str,
    has_ratio: bool,
}

impl Row {
    /// The samples of `metric`, called `label`, with so many digits after the point.
    #[must_use]
    pub const fn new(metric: &'static str, label: &'static str, digits: usize) -> Self {
        Self { metric, label, digits, goal: "", has_ratio: false }
    }

    /// With Taximeter ÷ nginx.
    #[must_use]
    pub const fn ratio(self) -> Self {
        Self { has_ratio: true, ..self }
    }

    /// With what it should be: of the ratio where there is one, else of Taximeter's number.
    #[must_use]
    pub const fn goal(self, goal: &'static str) -> Self {
        Self { goal, ..self }
    }

    /// The line itself: medians, and smallest and largest in brackets.
    #[must_use]
    pub fn line(&self, samples: &Samples) -> String {
        let cells = SERVERS.map(|server| {
            Spread::of(samples.of(self.metric, server))
                .map_or_else(|| "–".to_owned(), |spread| spread.text(self.digits))
        });
        let ratio = samples.ratio(self.metric).filter(|_| self.has_ratio);
        let ratio = ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        line(self.label, &cells, &ratio, self.goal)
    }
}

/// The table's head.
#[must_use]
pub fn head() -> String {
    line("", &SERVERS.map(str::to_owned), "× nginx", "goal")
}

fn line(label: &str, cells: &[String; 3], ratio: &str, goal: &str) -> String {
    let [direct, nginx, taximeter] = cells;
    format!("{label:<46} {direct:>24} {nginx:>24} {taximeter:>24} {ratio:>8}  {goal}")
        .trim_end()
        .to_owned()
}

/// Median, smallest and largest.
#[derive(Debug, PartialEq)]
pub struct Spread {
    /// Half are larger.
    pub median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    /// Of these samples; `None` of none.
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.get(sorted.len() / 2)?;
        let below = sorted.get((sorted.len() - 1) / 2)?;
        let median = f64::midpoint(*middle, *below);
        Some(Self { median, min: *sorted.first()?, max: *sorted.last()? })
    }

    /// The median, and smallest and largest in brackets, with so many digits after the point.
    #[must_use]
    pub fn text(&self, digits: usize) -> String {
        let Self { median, min, max } = self;
        if min.total_cmp(max).is_eq() {
            return format!("{median:.digits$}");
        }
        format!("{median:.digits$} ({min:.digits$}–{max:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        let spread = Spread::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(spread, Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert_eq!(spread.text(1), "2.5 (1.0–4.0)");
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let mut samples = Samples::default();
        for (ours, theirs) in [(2.0, 1.0), (30.0, 10.0), (8.0, 2.0)] {
            samples.add("cpu", "taximeter", ours);
            samples.add("cpu", "nginx", theirs);
        }
        assert_eq!(samples.ratio("cpu"), Some(3.0));
    }
}
