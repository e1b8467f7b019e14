//! Finds the tokens that occur in a text.

/// All that occurs in a text.
pub(super) struct Substrings<'a> {
    text: &'a [u8],
    /// Where the text's ends begin, in the order of the ends: a suffix array.
    suffixes: Vec<usize>,
    /// Whether three bytes may occur side by side, by a number made of them: most tokens are not
    /// looked for any further.
    triples: Vec<bool>,
}

impl<'a> Substrings<'a> {
    /// Sorts the ends of `text`: for texts of some KiB.
    pub(super) fn of(text: &'a [u8]) -> Self {
        let mut suffixes: Vec<usize> = (0..text.len()).collect();
        suffixes.sort_unstable_by_key(|&at| text.get(at..));
        let mut triples = vec![false; 1 << 16];
        for triple in text.array_windows() {
            if let Some(occurs) = triples.get_mut(number(*triple)) {
                *occurs = true;
            }
        }
        Self { text, suffixes, triples }
    }

    /// Whether `part` occurs in the text.
    pub(super) fn contain(&self, part: &[u8]) -> bool {
        let may_occur = |triple| self.triples.get(number(triple)).is_some_and(|occurs| *occurs);
        if !part.array_windows().all(|triple| may_occur(*triple)) {
            return false;
        }
        let suffix = |at: usize| self.text.get(at..).unwrap_or_default();
        let index = self.suffixes.partition_point(|&at| suffix(at) < part);
        self.suffixes.get(index).is_some_and(|&at| suffix(at).starts_with(part))
    }
}

/// Below 65,536; others may have the same.
fn number([first, second, third]: [u8; 3]) -> usize {
    let both = usize::from(first) << 8 | usize::from(second);
    (both * 5 + usize::from(third) * 0x3d) & 0xffff
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
