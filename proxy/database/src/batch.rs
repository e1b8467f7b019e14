//! A batch of requests, corrections and counts of refusals that is added to a store at once, and
//! its sums per hour.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use taximeter_billing::{BilledRequest, Hour, HourKey, RunningHour, SettledUntil, corrected};
use taximeter_ledger::{
    Checkpoint, Correction, CostNumbers, DecodeError, Entry, Fault, FramedEntry, Kind,
    LineQuantities, Place, Position, PostBytes, PostNumbers, Refusals, Settled, join_payload,
};
use taximeter_pricing::Source;

use super::forms::{Form, Forms};
use super::post::Post;
use super::sessions::NewSessions;

/// Lines of the usual cost: input, cached input and output.
const USUAL_LINES: usize = 3;
/// Microseconds of an hour.
const HOUR_MICROS: i64 = 3_600_000_000;

/// Posts, corrections and counts of refusals that follow each other in one journal.
#[derive(Debug, Default)]
pub struct Batch<'a> {
    /// The forms of the posts, and those of the batches before.
    pub forms: Forms,
    /// The posts, in order.
    pub posts: Vec<NewPost<'a>>,
    /// Of the lines of all posts.
    quantities: LineQuantities,
    /// The corrections, in order.
    pub corrections: Vec<Amendment<'a>>,
    /// The counts of refusals.
    pub refusals: Vec<Refusals>,
    /// The journal, and the last entry of it that is part of the batch.
    pub end: Option<(&'a str, Position)>,
    /// How far in time the journal is.
    pub reach: Reach,
    /// What the last checkpoint counts, and the requests behind it.
    pub counted: Option<u64>,
    /// The time of the first checkpoint.
    pub first_checkpoint: Option<Timestamp>,
}

/// How far in time the journal of a batch is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reach {
    /// The time of the last entry.
    pub heard: Option<Timestamp>,
    /// What the last checkpoint says that says something of open requests.
    pub settled: Option<SettledUntil>,
}

/// A request that may be new to the store.
#[derive(Debug)]
pub struct NewPost<'a> {
    /// Its entry.
    pub place: Place,
    /// What the entry has, as bytes.
    pub bytes: PostBytes<'a>,
    /// Its form in the batch.
    pub form: usize,
    /// What the entry has, as numbers.
    pub numbers: PostNumbers,
}

/// A correction, and its payload as it was written.
#[derive(Debug)]
pub struct Amendment<'a> {
    /// The correction.
    pub correction: Box<Correction>,
    /// Its entry. The ledger is unknown if no journal has it any more.
    pub place: Place,
    /// The complete payload.
    pub payload: Cow<'a, [u8]>,
}

/// What adding a batch did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Added {
    /// Requests that were new.
    pub posts: u64,
    /// Corrections that were new.
    pub corrections: u64,
}

/// Requests and corrections, added up by hour. In one order always, so that those who write several
/// rows at the same time never wait for each other in a circle.
#[derive(Debug, Default)]
pub struct Hours(BTreeMap<HourKey, Vec<Hour>>);

/// Requests and corrections that are new to the store, added up by hour and by session.
#[derive(Debug, Default)]
pub struct NewHours {
    /// By the place of the form in memory, and by the number of the hour since 1970.
    running: HashMap<(usize, i64), FormHour, foldhash::fast::RandomState>,
    hours: Hours,
    /// Of the sessions that they are part of.
    pub sessions: NewSessions,
}

/// The sums of an hour of requests of one form.
#[derive(Debug)]
pub struct FormHour {
    /// The form.
    pub form: Arc<Form>,
    /// First instant of the hour.
    pub first: Timestamp,
    /// The sums so far.
    pub running: RunningHour,
}

impl<'a> Batch<'a> {
    /// An empty batch for so many requests, which knows the forms of those before it.
    pub fn new(mut forms: Forms, posts: usize) -> Self {
        forms.tidy();
        let tokens = Vec::with_capacity(USUAL_LINES * posts);
        let quantities = LineQuantities { tokens, decimals: Vec::new() };
        Self { forms, posts: Vec::with_capacity(posts), quantities, ..Self::default() }
    }

