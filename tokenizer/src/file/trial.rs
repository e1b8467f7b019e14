//! Tests a vocabulary when it is loaded: whether this crate counts texts of many kinds as Hugging
//! Face's library does.

use super::hugging_face::HuggingFace;
use super::json::AddedToken;
use super::ours::Ours;
use super::recipe::Unsupported;

/// Languages, programs, numbers, signs; and what no editor keeps: blanks of all kinds, controls,
/// characters that can be composed.
const TEXT: &str = concat!(
    include_str!("trial.txt"),
    "Blanks: a b  c   d    e     f      g       h        i                j",
    "                               k                                 l  \n   \n",
    "Tabs:\ta\t\tb\t\t\tc\t\t\t\td\t\t\t\t\t\t\t\t\te \t f\t \tg\n\t\n \t \n",
    "Newlines:\n\n\n\n\na\n b\n  c\n   \n d \n\n e  \n\n   f\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
    "CRLF\r\nline\r\n\r\nline \r\n  \r\n\r\r\nCR\ralone\r\rend\n\r\n\rtab\x0b\x0cfeed\n",
    "Separators:\u{a0}a\u{1680}b\u{2003}c\u{2009}d\u{2028}e\u{2029}f\u{202f}g\u{205f}h\u{3000}i",
    "\u{200b}j\u{200c}k\u{200d}l\u{2060}m\u{feff}n\u{85}o\u{ad}p\u{180e}q\n",
    "Controls:\0\u{1}\u{2}\u{7}\u{8}\u{1b}[0m\u{7f}\u{80}\u{9f}end \u{2581}\u{2581}a \u{2581}b\n",
    "Composed: e\u{301} a\u{300}\u{323} n\u{303} A\u{30a} \u{212b} \u{2126} \u{212a} \u{1ec7} \u{344}",
    " \u{1100}\u{1161}\u{11a8} \u{ac00}\u{11a8} \u{304b}\u{3099} \u{958} \u{2adc} \u{1d15e}",
    " q\u{323}\u{307} s\u{307}\u{323} \u{301}\u{301} ,\u{301}d\u{30b} 1\u{301}2 \u{e33}\u{e48}\n",
    "Odd: \u{378} \u{e000} \u{f0000} \u{fffd} \u{fdd0} \u{10ffff} \u{17f} '\u{17f} \u{fb01} \u{130}\n",
    "No end: blanks behind   \n  \n\t end'",
);

/// Added tokens that are tried; some vocabularies have thousands that are alike.
const ADDED_MAX: usize = 64;

/// The texts that are counted: the whole, its paragraphs and lines, and added tokens within a text.
pub(super) fn texts(added: &[AddedToken]) -> Vec<String> {
    let whole = std::iter::once(TEXT);
    let parts = whole.chain(TEXT.split("\n\n")).chain(TEXT.split_inclusive('\n'));
    // From both ends: the first and the last are rarely of the same kind.
    let (first, last) = (added.iter(), added.iter().rev());
    let tokens = first.zip(last).flat_map(|(first, last)| [first, last]).take(ADDED_MAX);
    let tokens = tokens.map(|AddedToken { content, .. }| {
        format!("{content} a{content}{content} b \n{content}B{content}  c")
    });
    parts.map(str::to_owned).chain(tokens).collect()
}

/// All of `texts`, one behind the other, but for those that are in what comes before them.
pub(super) fn joined<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut joined = String::new();
    for text in texts {
        if !joined.contains(text) {
            joined.push_str(text);
        }
    }
    joined
}

/// What Hugging Face's library counts: of each text, without special tokens and with them.
pub(super) type Expected = Vec<[Option<u64>; 2]>;

/// Counts `texts` by Hugging Face's library, of which `json` is the vocabulary.
///
/// Errors: a vocabulary that the library does not read.
pub(super) fn expected(texts: &[String], json: &[u8]) -> Result<Expected, Unsupported> {
    let theirs = HuggingFace::from_json(json).map_err(Unsupported)?;
    let counts = |text: &String| [false, true].map(|specials| theirs.count(text, specials));
    Ok(texts.iter().map(counts).collect())
}

/// Errors: a text that we count otherwise.
pub(super) fn compare(
    ours: &Ours,
    texts: &[String],
    expected: &Expected,
) -> Result<(), Unsupported> {
    for (text, expected) in texts.iter().zip(expected) {
        for (specials, expected) in [false, true].into_iter().zip(*expected) {
            let counted = ours.count(text, specials, u64::MAX);
            if expected != Some(counted) {
                let start: String = text.chars().take(40).collect();
                return Err(Unsupported(format!(
                    "self-test: {start:?} has {counted} tokens, but should have {expected:?}"
                )));
            }
        }
    }
    Ok(())
}
