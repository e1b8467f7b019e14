//! The model of a `tokenizer.json`: its tokens and merges.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use super::byte_level;
use super::joints::Joints;
use super::json::{self, RawModel, Vocab};
use super::recipe::{self, Unsupported};
use super::texts::{self, Bytes, Texts};
use crate::bpe::{Alphabet, Bpe, Characters, Lefts, Merges, NO_SYMBOL, Product, Tokens};

/// A model as it is written, and the bytes that its tokens stand for.
pub(super) struct Model<'a> {
    raw: &'a RawModel,
    vocab: &'a Vocab,
    alphabet: recipe::Alphabet,
}

/// What merges in a model.
pub(super) struct Merged {
    merges: Merges,
    joints: Joints,
    /// Of each group of merges, whether merging leads to what it makes.
    made: Vec<bool>,
}

/// What of a model are tokens.
pub(super) struct Known {
    tokens: Tokens,
    /// Of each group of merges, which token it makes.
    products: Vec<usize>,
}

impl<'a> Model<'a> {
    /// Errors: what is no BPE, or one with a rule that we do not have.
    pub(super) fn new(
        raw: &'a RawModel,
        vocab: &'a Vocab,
        alphabet: recipe::Alphabet,
    ) -> Result<Self, Unsupported> {
        refuse_strange(raw, alphabet)?;
        Ok(Self { raw, vocab, alphabet })
    }

    /// Errors: a vocabulary that does not fit its merges, merges that we cannot do as Hugging Face
    /// does.
    pub(super) fn known(&self) -> Result<Known, Unsupported> {
        let (Vocab { texts, ids }, listed) = (self.vocab, &self.raw.merges);
        let products = products(texts, &listed.texts)?;
        refuse_twice(ids, listed, &products)?;
        if self.alphabet == recipe::Alphabet::Characters {
            refuse_bytes(listed)?;
        }
        let decoded = self.decoded(texts);
        let all = (0..texts.len()).map(|token| text(texts, decoded.as_ref(), token));
        let all = all.filter(|text| !text.is_empty());
        let tokens = Tokens::new(all.clone());
        if tokens.len() < all.count() {
            return Err(Unsupported("model.vocab has a token twice".to_owned()));
        }
        Ok(Known { tokens, products })
    }

    /// Takes about as long as the self-test and [`Model::known`].
    ///
    /// Errors: bytes without a token, more merges than we can number.
    pub(super) fn merged(&self) -> Result<Merged, Unsupported> {
        let json::Merges { texts, .. } = &self.raw.merges;
        let by_bytes = self.alphabet == recipe::Alphabet::Bytes;
        let (alphabet, first) = begins(&self.vocab.texts, by_bytes)?;
        let numbered = || (first..).zip(0..texts.len());
        if numbered().last().is_some_and(|(symbol, _)| symbol >= NO_SYMBOL) {
            return Err(Unsupported("more merges than we can number".to_owned()));
        }
        let decoded = self.decoded(texts);
        let products = numbered().zip(self.raw.merges.lefts());
        let merges = Merges::learn(
            alphabet,
            products.map(|((symbol, group), lefts)| Product {
                symbol,
                text: text(texts, decoded.as_ref(), group),
                lefts: Lefts::Listed(lefts),
            }),
        );
        let mut joints = Joints::default();
        let made = numbered().map(|(symbol, group)| {
            let left = merges.left(symbol);
            if !by_bytes
                && let Some(left) = left
                && let Some((left, right)) = texts::parted(texts.get(group), left)
            {
                joints.add(left, right);
            }
            left.is_some()
        });
        let made = made.collect();
        Ok(Merged { merges, joints, made })
    }

    /// What [`Model::merged`] and [`Model::known`] make together.
    pub(super) fn bpe(&self, merged: Merged, known: Known) -> (Bpe, Joints) {
        let (Merged { merges, joints, made }, Known { mut tokens, products }) = (merged, known);
        if !self.raw.ignore_merges {
            let mut is_made = vec![false; self.vocab.texts.len()];
            for (token, _) in products.iter().zip(made).filter(|(_, made)| *made) {
                if let Some(is_made) = is_made.get_mut(*token) {
                    *is_made = true;
                }
            }
            let unmade = self.vocab.texts.iter().zip(is_made).filter(|(_, made)| !made);
            let mut bytes = Vec::new();
            for (text, _) in unmade.filter(|(text, _)| text.chars().nth(1).is_some()) {
                match self.alphabet {
                    recipe::Alphabet::Characters => tokens.remove(text.as_bytes()),
                    recipe::Alphabet::Bytes if byte_level::decode(text, &mut bytes) => {
                        tokens.remove(&bytes);
                    }
                    recipe::Alphabet::Bytes => {}
                }
            }
        }
        (Bpe::new(merges, tokens), joints)
    }

    /// The bytes that texts stand for which are written byte by byte; none of what stands for none.
    fn decoded(&self, texts: &Texts) -> Option<Bytes> {
        let mut bytes = Vec::new();
        let mut decoded = (self.alphabet == recipe::Alphabet::Bytes).then(Bytes::default);
        if let Some(decoded) = &mut decoded {
            for text in texts.iter() {
                if !byte_level::decode(text, &mut bytes) {
                    bytes.clear();
                }
                decoded.push(&bytes, &[]);
            }
        }
        decoded
    }
}

