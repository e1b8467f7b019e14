//! Takes what sources tell, and gives out the samples of what is over.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;

use crate::identity::Identity;
use crate::memory::grid::{Grid, second_of};
use crate::memory::key::SampleKey;
use crate::memory::line::{Line, Now};
use crate::memory::roll::{At, roll, settle};
use crate::memory::scale::scale_of;
use crate::memory::statistic::Statistic;
use crate::memory::waiting::{Packed, Sorted, Waiting};
use crate::pool::What;
use crate::series::Series;
use crate::target::Target;

/// Most series that are followed. Those behind are left out, and counted.
pub const FOLLOWED_MAX: usize = 200_000;
/// Most samples that wait for their minute to be over. Those behind are left out, and counted.
pub const WAITING_MAX: usize = 1 << 21;
/// After a silence of so many periods nobody knows when a counter grew.
const SILENT_PERIODS: u32 = 3;
/// By how much a question may come sooner than usual and is still one of the usual ones.
const EARLY: Duration = Duration::from_millis(500);
/// The place of a series for which there is no room.
const NOWHERE: u16 = u16::MAX;

/// Samples of one series on one grid.
#[derive(Debug)]
pub struct Told<'a> {
    /// The grid.
    pub grid: Grid,
    /// The series.
    pub key: &'a SampleKey,
    /// In the order of their times.
    pub samples: &'a [At],
}

/// Takes what sources tell.
#[derive(Debug)]
pub struct Recorder {
    followed: HashMap<Arc<str>, Followed, RandomState>,
    /// Series and samples of all.
    lines: usize,
    waiting: usize,
    waiting_max: usize,
    left_out: u64,
    /// The first second of which something is known.
    since: Option<i64>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self {
            followed: HashMap::default(),
            lines: 0,
            waiting: 0,
            waiting_max: WAITING_MAX,
            left_out: 0,
            since: None,
        }
    }
}

/// A source.
#[derive(Debug, Default)]
struct Followed {
    /// When its last values may have become new.
    sampled: Option<Instant>,
    /// The longest usual time between two questions since then.
    usual: Duration,
    /// Its series, and those of which only something waits.
    lines: Vec<Line>,
    /// The place among them of each series of its last answer.
    places: Vec<u16>,
    waiting: Packed,
    is_there: bool,
}

impl Recorder {
    /// How many samples were left out: there are too many series or samples, or the values are no
    /// numbers that can be kept.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Series that are followed.
    #[must_use]
    pub const fn series(&self) -> usize {
        self.lines
    }

    /// The first second of which a sample waits.
    #[must_use]
    pub fn earliest(&self) -> Option<i64> {
        self.followed.values().filter_map(|one| one.waiting.earliest()).min()
    }

    /// Takes what is new of all sources. What is of a source that is no longer there stays until it is
    /// given out.
    pub fn note(&mut self, targets: &[Arc<Target>]) {
        self.followed.values_mut().for_each(|one| one.is_there = false);
        for target in targets {
            let one = match self.followed.get_mut(&target.name) {
                Some(one) => one,
                None => self.followed.entry(target.name.clone()).or_default(),
            };
            one.is_there = true;
            one.usual = one.usual.max(target.usual);
            let sampled = target.quantities.period.sampled_at();
            let Some((new, at)) = sampled.zip(target.answered_at) else { continue };
            if one.sampled == Some(new) {
                continue;
            }
            let gap = one.sampled.replace(new).map(|before| new.saturating_duration_since(before));
            let usual = std::mem::replace(&mut one.usual, target.usual);
            // One that comes sooner than usual has its own second: it is behind the one before.
            let is_early = gap.is_some_and(|gap| gap + EARLY < target.usual);
            let every = if is_early { 1 } else { target.usual.as_secs() };
            let second = second_of(at.as_second(), every);
            let since = *self.since.get_or_insert(second);
            let mut room = Room {
                lines: FOLLOWED_MAX.saturating_sub(self.lines),
                waiting: self.waiting_max.saturating_sub(self.waiting),
                left_out: 0,
            };
            let (lines, waiting) = (one.lines.len(), one.waiting.len());
            one.follow(&target.quantities.series, &mut room);
            let now = Now { second, is_known: is_known(target, usual, gap), since };
            one.take(&target.quantities.series, &now, &mut room);
            self.lines = self.lines + one.lines.len() - lines;
            self.waiting = self.waiting + one.waiting.len() - waiting;
            self.left_out += room.left_out;
        }
    }

