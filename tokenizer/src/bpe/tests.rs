//! Tests of byte-pair encoding.

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

/// Characters from `a`, and what merges of these make of them: product and symbols of its left part.
fn listed(products: &[(&str, &[u32])]) -> Merges {
    let characters = ('a'..='z').zip(0..).collect();
    let alphabet = Alphabet::Characters { characters, bytes: Box::new([NO_SYMBOL; 256]) };
    let count = products.len();
    let products = (100..).zip(products);
    let products = products.map(|(symbol, (text, lefts))| Product {
        symbol,
        text: text.as_bytes(),
        lefts: Lefts::Listed(lefts),
    });
    Merges::learn(alphabet, products, count)
}

fn lefts(merges: &Merges, products: usize) -> Vec<Option<u32>> {
    (100..).take(products).map(|product| merges.left(product)).collect()
}

#[test]
fn merges_make_a_token_only_where_they_lead_to_it() {
    let merges =
        listed(&[("bc", &[1]), ("ab", &[1]), ("abc", &[1, 2]), ("abd", &[1]), ("ab", &[1])]);
    assert_eq!(lefts(&merges, 5), [Some(1), Some(1), Some(1), None, None]);
    for (tokens, abd) in [(&["abc"][..], 2), (&["abc", "abd"], 1)] {
        let bpe = Bpe::new(
            listed(&[("bc", &[1]), ("ab", &[1]), ("abc", &[1, 2]), ("abd", &[1])]),
            Tokens::new(tokens.iter().map(|token| token.as_bytes())),
        );
        let counts = ["abc", "abd", "日"].map(|piece| count(&bpe, piece));
        assert_eq!(counts, [1, abd, 3], "{tokens:?}");
    }
}

#[test]
fn a_token_that_was_removed_hides_no_other() {
    let all: Vec<String> =
        (0..1_000).map(|number| "x".repeat(number % 20) + &number.to_string()).collect();
    let mut tokens = Tokens::new(all.iter().map(String::as_bytes));
    all.iter().step_by(3).for_each(|token| tokens.remove(token.as_bytes()));
    tokens.remove(b"y");
    assert_eq!(tokens.len(), 666);
    for (at, token) in all.iter().enumerate() {
        assert_eq!(tokens.contains(token.as_bytes(), 0, token.len()), at % 3 != 0, "{token}");
    }
}

#[test]
fn a_token_that_comes_before_its_parts_is_made_once_these_are() {
    let merges = listed(&[
        ("aaaa", &[1, 2, 3]),
        ("aaa", &[1, 2]),
        ("xy", &[1]),
        ("xyaaa", &[2]),
        ("aa", &[1]),
        ("xyaa", &[2]),
    ]);
    let made = [Some(3), Some(2), Some(1), Some(2), Some(1), Some(2)];
    assert_eq!(lefts(&merges, 6), made);
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
