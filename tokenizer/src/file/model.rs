//! The model of a `tokenizer.json`: its tokens and merges.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use super::byte_level;
use super::head::Vocab;
use super::joints::Joints;
use super::json::RawModel;
use super::merges;
use super::recipe::{self, Unsupported};
use super::texts::{self, Texts};
use crate::bpe::{Alphabet, Bpe, Characters, Lefts, Merges, NO_SYMBOL, Product, Tokens};

/// A model as it is written, and the bytes that its tokens stand for.
pub(super) struct Model<'a> {
    raw: &'a RawModel,
    vocab: &'a Vocab,
    listed: &'a merges::Shelf,
    alphabet: recipe::AlphabetKind,
}

/// What merges in a model, and what are tokens of it.
pub(super) struct Learned {
    tokens: Tokens,
    merges: Merges,
    joints: Joints,
    /// Of each group of merges, whether merging leads to what it makes.
    made: Vec<bool>,
}

/// How merges lead to tokens.
pub(super) struct Known {
    /// Of each group of merges, which token it makes.
    products: Vec<usize>,
    alphabet: recipe::AlphabetKind,
    /// What is a token is one, whether or not merging leads to it.
    ignore_merges: bool,
}

impl<'a> Model<'a> {
    /// Errors: what is no BPE, or one with a rule that we do not have.
    pub(super) fn new(
        raw: &'a RawModel,
        vocab: &'a Vocab,
        listed: &'a merges::Shelf,
        alphabet: recipe::AlphabetKind,
    ) -> Result<Self, Unsupported> {
        refuse_strange(raw, alphabet)?;
        Ok(Self { raw, vocab, listed, alphabet })
    }

    /// Errors: a vocabulary that does not fit its merges, merges that we cannot do as Hugging Face
    /// does.
    pub(super) fn known(&self) -> Result<Known, Unsupported> {
        let Vocab { texts, ids } = self.vocab;
        let products = products(texts, self.listed)?;
        refuse_twice(ids, self.listed, &products)?;
        if self.alphabet == recipe::AlphabetKind::Characters {
            refuse_bytes(self.listed)?;
        }
        let (alphabet, ignore_merges) = (self.alphabet, self.raw.ignore_merges);
        Ok(Known { products, alphabet, ignore_merges })
    }
}

impl Known {
    /// What is known and what is learned of `vocab` make together.
    pub(super) fn bpe(self, learned: Learned, vocab: &Vocab) -> (Bpe, Joints) {
        let Learned { mut tokens, merges, joints, made } = learned;
        let Self { products, alphabet, ignore_merges } = self;
        if !ignore_merges {
            let mut is_made = vec![false; vocab.texts.len()];
            for (token, _) in products.iter().zip(made).filter(|(_, made)| *made) {
                if let Some(is_made) = is_made.get_mut(*token) {
                    *is_made = true;
                }
            }
            let unmade = vocab.texts.iter().zip(is_made).filter(|(_, made)| !made);
            let mut bytes = Vec::new();
            for (text, _) in unmade.filter(|(text, _)| text.chars().nth(1).is_some()) {
                match alphabet {
                    recipe::AlphabetKind::Characters => tokens.remove(text.as_bytes()),
                    recipe::AlphabetKind::Bytes if byte_level::decode(text, &mut bytes) => {
                        tokens.remove(&bytes);
                    }
                    recipe::AlphabetKind::Bytes => {}
                }
            }
        }
        (Bpe::new(merges, tokens), joints)
    }
}