    /// Gives out the samples of all minutes before the one of `second`, in the order of their keys, and
    /// forgets them. What `tell` has not taken when it fails is lost.
    ///
    /// # Errors
    /// What `tell` says.
    pub fn give<E>(
        &mut self,
        second: i64,
        tell: &mut dyn FnMut(&Told<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let until = Grid::Minute.floor(second);
        let mut due = Vec::new();
        for (name, one) in &mut self.followed {
            let before = one.waiting.len();
            let since = self.since.unwrap_or(i64::MAX);
            one.lines.iter_mut().for_each(|line| line.end(until, since));
            let over = one.waiting.take_before(until);
            self.waiting -= before - one.waiting.len();
            due.push((name.clone(), over));
        }
        let told = self.tell_all(due, tell);
        self.followed.retain(|_, one| {
            one.forget();
            one.is_there || !one.waiting.is_empty()
        });
        self.lines = self.followed.values().map(|one| one.lines.len()).sum();
        told
    }

    /// One quantity after the other, so that few keys are there at once.
    fn tell_all<E>(
        &mut self,
        due: Vec<(Arc<str>, Sorted)>,
        tell: &mut dyn FnMut(&Told<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut quantities: HashMap<&'static str, Vec<(usize, u16)>, RandomState> =
            HashMap::default();
        for (at, (name, _)) in due.iter().enumerate() {
            let Some(followed) = self.followed.get(name) else { continue };
            for (number, line) in (0..).zip(&followed.lines) {
                let of_line = quantities.entry(line.what.quantity.name).or_default();
                of_line.push((at, number));
            }
        }
        let mut quantities: Vec<_> = quantities.into_iter().collect();
        quantities.sort_unstable_by_key(|(name, _)| *name);
        for (_, lines) in quantities {
            let mut keyed = Vec::with_capacity(lines.len());
            for (at, number) in lines {
                let Some((name, over)) = due.get(at) else { continue };
                let Some(followed) = self.followed.get_mut(name) else { continue };
                let Some(line) = followed.lines.get_mut(usize::from(number)) else { continue };
                let (of_line, over) = (over.of_line(number), line.over());
                if of_line.is_empty() && over.is_empty() {
                    continue;
                }
                let scale = scale_of(line.what.quantity);
                let key = SampleKey::of(name, &line.what, &line.who);
                keyed.push((key, scale, of_line, over));
            }
            keyed.sort_by(|a, b| a.0.cmp(&b.0));
            for (key, scale, seconds, over) in keyed {
                tell_one((key, scale), &seconds, over, tell)?;
            }
        }
        Ok(())
    }
}

/// Tells the samples of one line: its seconds, and the minutes made from them.
fn tell_one<E>(
    (mut key, scale): (SampleKey, i32),
    seconds: &[Waiting],
    mut over: Vec<(Grid, Statistic, At)>,
    tell: &mut dyn FnMut(&Told<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut told: Vec<(Statistic, Grid, Vec<At>)> = Vec::new();
    for of_one in seconds.chunk_by(|a, b| a.statistic == b.statistic) {
        let Some(statistic) = of_one.first().map(|one| one.statistic) else { continue };
        let mut samples: Vec<At> = of_one.iter().map(|one| (one.second, one.value)).collect();
        settle(statistic, &mut samples);
        for to in statistic.becomes(Grid::Second) {
            told.push((*to, Grid::Minute, roll(*to, Grid::Minute, &samples)));
        }
        told.push((statistic, Grid::Second, samples));
    }
    over.sort_unstable();
    for of_one in over.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let Some(&(grid, statistic, _)) = of_one.first() else { continue };
        told.push((statistic, grid, of_one.iter().map(|(_, _, at)| *at).collect()));
    }
    told.sort_unstable();
    for (statistic, grid, samples) in &told {
        key.set(*statistic, scale);
        tell(&Told { grid: *grid, key: &key, samples })?;
    }
    Ok(())
}

/// Whether a counter's growth since `gap` ago belongs to now. `usual` is the longest usual time between two
/// questions meanwhile: an engine is asked rarely while no request runs.
fn is_known(target: &Target, usual: Duration, gap: Option<Duration>) -> bool {
    let period = target.quantities.period.learnt().unwrap_or_default();
    let longest = period.max(usual).max(Duration::from_secs(1)) * SILENT_PERIODS;
    gap.is_some_and(|gap| gap <= longest)
}

/// What still fits.
struct Room {
    lines: usize,
    waiting: usize,
    left_out: u64,
}

impl Followed {
    /// Follows these series. One that goes has no base when it comes again.
    fn follow(&mut self, series: &[Series], room: &mut Room) {
        let is_it = |(place, one): (&u16, &Series)| {
            self.lines.get(usize::from(*place)).is_some_and(|line| line.is_of(one))
        };
        if self.places.len() == series.len() && self.places.iter().zip(series).all(is_it) {
            return;
        }
        let key = |what: &Arc<What>, who: &Arc<Identity>| (Arc::as_ptr(what), who.clone());
        let mut known: HashMap<_, u16, RandomState> = HashMap::default();
        for (place, line) in (0..).zip(&self.lines) {
            known.insert(key(&line.what, &line.who), place);
        }
        self.places.clear();
        for one in series {
            let place = match known.remove(&key(&one.what, &one.who)) {
                Some(place) => place,
                None => match u16::try_from(self.lines.len()).ok().filter(|_| room.lines > 0) {
                    Some(place) => {
                        room.lines -= 1;
                        self.lines.push(Line::of(one));
                        place
                    }
                    None => NOWHERE,
                },
            };
            self.places.push(place);
        }
        for place in known.into_values() {
            if let Some(line) = self.lines.get_mut(usize::from(place)) {
                line.lose_base();
            }
        }
    }

    /// Takes the values of all series.
    fn take(&mut self, series: &[Series], now: &Now, room: &mut Room) {
        let mut made = Vec::new();
        for (place, one) in self.places.iter().zip(series) {
            let Some(line) = self.lines.get_mut(usize::from(*place)) else {
                room.left_out += 1;
                continue;
            };
            line.take(one, now, &mut made);
            for (statistic, value) in made.drain(..) {
                match value.filter(|_| room.waiting > 0) {
                    Some(value) => {
                        room.waiting -= 1;
                        let (line, second) = (*place, now.second);
                        self.waiting.push(Waiting { value, second, line, statistic });
                    }
                    None => room.left_out += 1,
                }
            }
        }
    }

    /// Forgets series that its last answer does not have and of which nothing waits.
    fn forget(&mut self) {
        if self.lines.len() == self.places.len() {
            return;
        }
        let mut needed = vec![false; self.lines.len()];
        let waiting = self.waiting.iter().map(|one| one.line);
        for place in self.places.iter().copied().chain(waiting) {
            if let Some(needed) = needed.get_mut(usize::from(place)) {
                *needed = true;
            }
        }
        let mut place = 0;
        let places = needed.iter().map(|is_needed| {
            place += u16::from(*is_needed);
            if *is_needed { place - 1 } else { NOWHERE }
        });
        let places: Vec<u16> = places.collect();
        let new = |old: u16| places.get(usize::from(old)).copied().unwrap_or(NOWHERE);
        self.places.iter_mut().for_each(|place| *place = new(*place));
        self.waiting.renumber(new);
        let mut is_needed = needed.into_iter();
        self.lines.retain(|_| is_needed.next().unwrap_or(true));
    }
}

#[cfg(test)]
mod tests;