    /// Takes one more entry of `journal`; an entry of a kind that leaves nothing in the store only
    /// moves the end.
    ///
    /// Errors: `Unreadable`; the batch is as before.
    pub fn push(&mut self, journal: &'a str, framed: &'a FramedEntry) -> Result<(), Fault> {
        match framed.kind {
            Kind::Post => {
                let post = framed.post()?;
                let place = Place { ledger: framed.ledger, seq: framed.seq };
                self.push_post(place, post).map_err(|error| framed.unreadable(&error))?;
                // It was written later, which a period may well wait for.
                self.reach.heard = self.posts.last().map(|post| post.numbers.started_at);
            }
            Kind::Correction | Kind::Refusals => match framed.entry()? {
                Entry::Correction(correction) => {
                    self.reach.heard = Some(correction.made_at);
                    let place = Place { ledger: framed.ledger, seq: framed.seq };
                    let payload = framed.payload.to_vec().into();
                    self.corrections.push(Amendment { correction, place, payload });
                }
                Entry::Refusals(refusals) => {
                    self.reach.heard = Some(refusals.at);
                    self.refusals.push(*refusals);
                }
                _ => {}
            },
            // A start names one that cannot be read.
            Kind::Checkpoint => {
                if let Ok(Entry::Checkpoint(checkpoint)) = framed.entry() {
                    self.reach.pass(&checkpoint);
                    self.counted = Some(checkpoint.posts);
                    self.first_checkpoint.get_or_insert(checkpoint.at);
                }
            }
            _ => {}
        }
        self.pass(journal, framed);
        Ok(())
    }

    /// Takes one more request.
    ///
    /// Errors: it is none; the batch is as before.
    pub fn push_post(&mut self, place: Place, bytes: PostBytes<'a>) -> Result<(), DecodeError> {
        let (form, numbers) = self.forms.read(&bytes, &mut self.quantities)?;
        self.posts.push(NewPost { place, bytes, form, numbers });
        self.counted = self.counted.map(|counted| counted + 1);
        Ok(())
    }

    /// Goes on behind an entry of `journal` that leaves nothing in the store.
    pub const fn pass(&mut self, journal: &'a str, framed: &FramedEntry) {
        self.end = Some((journal, framed.position()));
    }

    /// The form of a post of this batch.
    pub fn form(&self, post: &NewPost<'_>) -> Option<&Arc<Form>> {
        self.forms.get(post.form)
    }
}

impl Reach {
    fn pass(&mut self, checkpoint: &Checkpoint) {
        self.heard = Some(checkpoint.at);
        let Some(Settled { at, until, request_seconds_max }) = checkpoint.settled else { return };
        let seconds = i64::try_from(request_seconds_max).unwrap_or(i64::MAX);
        let request_max = SignedDuration::from_secs(seconds);
        self.settled = Some(SettledUntil { at, until, request_max });
    }
}

impl NewPost<'_> {
    /// The complete payload, in place of what `out` has.
    pub fn payload<'b>(&self, out: &'b mut Vec<u8>) -> &'b [u8] {
        join_payload(self.bytes.id, self.bytes.strings, self.bytes.members, out);
        out
    }
}

impl<'a> Amendment<'a> {
    /// Reads the payload of the entry at `place`.
    ///
    /// Errors: it is no correction.
    pub fn read(place: Place, payload: &'a [u8]) -> Result<Self, DecodeError> {
        Ok(Self {
            correction: Box::new(Correction::decode(payload)?),
            place,
            payload: payload.into(),
        })
    }
}

impl NewHours {
    /// Adds a request of `batch` that was not in the store. One that has used nothing is in no
    /// hour.
    pub fn add_post(&mut self, batch: &Batch<'_>, post: &NewPost<'_>) {
        let quantities = &batch.quantities;
        let Some(form) = batch.form(post) else { return };
        if form.used_nothing(&post.numbers, quantities) {
            return;
        }
        let hour = post.numbers.started_at.as_microsecond().div_euclid(HOUR_MICROS);
        let place = Arc::as_ptr(form).addr();
        let FormHour { running, .. } = self.running.entry((place, hour)).or_insert_with(|| {
            // An hour of a time is a time.
            let first = Timestamp::from_microsecond(hour.saturating_mul(HOUR_MICROS));
            let first = first.unwrap_or(Timestamp::MIN);
            FormHour { form: Arc::clone(form), first, running: RunningHour::default() }
        });
        let row = form.row(&post.numbers);
        let add = |running: &mut RunningHour| match &post.numbers.cost {
            CostNumbers::None => running.add(&row, None, &form.lines, &[]),
            CostNumbers::Tokens(tokens) => {
                let tokens = quantities.tokens.get(tokens.clone()).unwrap_or_default();
                running.add_tokens(&row, &form.lines, tokens)
            }
            CostNumbers::Amounts { amount, list_amount, quantities: lines } => {
                let lines = quantities.decimals.get(lines.clone()).unwrap_or_default();
                running.add(&row, Some((*amount, *list_amount)), &form.lines, lines)
            }
        };
        if add(running).is_err() {
            let full = std::mem::take(running);
            // Alone it is never too large.
            let _ = add(running);
            self.hours.add_running(form, post.numbers.started_at, full);
        }
    }

