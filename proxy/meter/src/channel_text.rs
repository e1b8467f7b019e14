//! Tells what of a text is new, where an engine may send what is new, all so far, or both.
//!
//! A delta repeats all so far only where ordinary text cannot do so by chance:
//!
//! - From the first on, each delta begins with all of the one before, and at least two of them say
//!   more. Until that is clear, all but the first wait.
//! - Or a delta begins with everything that the deltas before it said together.
//!
//! In both cases the repeated text must have 8 bytes, and must not be one short unit over and over. An
//! answer may end before that is clear: then its last delta must have 8 bytes.

/// Bytes at either end of a text that are remembered.
const ENDS_BYTES: usize = 32;

/// Least repeated text that is no chance, in bytes.
const EVIDENT_BYTES_MIN: usize = 8;

/// Longest unit that ordinary text repeats at once, in bytes ("ha", " really").
const UNIT_BYTES_MAX: usize = 32;

/// Deltas that must say more than the one before.
const GROWTHS_MIN: u32 = 2;

/// Most text that waits until it is clear what deltas hold, in bytes.
const WAITING_BYTES_MAX: usize = 16 << 10;

/// What was told of one text, and how its engine tells it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ChannelText {
    told: Told,
    manner: Manner,
    /// Deltas told it, not only whole texts.
    by_deltas: bool,
}

/// What the deltas of a text hold.
#[derive(Debug, Clone, Default, PartialEq)]
enum Manner {
    /// There was none.
    #[default]
    Silent,
    /// There was one.
    Begun,
    /// Those behind the first begin with all of the one before, and wait.
    Waiting(Box<Waiting>),
    /// What is new.
    News,
    /// All so far.
    SoFar,
}

/// Deltas that may be what is new or all so far.
#[derive(Debug, Clone, Default, PartialEq)]
struct Waiting {
    /// One after another.
    texts: String,
    /// Length of the last of them.
    last_bytes: usize,
    /// How many of them say more than the one before.
    growths: u32,
}

/// What of a text is news.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing is.
    Nothing,
    /// It waits for what follows: take it for news until then.
    Waits,
    /// What stands from here on.
    From(usize),
    /// All of it, and before it what has waited.
    Behind(String),
}

impl ChannelText {
    /// Nothing, of an answer whose other texts have shown whether deltas hold all so far.
    pub(crate) fn new(is_so_far: bool) -> Self {
        let manner = if is_so_far { Manner::SoFar } else { Manner::Silent };
        Self { manner, ..Self::default() }
    }

    /// Whether a delta of so many bytes is news without a closer look. Of what was told, `unnoted`
    /// bytes have not been noted yet.
    pub(crate) const fn is_plain(&self, bytes: usize, unnoted: usize) -> bool {
        matches!(self.manner, Manner::News) && bytes < self.told.bytes + unnoted
    }

    /// Whether deltas have told it.
    pub(crate) const fn is_told_by_deltas(&self) -> bool {
        self.by_deltas
    }

    /// Notes text that was told.
    pub(crate) fn note(&mut self, text: &str) {
        self.told.add(text.as_bytes());
    }

    /// What of a delta is news.
    pub(crate) fn delta(&mut self, delta: &str) -> News {
        self.by_deltas = true;
        match &mut self.manner {
            Manner::Silent => {
                self.manner = Manner::Begun;
                News::From(0)
            }
            Manner::Begun => self.second(delta),
            Manner::Waiting(waiting) => {
                let growths = waiting.growths_with(delta);
                if growths.is_some_and(|growths| growths >= GROWTHS_MIN)
                    && is_evident(head(delta, waiting.last_bytes))
                {
                    return self.settle(delta);
                }
                if let Some(growths) = growths.filter(|_| waiting.has_room_for(delta)) {
                    waiting.add(delta, growths);
                    return News::Waits;
                }
                self.give_up_waiting().map_or(News::From(0), News::Behind)
            }
            Manner::News => {
                let is_all = self.told.is_begin_of(delta);
                let from = if is_all && is_evident(head(delta, self.told.bytes)) {
                    self.told.bytes
                } else {
                    0
                };
                News::at(from, delta)
            }
            Manner::SoFar => self.whole(delta),
        }
    }

    /// What is news of a text that is all so far, or that is what is new after all.
    pub(crate) fn whole(&self, text: &str) -> News {
        self.told.beyond(text).map_or(News::From(0), |at| News::at(at, text))
    }

    /// What is news of a text that deltas may have told. What they told otherwise is no news.
    pub(crate) fn restated(&mut self, text: &str) -> News {
        if let Manner::Waiting(waiting) = &self.manner {
            let from = self.told.bytes;
            let are_news = text.get(from..).is_some_and(|rest| rest.starts_with(&waiting.texts));
            if are_news {
                self.manner = Manner::News;
                return News::From(from);
            }
            let is_last = text.starts_with(waiting.last());
            return if is_last { self.settle(text) } else { News::Nothing };
        }
        match self.told.beyond(text) {
            Some(at) => News::at(at, text),
            None if self.by_deltas => News::Nothing,
            None => News::From(0),
        }
    }

    /// Whether its deltas hold all so far.
    pub(crate) const fn is_so_far(&self) -> bool {
        matches!(self.manner, Manner::SoFar)
    }

    /// Another text of the answer shows that deltas hold all so far. Returns what of those that
    /// wait is new.
    pub(crate) fn follow(&mut self) -> Option<String> {
        match std::mem::replace(&mut self.manner, Manner::SoFar) {
            Manner::Waiting(waiting) => match self.whole(waiting.last()) {
                News::From(at) => waiting.last().get(at..).map(str::to_owned),
                _ => None,
            },
            Manner::News => {
                self.manner = Manner::News;
                None
            }
            Manner::Silent | Manner::Begun | Manner::SoFar => None,
        }
    }

