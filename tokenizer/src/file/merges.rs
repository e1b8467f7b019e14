//! Hands out the merges of a `tokenizer.json` while they are read. A file has half a million, and
//! learning them takes longer than reading them.

use std::sync::OnceLock;
use std::sync::mpsc::Sender;

use taximeter_json::{Malformed, Reader};

use super::byte_level;
use super::recipe::Unsupported;
use super::texts::{Bytes, Texts};
use super::values::{bytes, text};

/// Groups of merges that are handed out together.
const GROUPS: usize = 8_192;
/// Fewest bytes that a group takes in a file: `"a b",`.
const GROUP_BYTES_MIN: usize = 6;

/// Pairs of tokens, the one to be merged first before the others; those that stand side by side and
/// make the same are one group.
#[derive(Debug, Default)]
pub(super) struct MergeGroups {
    /// What each group makes.
    pub(super) texts: Texts,
    lefts: LeftTexts,
    decoded: OnceLock<Bytes>,
}

#[derive(Debug, Default)]
struct LeftTexts {
    /// Of all pairs, characters of the left token.
    all: Vec<u32>,
    /// Where each group's end.
    ends: Vec<usize>,
}

/// All merges of a file, in its order.
#[derive(Debug)]
pub(super) struct Shelf(Box<[OnceLock<MergeGroups>]>);

/// Puts merges on a shelf, and tells who waits for them.
pub(super) struct Shelving<'a> {
    shelf: &'a Shelf,
    /// Used as far as somebody waits.
    told: Sender<&'a MergeGroups>,
    next: usize,
    /// What is not on the shelf yet: checked to be text as a whole, since there is so much.
    texts: Bytes,
    lefts: LeftTexts,
}

impl Shelf {
    /// Room for the merges of a file of so many bytes.
    pub(super) fn for_file(bytes: usize) -> Self {
        let slots = bytes.div_ceil(GROUPS * GROUP_BYTES_MIN) + 1;
        Self((0..slots).map(|_| OnceLock::new()).collect())
    }

    /// What is there.
    pub(super) fn all(&self) -> impl Iterator<Item = &MergeGroups> + Clone {
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
    pub(super) fn new(shelf: &'a Shelf, told: Sender<&'a MergeGroups>) -> Self {
        Self { shelf, told, next: 0, texts: Bytes::default(), lefts: LeftTexts::default() }
    }

    /// Reads a list of merges: each `"a b"`, or `["a", "b"]` in younger files, whose tokens may
    /// hold blanks.
    ///
    /// Errors: what is no such list.
    pub(super) fn read(mut self, merges: &mut Reader<'_>) -> Result<(), Unsupported> {
        merges.enter(b'[')?;
        while merges.next_element()? {
            if merges.peek() == Some(b'"') {
                let pair = text(merges)?;
                let (left, right) = halves(&pair)?;
                self.add(left.as_bytes(), right.as_bytes())?;
                continue;
            }
            merges.enter(b'[')?;
            let (mut left, mut right) = Default::default();
            for half in [&mut left, &mut right] {
                if !merges.next_element()? {
                    return Err(Malformed.into());
                }
                *half = bytes(merges)?;
            }
            if merges.next_element()? {
                return Err(Malformed.into());
            }
            self.add(&left, &right)?;
        }
        self.put()
    }

    fn add(&mut self, left: &[u8], right: &[u8]) -> Result<(), Unsupported> {
        if self.lefts.ends.is_empty() || !self.texts.ends_with(left, right) {
            if self.lefts.ends.len() == GROUPS {
                self.put()?;
            }
            self.texts.push(left, right);
            self.lefts.ends.push(0);
        }
        let LeftTexts { all, ends } = &mut self.lefts;
        let characters = left.iter().filter(|byte| !is_continuation(**byte)).count();
        all.push(u32::try_from(characters).unwrap_or(u32::MAX));
        if let Some(end) = ends.last_mut() {
            *end = all.len();
        }
        Ok(())
    }

    fn put(&mut self) -> Result<(), Unsupported> {
        let wrong = |why: &str| Unsupported(why.to_owned());
        let (texts, lefts) = (std::mem::take(&mut self.texts), std::mem::take(&mut self.lefts));
        let texts = Texts::try_from(texts).map_err(|_| wrong("a merge that is no text"))?;
        let slot = self.shelf.0.get(self.next);
        let slot = slot.ok_or_else(|| wrong("more merges than its bytes can hold"))?;
        let merges = slot.get_or_init(|| MergeGroups { texts, lefts, decoded: OnceLock::new() });
        self.next += 1;
        // Who has given up says so itself.
        let _ = self.told.send(merges);
        Ok(())
    }
}

impl MergeGroups {
    /// By how many characters of it each group's text is parted.
    pub(super) fn lefts(&self) -> impl Iterator<Item = &[u32]> + Clone {
        let LeftTexts { all, ends } = &self.lefts;
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

/// Whether a byte of UTF-8 belongs to the character before it.
const fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

fn halves(text: &str) -> Result<(&str, &str), Unsupported> {
    match text.split_once(' ') {
        // The comment that `merges.txt` begins with is skipped by some readers.
        Some((left, right)) if !right.contains(' ') && left != "#version:" => Ok((left, right)),
        _ => Err(Unsupported("a merge has two tokens with a blank between".to_owned())),
    }
}