    /// Adds a correction that was not in the store, of the request `post`.
    pub fn add_correction(&mut self, post: &Post<'_>, correction: &Correction) {
        self.hours.add_correction(post, correction);
    }

    /// The same of a request whose details are gone. Nobody knows more of it than its tenant.
    pub fn add_gone_correction(&mut self, correction: &Correction) {
        let row = BilledRequest {
            started_at: correction.started_at,
            tenant: &correction.tenant.0,
            model: None,
            provider: "",
            upstream: "",
            operation: "",
            route: "",
            key_id: None,
            labels: &BTreeMap::new(),
            source: Source::Unknown,
            input_tokens: None,
            cache_read_input_tokens: None,
            output_tokens: None,
            reasoning_output_tokens: None,
            cost: None,
            dimensions: None,
        };
        for (key, hour) in corrected(&row, correction) {
            self.hours.add(key, hour);
        }
    }

    /// Adds a request that no batch has.
    pub fn add_read(&mut self, post: &Post<'_>) {
        self.hours.add_post(post);
    }

    /// How many sums there are.
    pub fn count(&self) -> usize {
        self.running.len() + self.hours.count() + self.sessions.count()
    }

    /// The sums.
    pub fn finish(self) -> Hours {
        let (running, mut hours) = self.split();
        for FormHour { form, first, running } in running {
            hours.add_running(&form, first, running);
        }
        hours
    }

    /// The sums of requests by form, and all others.
    pub fn split(self) -> (impl Iterator<Item = FormHour>, Hours) {
        (self.running.into_values(), self.hours)
    }
}

impl Hours {
    /// Adds a request that was not in the store. One that has used nothing is in no hour.
    pub fn add_post(&mut self, post: &Post<'_>) {
        if !post.used_nothing() {
            self.add_row(&post.row());
        }
    }

    /// Adds a request, as bills see it.
    pub fn add_row(&mut self, row: &BilledRequest<'_>) {
        self.add(HourKey::of(row), Hour::of(row));
    }

    /// Adds a correction that was not in the store, of the request `post`.
    pub fn add_correction(&mut self, post: &Post<'_>, correction: &Correction) {
        for (key, hour) in corrected(&post.row(), correction) {
            self.add(key, hour);
        }
    }

    /// Adds the requests of `form` in the hour of `at`.
    fn add_running(&mut self, form: &Form, at: Timestamp, running: RunningHour) {
        let (hour, rest) = running.finish(&form.lines);
        if let Some(rest) = rest {
            self.add(form.key_in(at), rest);
        }
        self.add(form.key_in(at), hour);
    }

    /// Adds `hour`. Where a sum would be too large to be kept exactly, another one is begun.
    pub fn add(&mut self, key: HourKey, hour: Hour) {
        add(self.0.entry(key).or_default(), hour);
    }

    /// Adds all `parts` of a key.
    pub fn add_parts(&mut self, key: HourKey, parts: Vec<Hour>) {
        let Some(known) = self.0.get_mut(&key) else {
            self.0.insert(key, parts);
            return;
        };
        parts.into_iter().for_each(|part| add(known, part));
    }

    /// The first hour of all.
    pub fn first(&self) -> Option<Timestamp> {
        self.0.first_key_value().map(|(key, _)| key.hour)
    }

    /// How many sums there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Takes all of it out, in order.
    pub fn take(&mut self) -> impl Iterator<Item = (HourKey, Vec<Hour>)> + use<> {
        std::mem::take(&mut self.0).into_iter()
    }
}

/// Adds `hour` to the last of `parts`, or behind it.
fn add(parts: &mut Vec<Hour>, hour: Hour) {
    match parts.last_mut().map(|last| last.add(&hour)) {
        Some(Ok(())) => {}
        _ => parts.push(hour),
    }
}
