//! Reads the Prometheus text format 0.0.4 of `/metrics`.

use std::borrow::Cow;

/// One sample with its labels.
#[derive(Debug, PartialEq)]
pub(super) struct Series<'a> {
    /// Its name, with a suffix such as `_total` or `_bucket`.
    pub(super) name: &'a str,
    labels: Vec<(&'a str, Cow<'a, str>)>,
    pub(super) value: f64,
}

impl Series<'_> {
    /// The value of a label, if the sample has it.
    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| *known == key).map(|(_, value)| &**value)
    }
}

/// All samples of a text, in order. A line that cannot be read is skipped.
pub(super) fn series(text: &str) -> impl Iterator<Item = Series<'_>> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(read)
}

fn read(line: &str) -> Option<Series<'_>> {
    let (name, mut rest) = line.split_at(line.find(['{', ' '])?);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (key, behind) = rest.split_once("=\"")?;
            let (value, behind) = quoted(behind)?;
            labels.push((key.trim_start_matches([',', ' ']), value));
            rest = behind;
        }
        rest = rest.strip_prefix('}')?;
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Series { name, labels, value })
}

/// The unescaped text up to the next quotation mark, and the rest after it.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut unescaped: Option<String> = None;
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                let (value, rest) = (text.get(..at)?, text.get(at + 1..)?);
                return Some((unescaped.map_or(Cow::Borrowed(value), Cow::Owned), rest));
            }
            '\\' => {
                let (_, escaped) = characters.next()?;
                let so_far = text.get(..at)?;
                let character = if escaped == 'n' { '\n' } else { escaped };
                unescaped.get_or_insert_with(|| so_far.to_owned()).push(character);
            }
            _ => {
                if let Some(unescaped) = &mut unescaped {
                    unescaped.push(character);
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_they_were_before_they_were_escaped() {
        let text = "# HELP a_total A.\n# TYPE a_total counter\n\
                    a_total{b=\"x\",c=\"q\\\"\\\\{}, =\\n\u{4e16}\"} 3\na_total 2.5\n";
        let all: Vec<_> = series(text).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].label("b"), Some("x"));
        assert_eq!(all[0].label("c"), Some("q\"\\{}, =\n\u{4e16}"));
        assert_eq!(all[0].label("d"), None);
        assert_eq!((all[0].value, all[1].name, all[1].value), (3.0, "a_total", 2.5));
    }

    #[test]
    fn what_is_no_series_is_left_out() {
        let text =
            "\n{\na\na{\na{b=\"c\na{b=\"\\\na{b=\"c\"}\na{b=\"c\"} x\nlast 1 1700000000000\n";
        let all: Vec<_> = series(text).collect();
        assert_eq!(all, [Series { name: "last", labels: Vec::new(), value: 1.0 }]);
    }
}
