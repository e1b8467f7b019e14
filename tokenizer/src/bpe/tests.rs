use proptest::prelude::*;

use super::merging::WINDOW;
use super::*;

fn count(bpe: &Bpe, piece: &str) -> u64 {
    bpe.count(piece, 0, piece.len(), &mut Scratch::default())
}

/// Bytes, and what merges of `pairs` in their order make of them.
fn ranked(tokens: &[&str]) -> Bpe {
    let bytes: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
    let tokens = tokens.iter().map(|token| token.as_bytes());
    let tokens: Vec<&[u8]> = bytes.iter().map(<[u8; 1]>::as_slice).chain(tokens).collect();
    Bpe::from_ranks(tokens.into_iter())
}

#[test]
fn the_earliest_pair_merges_first_and_of_equals_the_left_one() {
    let bpe = ranked(&["bc", "ab", "aa"]);
    assert_eq!(count(&bpe, "abcd"), 3, "a bc d");
    assert_eq!(count(&bpe, "aaax"), 3, "aa a x");
}

#[test]
fn a_piece_that_is_a_token_is_one_whatever_merging_makes_of_it() {
    let bpe = ranked(&["bc", "ab", "abcab"]);
    assert_eq!(count(&bpe, "abcab"), 1);
    assert_eq!(count(&bpe, "abcabd"), 4, "a bc ab d");
}

#[test]
fn rules_make_a_token_only_where_they_lead_to_it() {
    let rules = [(1, 2, 4), (0, 1, 3), (0, 4, 5)];
    let rules = rules.map(|(left, right, merged)| Rule { left, right, merged });
    let tokens = ["a", "b", "c", "ab", "bc", "abc", "abcc"].map(str::as_bytes);
    for (ignore_merges, abcc) in [(false, 2), (true, 1)] {
        let characters = [('a', 0), ('b', 1), ('c', 2)].into_iter().collect();
        let alphabet = Alphabet::Characters { characters, bytes: Box::new([NO_SYMBOL; 256]) };
        let bpe = Bpe::from_rules(alphabet, &rules, &tokens, ignore_merges);
        let counts = ["abc", "abcc", "日"].map(|piece| count(&bpe, piece));
        assert_eq!(counts, [1, abcc, 3], "{ignore_merges}");
    }
}

proptest! {
    /// Pairs whose ranks fall from left to right: what merges at the end decides about the start.
    #[test]
    fn windows_find_what_merging_at_once_finds(
        ranks in Just((b'a'..=b'z').collect::<Vec<u8>>()).prop_shuffle(),
        doubles in prop::collection::vec("[a-z]{2,5}", 0..40),
        text in prop::collection::vec(prop_oneof!["[a-z]{1,60}", "a{1,200}", "(ab){1,90}"], 1..12),
    ) {
        let pairs: Vec<String> = ranks
            .windows(2)
            .map(|two| String::from_utf8(two.to_vec()).unwrap())
            .rev()
            .chain(doubles)
            .collect();
        let bpe = ranked(&pairs.iter().map(String::as_str).collect::<Vec<_>>());
        let text = text.concat().repeat(3);
        let chain: String = ranks.iter().map(|&byte| char::from(byte)).collect();
        for text in [text, chain.repeat(WINDOW / 10)] {
            let mut workspace = Workspace::default();
            bpe.alphabet.begin(text.as_bytes(), &mut workspace.symbols);
            let counted = merging::count(&bpe.pairs, &mut workspace);
            let at_once = merging::at_once(&bpe.pairs, &mut workspace);
            prop_assert_eq!(at_once, [counted, counted], "{:?} {}", pairs, text);
        }
    }
}
