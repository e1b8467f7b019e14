//! Tests of the scanners against the published regexes.

use fancy_regex::Regex;
use proptest::prelude::*;

use super::*;

/// The pieces that a file's regexes give, each splitting what the one before it left.
struct Oracle {
    pattern: Pattern,
    regexes: Vec<Regex>,
}

impl Oracle {
    fn new(pattern: Pattern, regexes: &[&str]) -> Self {
        let regexes = regexes.iter().map(|regex| Regex::new(regex).unwrap()).collect();
        Self { pattern, regexes }
    }

    fn all() -> Vec<Self> {
        let mut all: Vec<Self> =
            REGEXES.iter().map(|&(regex, pattern)| Self::new(pattern, &[regex])).collect();
        all.push(Self::new(
            Pattern::DeepSeekV3,
            &[
                r"\p{N}{1,3}",
                r"[一-龥぀-ゟ゠-ヿ]+",
                r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##,
            ],
        ));
        all
    }

    fn pieces<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut pieces = vec![text];
        for regex in &self.regexes {
            pieces = pieces.into_iter().flat_map(|piece| split(regex, piece)).collect();
        }
        pieces
    }

    fn check(&self, text: &str) {
        let pieces: Vec<&str> = self.pattern.pieces(text).collect();
        assert_eq!(pieces, self.pieces(text), "{:?} of {text:?}", self.pattern);
    }
}

/// What the regex finds, and what is between.
fn split<'t>(regex: &Regex, text: &'t str) -> Vec<&'t str> {
    let mut pieces = Vec::new();
    let mut at = 0;
    for found in regex.find_iter(text) {
        let found = found.unwrap();
        pieces.push(&text[at..found.start()]);
        pieces.push(found.as_str());
        at = found.end();
    }
    pieces.push(&text[at..]);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

thread_local! {
    static ORACLES: Vec<Oracle> = Oracle::all();
}

fn check_all(text: &str) {
    ORACLES.with(|oracles| oracles.iter().for_each(|oracle| oracle.check(text)));
}

/// One or two characters of every class that any pattern asks for, and what they single out.
const ATOMS: &[&str] = &[
    "a", "s", "Z", "S", "T", "ſ", "'", "l", "e", "v", " ", "\t", "\r", "\n", "\u{a0}", "\u{85}",
    "\u{2028}", "1", "٣", "Ⅷ", "½", "!", "/", "-", "é", "\u{301}", "\u{20dd}", "日", "。", "か",
    "ー", "・", "\u{3099}", "\u{3040}", "゛", "々", "龦", "한", "ǅ", "ʰ", "ß", "Ä", "🙂", "€",
    "\u{200d}", "\0", "\u{fffd}", "\u{e000}", "ि", "क", "ªº", "K",
];

#[test]
fn every_two_and_three_atoms_are_split_as_by_the_regexes() {
    for first in ATOMS {
        for second in ATOMS {
            check_all(&format!("{first}{second}"));
            for third in ["a", "B", " ", "\n", "1", "!", "\u{301}", "日", "\0"] {
                check_all(&format!("{first}{second}{third}"));
                check_all(&format!("{third}{first}{second}"));
            }
        }
    }
}

/// That every character has the right class is tested with the classes.
#[test]
fn characters_at_both_ends_of_a_range_are_split_as_by_the_regexes() {
    let chars: Vec<char> = ('\0'..=char::MAX).collect();
    let ends = chars.windows(2).filter(|two| Class::of(two[0]) != Class::of(two[1])).flatten();
    let ends: Vec<char> = ends.copied().collect();
    for some in ends.chunks(100) {
        check_all(
            &some.iter().flat_map(|&c| ['a', c, ' ', c, 'B', c, '\n', c]).collect::<String>(),
        );
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        8 => prop::sample::select(ATOMS).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(atom, 0..40).prop_map(|atoms| atoms.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_text_is_split_as_by_the_regexes(text in any_text()) {
        check_all(&text);
    }

    #[test]
    fn behind_the_last_boundary_pieces_are_those_of_the_whole(text in any_text(), more in any_text()) {
        for oracle in all_patterns() {
            let Some(at) = oracle.last_boundary(&text) else { continue };
            let whole = text.clone() + &more;
            let (head, tail) = whole.split_at(at);
            let parts: Vec<&str> = oracle.pieces(head).chain(oracle.pieces(tail)).collect();
            prop_assert_eq!(parts, oracle.pieces(&whole).collect::<Vec<_>>(), "{:?}", oracle);
        }
    }
}

#[test]
fn prose_and_code_have_boundaries_throughout() {
    for pattern in all_patterns() {
        for text in ["The fare is", "f(x", "名は。", "a1 ", "x = 12;"] {
            assert!(pattern.last_boundary(text).is_some(), "{pattern:?} {text:?}");
        }
    }
}

fn all_patterns() -> impl Iterator<Item = Pattern> {
    REGEXES.iter().map(|&(_, pattern)| pattern).chain([Pattern::DeepSeekV3])
}
