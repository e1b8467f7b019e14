//! The model of a `tokenizer.json`: its tokens and merges.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use super::byte_level;
use super::joints::Joints;
use super::json::{self, RawModel};
use super::recipe::{self, Unsupported};
use super::texts::{self, Bytes, Texts};
use crate::bpe::{Alphabet, Bpe, Characters, Lefts, Merges, NO_SYMBOL, Product, Tokens};

/// A model as it is written, and the bytes that its tokens stand for.
pub(super) struct Model<'a> {
    raw: &'a RawModel,
    alphabet: recipe::Alphabet,
    /// Of tokens that are written byte by byte.
    decoded: Option<Bytes>,
}

/// What merges in a model.
pub(super) struct Merged {
    merges: Merges,
    joints: Joints,
    /// Tokens that nothing merges into.
    unmade: Vec<usize>,
}

impl<'a> Model<'a> {
    /// Errors: what is no BPE, or one with a rule that we do not have.
    pub(super) fn new(raw: &'a RawModel, alphabet: recipe::Alphabet) -> Result<Self, Unsupported> {
        refuse_strange(raw, alphabet)?;
        let by_bytes = alphabet == recipe::Alphabet::Bytes;
        let decoded = by_bytes.then(|| decoded(&raw.vocab.texts));
        Ok(Self { raw, alphabet, decoded })
    }

    /// Takes about as long as the self-test, and half as long as [`Model::merged`].
    pub(super) fn tokens(&self) -> Tokens {
        Tokens::new(self.texts())
    }

    /// Errors: merges that we cannot do as Hugging Face does.
    pub(super) fn merged(&self) -> Result<Merged, Unsupported> {
        let (vocab, listed) = (&self.raw.vocab.texts, &self.raw.merges);
        let by_bytes = self.alphabet == recipe::Alphabet::Bytes;
        let products = products(vocab, &listed.texts)?;
        refuse_twice(&self.raw.vocab.ids, listed, &products)?;
        if !by_bytes {
            refuse_bytes(listed)?;
        }
        let (alphabet, first) = begins(vocab, by_bytes)?;
        let numbered = || (first..).zip(&products);
        if numbered().last().is_some_and(|(symbol, _)| symbol >= NO_SYMBOL) {
            return Err(Unsupported("more merges than we can number".to_owned()));
        }
        let learned = numbered().zip(listed.lefts()).map(|((symbol, &token), lefts)| Product {
            symbol,
            text: self.text(token),
            lefts: Lefts::Listed(lefts),
        });
        let merges = Merges::learn(alphabet, learned);

        let mut joints = Joints::default();
        let mut made = vec![false; vocab.len()];
        for (symbol, &token) in numbered() {
            let Some(left) = merges.left(symbol) else { continue };
            if let Some(made) = made.get_mut(token) {
                *made = true;
            }
            if !by_bytes && let Some((left, right)) = texts::parted(vocab.get(token), left) {
                joints.add(left, right);
            }
        }
        let is_symbol = |token: usize| vocab.get(token).chars().nth(1).is_none();
        let unmade = (0..).zip(made).filter(|&(token, made)| !made && !is_symbol(token));
        Ok(Merged { unmade: unmade.map(|(token, _)| token).collect(), merges, joints })
    }

    /// What [`Model::merged`] and [`Model::tokens`] make together.
    ///
    /// Errors: a token that is there twice.
    pub(super) fn bpe(
        &self,
        merged: Merged,
        mut tokens: Tokens,
    ) -> Result<(Bpe, Joints), Unsupported> {
        if tokens.len() < self.texts().count() {
            return Err(Unsupported("model.vocab has a token twice".to_owned()));
        }
        if !self.raw.ignore_merges {
            merged.unmade.iter().for_each(|&token| tokens.remove(self.text(token)));
        }
        Ok((Bpe::new(merged.merges, tokens), merged.joints))
    }

    fn texts(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let all = (0..self.raw.vocab.texts.len()).map(|token| self.text(token));
        all.filter(|text| !text.is_empty())
    }

    fn text(&self, token: usize) -> &[u8] {
        match &self.decoded {
            Some(decoded) => decoded.get(token),
            None => self.raw.vocab.texts.get(token).as_bytes(),
        }
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

/// The bytes that tokens stand for, under the same numbers; none of what stands for none.
fn decoded(vocab: &Texts) -> Bytes {
    let mut decoded = Bytes::default();
    let mut bytes = Vec::new();
    for text in vocab.iter() {
        if !byte_level::decode(text, &mut bytes) {
            bytes.clear();
        }
        decoded.push(&bytes, &[]);
    }
    decoded
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