    /// What waits and is to be counted, as the answer has ended.
    pub(crate) fn end(&mut self) -> Option<String> {
        match &self.manner {
            Manner::Waiting(waiting)
                if waiting.growths >= GROWTHS_MIN && is_evident(waiting.last()) =>
            {
                self.follow()
            }
            _ => self.give_up_waiting(),
        }
    }

    /// What waits, as it is new after all.
    fn give_up_waiting(&mut self) -> Option<String> {
        match std::mem::replace(&mut self.manner, Manner::News) {
            Manner::Waiting(waiting) => Some(waiting.texts),
            manner => {
                self.manner = manner;
                None
            }
        }
    }

    /// What of the second delta is news.
    fn second(&mut self, delta: &str) -> News {
        let mut waiting = Waiting { last_bytes: self.told.bytes, ..Waiting::default() };
        if self.told.is_begin_of(delta) && waiting.has_room_for(delta) {
            waiting.add(delta, u32::from(delta.len() > self.told.bytes));
            self.manner = Manner::Waiting(Box::new(waiting));
            return News::Waits;
        }
        self.manner = Manner::News;
        News::From(0)
    }

    /// It is clear that deltas hold all so far, of which `text` is the latest.
    fn settle(&mut self, text: &str) -> News {
        self.manner = Manner::SoFar;
        self.whole(text)
    }
}

impl Waiting {
    fn last(&self) -> &str {
        let from = self.texts.len().saturating_sub(self.last_bytes);
        self.texts.get(from..).unwrap_or_default()
    }

    /// How many deltas say more with this one; `None` if it does not begin with the one before.
    fn growths_with(&self, delta: &str) -> Option<u32> {
        let growth = u32::from(delta.len() > self.last_bytes);
        delta.starts_with(self.last()).then_some(self.growths + growth)
    }

    const fn has_room_for(&self, delta: &str) -> bool {
        self.texts.len() + delta.len() <= WAITING_BYTES_MAX
    }

    fn add(&mut self, delta: &str, growths: u32) {
        self.texts.push_str(delta);
        self.last_bytes = delta.len();
        self.growths = growths;
    }
}

impl News {
    fn at(at: usize, text: &str) -> Self {
        if at < text.len() { Self::From(at) } else { Self::Nothing }
    }
}

/// Whether ordinary text does not repeat this at once.
fn is_evident(repeated: &str) -> bool {
    let is_unit = |bytes: usize| {
        let (unit, rest) = (repeated.get(bytes..), repeated.get(..repeated.len() - bytes));
        unit.zip(rest).is_some_and(|(shifted, begin)| shifted == begin)
    };
    let longest = UNIT_BYTES_MAX.min(repeated.len() / 2);
    repeated.len() >= EVIDENT_BYTES_MIN && !(1..=longest).any(is_unit)
}

fn head(text: &str, bytes: usize) -> &str {
    text.get(..bytes).unwrap_or_default()
}

/// A text by its length, its beginning and its end.
#[derive(Debug, Clone, Default, PartialEq)]
struct Told {
    bytes: usize,
    head: [u8; ENDS_BYTES],
    /// The last bytes, at the end of the array.
    tail: [u8; ENDS_BYTES],
}

impl Told {
    fn add(&mut self, text: &[u8]) {
        let room = self.head.iter_mut().skip(self.bytes);
        room.zip(text).for_each(|(place, byte)| *place = *byte);
        self.tail.rotate_left(text.len().min(ENDS_BYTES));
        let places = self.tail.iter_mut().rev();
        places.zip(text.iter().rev()).for_each(|(place, byte)| *place = *byte);
        self.bytes += text.len();
    }

    /// Whether `text` begins with it.
    fn is_begin_of(&self, text: &str) -> bool {
        self.is_begin(text.as_bytes(), (0, 0))
    }

    /// Where in `text` begins what goes beyond it; blanks around it may be missing there. `None` if
    /// `text` does not begin with it.
    fn beyond(&self, text: &str) -> Option<usize> {
        if self.is_begin_of(text) {
            return Some(self.bytes);
        }
        let [head, tail] = [self.head(), self.tail()];
        let blanks =
            (head.len() - head.trim_ascii_start().len(), tail.len() - tail.trim_ascii_end().len());
        let begin = text.trim_ascii_start();
        let bytes = self.bytes.checked_sub(blanks.0 + blanks.1).filter(|bytes| *bytes > 0)?;
        let is_repeated = self.is_begin(begin.as_bytes(), blanks);
        let rest = begin.get(bytes..).filter(|_| is_repeated)?;
        // Blanks at the end are not worth a difference.
        let rest = if rest.trim_ascii().is_empty() { "" } else { rest };
        Some(text.len() - rest.len())
    }

    /// Whether `text` begins with it, without so many bytes at its beginning and end.
    fn is_begin(&self, text: &[u8], (before, behind): (usize, usize)) -> bool {
        let bytes = self.bytes.saturating_sub(before + behind);
        let Some(begin) = text.get(..bytes) else { return false };
        let head = self.head().get(before..).unwrap_or_default();
        let head = head.get(..bytes.min(head.len())).unwrap_or_default();
        let tail = self.tail();
        let tail = tail.get(..tail.len() - behind).unwrap_or_default();
        let tail = tail.get(tail.len().saturating_sub(bytes)..).unwrap_or_default();
        begin.starts_with(head) && begin.ends_with(tail)
    }

    fn head(&self) -> &[u8] {
        self.head.get(..self.bytes).unwrap_or(&self.head)
    }

    fn tail(&self) -> &[u8] {
        let from = ENDS_BYTES.saturating_sub(self.bytes);
        self.tail.get(from..).unwrap_or_default()
    }
}
