//! The merges of a `tokenizer.json`, handed out while they are read: a file has half a million, and
//! learning them takes longer than reading them.

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;
use std::sync::mpsc::Sender;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, SeqAccess, Visitor};

use super::borrowed::Raw;
use super::byte_level;
use super::texts::{Bytes, Texts};

/// Groups of merges that are handed out together.
const GROUPS: usize = 8_192;
/// Fewest bytes that a group takes in a file: `"a b",`.
const GROUP_BYTES_MIN: usize = 6;

/// Pairs of tokens, the one to be merged first before the others; those that stand side by side and
/// make the same are one group.
#[derive(Debug, Default)]
pub(super) struct Merges {
    /// What each group makes.
    pub(super) texts: Texts,
    lefts: Lefts,
    decoded: OnceLock<Bytes>,
}

#[derive(Debug, Default)]
struct Lefts {
    /// Of all pairs, characters of the left token.
    all: Vec<u32>,
    /// Where each group's end.
    ends: Vec<usize>,
}

/// All merges of a file, in its order.
#[derive(Debug)]
pub(super) struct Shelf(Box<[OnceLock<Merges>]>);

/// Puts merges on a shelf, and tells who waits for them.
pub(super) struct Shelving<'a> {
    shelf: &'a Shelf,
    /// Used as far as somebody waits.
    told: Sender<&'a Merges>,
    next: usize,
}

impl Shelf {
    /// Room for the merges of a file of so many bytes.
    pub(super) fn for_file(bytes: usize) -> Self {
        let slots = bytes.div_ceil(GROUPS * GROUP_BYTES_MIN) + 1;
        Self((0..slots).map(|_| OnceLock::new()).collect())
    }

    /// What is there.
    pub(super) fn all(&self) -> impl Iterator<Item = &Merges> + Clone {
        self.0.iter().map_while(OnceLock::get)
    }

    /// What each group makes.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> + Clone {
        self.all().flat_map(|merges| merges.texts.iter())
    }

    /// What each group makes, and by how many characters of it that is parted.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&str, &[u32])> + Clone {
        self.all().flat_map(|merges| merges.texts.iter().zip(merges.lefts()))
    }
}

impl<'a> Shelving<'a> {
    pub(super) const fn new(shelf: &'a Shelf, told: Sender<&'a Merges>) -> Self {
        Self { shelf, told, next: 0 }
    }

    fn put(&mut self, texts: Bytes, lefts: Lefts) -> Result<(), &'static str> {
        let texts = Texts::try_from(texts).map_err(|_| "a merge that is no text")?;
        let slot = self.shelf.0.get(self.next).ok_or("more merges than its bytes can hold")?;
        let merges = slot.get_or_init(|| Merges { texts, lefts, decoded: OnceLock::new() });
        self.next += 1;
        // Who has given up says so itself.
        let _ = self.told.send(merges);
        Ok(())
    }
}

impl Merges {
    /// By how many characters of it each group's text is parted.
    pub(super) fn lefts(&self) -> impl Iterator<Item = &[u32]> + Clone {
        let Lefts { all, ends } = &self.lefts;
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(ends).map(|(start, &end)| all.get(start..end).unwrap_or_default())
    }

    /// The texts as bytes: where they are written byte by byte, these.
    pub(super) fn bytes(&self, written_by_byte: bool) -> impl Iterator<Item = &[u8]> {
        let decoded = written_by_byte
            .then(|| self.decoded.get_or_init(|| byte_level::decode_all(&self.texts)));
        (0..self.texts.len()).map(move |group| match decoded {
            Some(decoded) => decoded.get(group),
            None => self.texts.get(group).as_bytes(),
        })
    }
}

impl<'de> DeserializeSeed<'de> for Shelving<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, merges: D) -> Result<(), D::Error> {
        merges.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Shelving<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of merges")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        // Checked to be text as a whole, since there are so many.
        let (mut made, mut lefts) = (Bytes::default(), Lefts::default());
        while let Some(Pair(left, right)) = seq.next_element()? {
            if made.last().strip_prefix(&*left) != Some(&*right) || lefts.ends.is_empty() {
                if lefts.ends.len() == GROUPS {
                    let (made, lefts) = (std::mem::take(&mut made), std::mem::take(&mut lefts));
                    self.put(made, lefts).map_err(de::Error::custom)?;
                }
                made.push(&left, &right);
                lefts.ends.push(lefts.all.len());
            }
            let characters = left.iter().filter(|byte| !is_continuation(**byte)).count();
            lefts.all.push(u32::try_from(characters).unwrap_or(u32::MAX));
            if let Some(end) = lefts.ends.last_mut() {
                *end = lefts.all.len();
            }
        }
        self.put(made, lefts).map_err(de::Error::custom)
    }
}

/// Whether a byte of UTF-8 belongs to the character before it.
const fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// A merge: `"a b"`, or `["a", "b"]` in younger files, whose tokens may hold blanks.
struct Pair<'a>(Cow<'a, [u8]>, Cow<'a, [u8]>);

impl<'de: 'a, 'a> Deserialize<'de> for Pair<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Pair<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a merge: two tokens")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                let (left, right) = halves(text)?;
                Ok(Pair(Cow::Borrowed(left.as_bytes()), Cow::Borrowed(right.as_bytes())))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                let (left, right) = halves(text)?;
                Ok(Pair(Cow::Owned(left.into()), Cow::Owned(right.into())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let short = || de::Error::custom("a merge has two tokens");
                let Raw(left) = seq.next_element()?.ok_or_else(short)?;
                let Raw(right) = seq.next_element()?.ok_or_else(short)?;
                match seq.next_element::<IgnoredAny>()? {
                    None => Ok(Pair(left, right)),
                    Some(_) => Err(short()),
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

fn halves<E: de::Error>(text: &str) -> Result<(&str, &str), E> {
    match text.split_once(' ') {
        // The comment that `merges.txt` begins with is skipped by some readers.
        Some((left, right)) if !right.contains(' ') && left != "#version:" => Ok((left, right)),
        _ => Err(de::Error::custom("a merge has two tokens with a blank between")),
    }
}