impl Learned {
    /// Learns `merges` as they come, in the order of their file. Takes about as long as reading
    /// them, [`Model::known`] and the self-test.
    ///
    /// Errors: tokens that are there twice, bytes without a token, more merges than we can number.
    pub(super) fn of<'a>(
        vocab: &Vocab,
        alphabet: recipe::AlphabetKind,
        merges: impl Iterator<Item = &'a merges::MergeGroups>,
    ) -> Result<Self, Unsupported> {
        let by_bytes = alphabet == recipe::AlphabetKind::Bytes;
        let (alphabet, first) = begins(&vocab.texts, by_bytes)?;
        let mut seen = Vec::new();
        let groups = merges
            .inspect(|merges| seen.push(*merges))
            .flat_map(|merges| merges.bytes(by_bytes).zip(merges.lefts()));
        let mut symbols = first..;
        let products = groups.zip(symbols.by_ref()).map(|((text, lefts), symbol)| Product {
            symbol,
            text,
            lefts: Lefts::Listed(lefts),
        });
        // One of a token's merges leads to it.
        let merges = Merges::learn(alphabet, products, vocab.texts.len());
        let mut joints = Joints::default();
        let groups = seen.iter().flat_map(|merges| merges.texts.iter());
        let made = (first..).zip(groups).map(|(symbol, text)| {
            let left = merges.left(symbol);
            if !by_bytes
                && let Some(left) = left
                && let Some((left, right)) = texts::parted(text, left)
            {
                joints.add(left, right);
            }
            left.is_some()
        });
        let made: Vec<_> = made.collect();
        if first as usize + made.len() >= NO_SYMBOL as usize {
            return Err(Unsupported("more merges than we can number".to_owned()));
        }
        Ok(Self { tokens: tokens(&vocab.texts, by_bytes)?, merges, joints, made })
    }
}

/// Errors: one that is there twice.
fn tokens(texts: &Texts, by_bytes: bool) -> Result<Tokens, Unsupported> {
    let decoded = by_bytes.then(|| byte_level::decode_all(texts));
    let all = (0..texts.len()).map(|token| match &decoded {
        Some(decoded) => decoded.get(token),
        None => texts.get(token).as_bytes(),
    });
    let all = all.filter(|text| !text.is_empty());
    let tokens = Tokens::new(all.clone());
    if tokens.len() < all.count() {
        return Err(Unsupported("model.vocab has a token twice".to_owned()));
    }
    Ok(tokens)
}

/// How far ahead of the last one a token is looked for.
const AHEAD: usize = 512;

/// Which token each group of merges makes.
///
/// Errors: one that makes none.
fn products(vocab: &Texts, merges: &merges::Shelf) -> Result<Vec<usize>, Unsupported> {
    let (mut products, mut far) = (Vec::new(), Vec::new());
    // Most files list tokens, and what makes them, in the same order.
    let mut last = 0;
    for (group, text) in merges.texts().enumerate() {
        if let Some(found) = vocab.find(text, last..vocab.len().min(last + AHEAD)) {
            last = found;
        } else {
            far.push((group, text));
        }
        products.push(last);
    }
    let mut found: HashMap<&str, Option<usize>, FixedState> =
        far.iter().map(|(_, text)| (*text, None)).collect();
    for (token, text) in vocab.iter().enumerate().filter(|_| !far.is_empty()) {
        if let Some(found) = found.get_mut(text) {
            *found = Some(token);
        }
    }
    for (group, text) in far {
        let unknown = || Unsupported(format!("a merge that makes {text:?}, which is no token"));
        let token = found.get(text).copied().flatten().ok_or_else(unknown)?;
        if let Some(product) = products.get_mut(group) {
            *product = token;
        }
    }
    Ok(products)
}

/// Errors: tokens of the same number, merges that are there twice.
fn refuse_twice(
    ids: &[u32],
    merges: &merges::Shelf,
    products: &[usize],
) -> Result<(), Unsupported> {
    let mut ids = ids.to_vec();
    taximeter_collections::sort(&mut ids);
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
    for (&token, (_, lefts)) in products.iter().zip(merges.groups()) {
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
fn refuse_bytes(merges: &merges::Shelf) -> Result<(), Unsupported> {
    let names_byte = |text: &str| text.len() == "<0x00>".len() && text.starts_with("<0x");
    let may_name = |text: &str| text.len() >= "<0x00>".len() && text.as_bytes().contains(&b'<');
    for (text, lefts) in merges.groups().filter(|(text, _)| may_name(text)) {
        let mut parts = lefts.iter().filter_map(|&left| texts::parted(text, left));
        if names_byte(text) || parts.any(|(left, right)| names_byte(left) || names_byte(right)) {
            return Err(Unsupported(format!("a merge to {text:?} of a byte")));
        }
    }
    Ok(())
}

/// Errors: rules that we do not have.
fn refuse_strange(raw: &RawModel, alphabet: recipe::AlphabetKind) -> Result<(), Unsupported> {
    let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let characters = alphabet == recipe::AlphabetKind::Characters;
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
