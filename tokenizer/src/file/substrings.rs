//! Which tokens occur in a text.

/// All that occurs in a text.
pub(super) struct Substrings<'a> {
    text: &'a [u8],
    /// Where the text's ends begin, in the order of the ends: a suffix array.
    suffixes: Vec<usize>,
}

impl<'a> Substrings<'a> {
    /// Sorts the ends of `text`: for texts of some KiB.
    pub(super) fn of(text: &'a [u8]) -> Self {
        let mut suffixes: Vec<usize> = (0..text.len()).collect();
        suffixes.sort_unstable_by_key(|&at| text.get(at..));
        Self { text, suffixes }
    }

    /// Whether `part` occurs in the text.
    pub(super) fn contain(&self, part: &[u8]) -> bool {
        let suffix = |at: usize| self.text.get(at..).unwrap_or_default();
        let index = self.suffixes.partition_point(|&at| suffix(at) < part);
        self.suffixes.get(index).is_some_and(|&at| suffix(at).starts_with(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_occurs_is_found_and_nothing_else() {
        let text = b"banana bandana";
        let substrings = Substrings::of(text);
        for start in 0..text.len() {
            for end in start..=text.len() {
                assert!(substrings.contain(&text[start..end]));
            }
        }
        for part in ["nab", "bananas", "x", "dana ", "anan b"] {
            assert!(!substrings.contain(part.as_bytes()), "{part}");
        }
    }
}