/// The bytes of a text, which are others where texts are decoded.
fn text<'t>(texts: &'t Texts, decoded: Option<&'t Bytes>, number: usize) -> &'t [u8] {
    match decoded {
        Some(decoded) => decoded.get(number),
        None => texts.get(number).as_bytes(),
    }
}

/// How far ahead of the last one a token is looked for.
const AHEAD: usize = 512;

/// Which token each group of merges makes.
///
/// Errors: one that makes none.
fn products(vocab: &Texts, made: &Texts) -> Result<Vec<usize>, Unsupported> {
    // Most files list tokens, and what makes them, in the same order.
    let mut last = 0;
    let near = made.iter().map(|text| {
        let found = vocab.find(text, last..vocab.len().min(last + AHEAD))?;
        last = found;
        Some(found)
    });
    let mut products: Vec<Option<usize>> = near.collect();
    let far = made.iter().zip(&products).filter(|(_, found)| found.is_none());
    let mut far: HashMap<&str, usize, FixedState> =
        far.map(|(text, _)| (text, usize::MAX)).collect();
    for (token, text) in vocab.iter().enumerate() {
        if let Some(found) = far.get_mut(text) {
            *found = token;
        }
    }
    for (text, product) in made.iter().zip(&mut products) {
        if product.is_none() {
            *product = far.get(text).copied().filter(|token| *token < vocab.len());
        }
    }
    let unknown =
        |text: &str| Unsupported(format!("a merge that makes {:?}, which is no token", text));
    let found = made.iter().zip(products);
    found.map(|(text, product)| product.ok_or_else(|| unknown(text))).collect()
}

/// Errors: tokens of the same number, merges that are there twice.
fn refuse_twice(ids: &[u32], merges: &json::Merges, products: &[usize]) -> Result<(), Unsupported> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    if ids.array_windows().any(|[one, other]| one == other) {
        return Err(Unsupported("model.vocab has a number twice".to_owned()));
    }
    // Two groups of the same token may have the same merge.
    let mut groups = vec![0_u8; ids.len()];
    for &token in products {
        if let Some(groups) = groups.get_mut(token) {
            *groups = groups.saturating_add(1);
        }
    }
    let mut known: HashSet<(usize, u32), FixedState> = HashSet::default();
    for (&token, lefts) in products.iter().zip(merges.lefts()) {
        let several = groups.get(token).is_some_and(|groups| *groups > 1);
        if several && lefts.iter().any(|left| !known.insert((token, *left))) {
            return Err(Unsupported("model.merges has a merge twice".to_owned()));
        }
    }
    Ok(())
}

/// What pieces begin as, and the first symbol that is none of these.
///
/// Errors: bytes that have no token.
fn begins(vocab: &Texts, by_bytes: bool) -> Result<(Alphabet, u32), Unsupported> {
    let name = |byte: u8| match by_bytes {
        true => byte_level::letter(byte).to_string(),
        false => format!("<0x{byte:02X}>"),
    };
    let mut missing: HashSet<String, FixedState> = (0..=u8::MAX).map(name).collect();
    for text in vocab.iter().filter(|text| text.len() <= "<0x00>".len()) {
        missing.remove(text);
    }
    if let Some(name) = missing.iter().next() {
        return Err(Unsupported(format!("no token {name}")));
    }
    let mut bytes = Box::new([0; 256]);
    bytes.iter_mut().zip(0..).for_each(|(symbol, byte)| *symbol = byte);
    if by_bytes {
        return Ok((Alphabet::Bytes(bytes), 256));
    }
    let single = |text: &str| {
        let mut chars = text.chars();
        chars.next().filter(|_| chars.next().is_none())
    };
    let singles = vocab.iter().filter(|text| text.len() <= 4).filter_map(single);
    let characters: Characters = singles.zip(256..).collect();
    let first = 256 + u32::try_from(characters.len()).unwrap_or(NO_SYMBOL);
    Ok((Alphabet::Characters { characters, bytes }, first))
}

/// Errors: a merge of tokens that stand for single bytes.
fn refuse_bytes(merges: &json::Merges) -> Result<(), Unsupported> {
    let names_byte = |text: &str| text.len() == "<0x00>".len() && text.starts_with("<0x");
    let groups = merges.texts.iter().zip(merges.lefts());
    for (text, lefts) in groups.filter(|(text, _)| text.as_bytes().contains(&b'<')) {
        let mut parts = lefts.iter().filter_map(|&left| texts::parted(text, left));
        if names_byte(text) || parts.any(|(left, right)| names_byte(left) || names_byte(right)) {
            return Err(Unsupported(format!("a merge to {text:?} of a byte")));
        }
    }
    Ok(())
}

/// Errors: rules that we do not have.
fn refuse_strange(raw: &RawModel, alphabet: recipe::Alphabet) -> Result<(), Unsupported> {
    let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let characters = alphabet == recipe::Alphabet::Characters;
    let strange = if raw.kind.as_ref().is_some_and(|kind| kind != "BPE") {
        "model.type"
    } else if raw.dropout.is_some_and(|dropout| dropout != 0.0) {
        "model.dropout"
    } else if given(&raw.continuing_subword_prefix) {
        "model.continuing_subword_prefix"
    } else if given(&raw.end_of_word_suffix) {
        "model.end_of_word_suffix"
    } else if characters && !raw.byte_fallback {
        "a model of characters without byte_fallback"
    } else if characters && raw.ignore_merges {
        "model.ignore_merges with characters"
    } else {
        return Ok(());
    };
    Err(Unsupported(strange.to_owned()))
}
