//! The thread that asks all sources. It has a runtime of its own and gets little of the CPU while others
//! want it, so that no request feels it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use taximeter_fleet::{
    Board, Component, Pool, Reading, SOURCES, Target, TargetKind, TargetState, Version,
};
use taximeter_net::sending::SenderThread;
use taximeter_net::upstream::Dialer;
use taximeter_system::clock;
use taximeter_system::thread::{self, Share};
use tokio::sync::Semaphore;
use tokio::task::{Id, JoinError, JoinSet};

use crate::ask::{ANSWER_BYTES_MAX, Answer, ScrapeFault, ask};
use crate::exposition::{Bounds, Form, body, read};
use crate::host::Host;
use crate::kubelet;
use crate::plan::{Address, Looked, Plan, Source};
use crate::schedule::{Outcome, Schedule};
use crate::version::{Asking, version};

/// Questions that run at the same time.
const AT_ONCE_MAX: usize = 64;
/// Large answers that are read at the same time.
const LARGE_AT_ONCE_MAX: usize = 2;
/// Most samples of one answer.
const SAMPLES_MAX: usize = 100_000;
/// Time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two looks at whether requests run, and at the plan.
const LOOK_PERIOD: Duration = Duration::from_millis(250);
/// The first questions are spread by so much for each source, so that they do not come at once.
const SPREAD: Duration = Duration::from_millis(15);
/// The longest time until a source is asked for the first time.
const SPREAD_MAX: Duration = Duration::from_secs(15);

/// The thread that asks.
#[derive(Debug)]
pub struct Scraper(SenderThread);

impl Scraper {
    /// Starts it. `plan` says what is asked: something when it has changed since it was last called.
    /// What is known stands on `board`.
    ///
    /// Errors: the system has no thread for it.
    pub fn start(
        board: Arc<Board>,
        plan: impl FnMut() -> Option<Plan> + Send + 'static,
    ) -> io::Result<Self> {
        let scraping = Scraping {
            board,
            plan,
            followed: Vec::new(),
            places: Vec::new(),
            local: None,
            annotations: None,
            asked: JoinSet::new(),
            pool: Pool::default(),
            large: Arc::new(Semaphore::new(LARGE_AT_ONCE_MAX)),
            dialers: Dialers::new(false),
            tell,
            turn: 0,
            ids: 0,
        };
        let run = async move |scraping: &mut Scraping<_>| {
            thread::yield_to_others(Share::Tenth);
            scraping.run().await;
        };
        SenderThread::start("fleet", scraping, run, async |_| {}).map(Self)
    }

    /// Asks it to end.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// Makes quantities of an answer. How long it was.
type Tell = fn(&mut Target, &Answer, Instant, Timestamp, &mut Pool) -> Result<usize, ScrapeFault>;

/// The gateway's own host, which is the last source on the board.
struct Local {
    every: Duration,
    due: Instant,
    host: Host,
    target: Target,
}

/// How connections are opened.
struct Dialers {
    tls: bool,
    any: Arc<Dialer>,
    private: Arc<Dialer>,
}

impl Dialers {
    fn new(tls: bool) -> Self {
        let any = Dialer::new(tls, CONNECT_TIMEOUT);
        Self { tls, private: Arc::new(any.clone().private()), any: Arc::new(any) }
    }

    fn of(&self, source: &Source) -> Arc<Dialer> {
        if source.is_private { self.private.clone() } else { self.any.clone() }
    }
}

struct Scraping<P> {
    board: Arc<Board>,
    plan: P,
    followed: Vec<Followed>,
    /// The place of each of them, in their order: looking for one does not look at what is known of all.
    places: Vec<Place>,
    local: Option<Local>,
    /// The file of the pod's annotations, which is behind all others on the board.
    annotations: Option<Target>,
    asked: JoinSet<Done>,
    pool: Pool,
    large: Arc<Semaphore>,
    dialers: Dialers,
    tell: Tell,
    /// Whose turn it is first.
    turn: usize,
    /// Numbers that were given out.
    ids: u64,
}

/// Where a source that is followed stands.
struct Place {
    id: u64,
    /// When it is asked next; `None` while a question runs.
    due: Option<Instant>,
}

/// A source that is followed.
struct Followed {
    source: Source,
    schedule: Schedule,
    target: Arc<Target>,
    asking: Asking,
    /// The last question.
    task: Option<Id>,
}

/// The end of a question.
struct Done {
    id: u64,
    said: Said,
}

/// What a source has said.
enum Said {
    Metrics(Result<Answer, ScrapeFault>),
    Version(Option<String>),
}

impl<P: FnMut() -> Option<Plan>> Scraping<P> {
    async fn run(&mut self) {
        let mut look = clock::now();
        loop {
            let now = clock::now();
            if look <= now {
                if let Some(plan) = (self.plan)() {
                    self.follow(plan, now);
                }
                self.look_at_requests();
                look = now + LOOK_PERIOD;
            }
            let next = self.begin_due(now).min(self.look(now)).min(look);
            tokio::select! {
                Some(done) = self.asked.join_next() => self.end(done),
                () = tokio::time::sleep_until(next.into()) => {}
            }
        }
    }

    /// Follows what is planned. What stays goes on as it was.
    fn follow(&mut self, plan: Plan, now: Instant) {
        let tls = plan.sources.iter().any(|source| source.address.is_tls());
        if tls != self.dialers.tls {
            self.dialers = Dialers::new(tls);
        }
        let places = std::mem::take(&mut self.places);
        let mut before: Vec<_> = self.followed.drain(..).zip(places).collect();
        let mut first = now;
        for source in plan.sources {
            let is_it = |(one, _): &(Followed, Place)| {
                one.source.address == source.address
                    && one.source.kind == source.kind
                    && one.source.is_private == source.is_private
            };
            let known = before.iter().position(is_it).map(|at| before.swap_remove(at));
            let (one, place) = match known {
                Some((known, place)) => {
                    let upstreams = source.upstreams.clone().into();
                    let target = Target { upstreams, ..Target::clone(&known.target) };
                    (Followed { source, target: Arc::new(target), ..known }, place)
                }
                None => {
                    first = (first + SPREAD).min(now + SPREAD_MAX);
                    self.new_one(source, first)
                }
            };
            self.followed.push(one);
            self.places.push(place);
        }
        self.local = plan.local.map(|every| {
            let known = self.local.take().map(|local| (local.host, local.target));
            let (host, target) = known.unwrap_or_else(|| (Host::new(), Host::target(every)));
            let target = Target { every, usual: every, ..target };
            Local { every, due: now, host, target }
        });
        let before = self.annotations.take();
        self.annotations = plan.annotations.map(|(name, said)| looked_at(&name, said, before));
        let followed = self.followed.iter().map(|one| one.target.clone());
        let local = self.local.iter().map(|local| &local.target);
        let others = local.chain(&self.annotations).map(|target| Arc::new(target.clone()));
        self.board.replace(followed.chain(others).collect());
    }

    /// Looks at the host if it is time to. When the next time is.
    fn look(&mut self, now: Instant) -> Instant {
        let Some(local) = &mut self.local else { return now + SPREAD_MAX };
        if local.due <= now {
            let (host, target, at) = (&mut local.host, &mut local.target, clock::wall());
            let before = target.clone();
            let looked = guarded(&mut self.pool, |pool| {
                host.look(target, now, at, pool);
                Ok(())
            });
            if let Err(fault) = looked {
                *target = before;
                target.fail(at, fault.cause(), &fault.to_string());
            }
            self.board.put(self.followed.len(), Arc::new(local.target.clone()));
            local.due = (local.due + local.every).max(now);
        }
        local.due
    }

    fn new_one(&mut self, source: Source, first: Instant) -> (Followed, Place) {
        self.ids += 1;
        let schedule = Schedule::new(source.kind == TargetKind::Engine, first);
        let upstreams = source.upstreams.clone();
        let every = schedule.every(source.is_busy());
        let target = Target::new(&source.address.to_string(), source.kind, upstreams, every);
        let (target, asking) = (Arc::new(target), Asking::default());
        let due = schedule.due(source.is_busy());
        let one = Followed { source, schedule, target, asking, task: None };
        (one, Place { id: self.ids, due })
    }

    /// Looks where requests run: there the next question comes sooner.
    fn look_at_requests(&mut self) {
        for (at, (one, place)) in self.followed.iter_mut().zip(&mut self.places).enumerate() {
            let is_busy = one.source.is_busy();
            // Where no request runs any more, values hold for longer at once.
            let usual = one.schedule.usual(is_busy);
            if usual > one.target.usual {
                one.target = Arc::new(Target { usual, ..Target::clone(&one.target) });
                self.board.put(at, one.target.clone());
            }
            place.due = one.schedule.due(is_busy);
        }
    }

    /// Asks all whose time has come, as far as there is room. When the next one's comes.
    fn begin_due(&mut self, now: Instant) -> Instant {
        let mut next = now + SPREAD_MAX;
        let all = self.places.len();
        for nth in 0..all {
            let at = (self.turn + nth) % all;
            let Some(place) = self.places.get_mut(at) else { continue };
            let Some(due) = place.due else { continue };
            if due > now {
                next = next.min(due);
                continue;
            }
            if self.asked.len() >= AT_ONCE_MAX {
                // Whoever has to wait is first when there is room.
                self.turn = at;
                break;
            }
            let Some(one) = self.followed.get_mut(at) else { continue };
            one.schedule.begin(now, one.source.is_busy());
            place.due = None;
            let dialer = self.dialers.of(&one.source);
            let Source { address, credential, .. } = one.source.clone();
            let (id, large) = (place.id, self.large.clone());
            let task = self.asked.spawn(async move {
                let answer = match &address {
                    Address::Url(url) => ask(&dialer, url, credential.as_ref(), &large).await,
                    Address::Socket(path) => kubelet::ask(path).await,
                };
                Done { id, said: Said::Metrics(answer) }
            });
            one.task = Some(task.id());
        }
        next
    }

    fn end(&mut self, done: Result<Done, JoinError>) {
        let Some(place) = self.take(done) else { return };
        if let Some((one, place)) = self.followed.get(place).zip(self.places.get_mut(place)) {
            place.due = one.schedule.due(one.source.is_busy());
        }
    }

    /// Takes what a question has told. The place of its source: one that is no longer followed has none.
    fn take(&mut self, done: Result<Done, JoinError>) -> Option<usize> {
        let (now, at) = (clock::now(), clock::wall());
        let done = done.unwrap_or_else(|fault| {
            // Who watches panics tells of it.
            let of = self.followed.iter().position(|one| one.task == Some(fault.id()));
            let place = of.and_then(|of| self.places.get(of));
            let said = Said::Metrics(Err(ScrapeFault::Panicked));
            Done { id: place.map_or(0, |place| place.id), said }
        });
        let place = self.places.iter().position(|one| one.id == done.id)?;
        let one = self.followed.get_mut(place)?;
        let mut target = Target::clone(&one.target);
        let answer = match done.said {
            Said::Metrics(answer) => answer,
            Said::Version(told) => {
                one.schedule.hold(false);
                one.asking.end(now, told.is_some());
                let mut versions = target.versions.to_vec();
                versions.retain(|version| version.of != Component::Engine);
                let told = told.and_then(|text| Version::of(Component::Engine, None, &text));
                versions.extend(told);
                one.target = Arc::new(Target { versions: versions.into(), ..target });
                self.board.put(place, one.target.clone());
                return Some(place);
            }
        };
        let was_up = target.state == TargetState::Up;
        let told = answer.and_then(|answer| {
            guarded(&mut self.pool, |pool| (self.tell)(&mut target, &answer, now, at, pool))
        });
        let outcome = match told {
            Ok(bytes) => Outcome::Read(bytes),
            Err(fault) => {
                // What a fault of ours has left half done does not count.
                target = Target::clone(&one.target);
                target.fail(at, fault.cause(), &fault.to_string());
                fault.outcome()
            }
        };
        one.schedule.end(now, outcome);
        let is_busy = one.source.is_busy();
        target.every = one.schedule.every(is_busy);
        if target.state == TargetState::Up {
            target.usual = one.schedule.usual(is_busy);
        }
        one.target = Arc::new(target);
        self.board.put(place, one.target.clone());
        if one.target.state == TargetState::Up {
            self.ask_version(place, now, !was_up);
        }
        Some(place)
    }

    /// Asks an engine for its version, if it is time to. Its metrics wait until it has answered.
    fn ask_version(&mut self, place: usize, now: Instant, has_come_up: bool) {
        let Some(one) = self.followed.get_mut(place) else { return };
        let Address::Url(url) = one.source.address.clone() else { return };
        let program = one.target.programs.iter().find(|program| program.is_read);
        let source = SOURCES.iter().find(|of| program.is_some_and(|is| is.name == of.name));
        let places = source.map_or(&[][..], |source| source.version_at);
        let resets = one.target.quantities.counts.resets;
        if one.source.kind != TargetKind::Engine
            || places.is_empty()
            || !one.asking.is_due(now, has_come_up, resets)
        {
            return;
        }
        one.schedule.hold(true);
        let dialer = self.dialers.of(&one.source);
        let credential = one.source.credential.clone();
        let Some(id) = self.places.get(place).map(|place| place.id) else { return };
        let large = self.large.clone();
        let task = self.asked.spawn(async move {
            let told = version(&dialer, &url, credential.as_ref(), &large, places).await;
            Done { id, said: Said::Version(told) }
        });
        one.task = Some(task.id());
    }
}

/// The file of the pod's annotations after it was read.
fn looked_at(name: &str, said: Looked, before: Option<Target>) -> Target {
    let new = || Target::new(name, TargetKind::Annotations, Vec::new(), LOOK_PERIOD);
    let mut target = before.filter(|before| &*before.name == name).unwrap_or_else(new);
    let at = clock::wall();
    match said {
        Ok(()) => {
            target.state = TargetState::Up;
            target.asked += 1;
            (target.asked_at, target.answered_at) = (Some(at), Some(at));
        }
        Err((cause, why)) => target.fail(at, cause, &why),
    }
    target
}

/// Runs `read`. A panic in there costs this one answer, and no other: who watches panics tells of it, and
/// what it may have left half done is made anew.
fn guarded<T>(
    pool: &mut Pool,
    read: impl FnOnce(&mut Pool) -> Result<T, ScrapeFault>,
) -> Result<T, ScrapeFault> {
    catch_unwind(AssertUnwindSafe(|| read(pool))).unwrap_or_else(|_| {
        *pool = Pool::default();
        Err(ScrapeFault::Panicked)
    })
}

/// Makes quantities of an answer. How long it was.
fn tell(
    target: &mut Target,
    answer: &Answer,
    now: Instant,
    at: Timestamp,
    pool: &mut Pool,
) -> Result<usize, ScrapeFault> {
    if target.kind == TargetKind::Kubelet {
        note(target, kubelet::read(&answer.text)?, now, at, pool);
        return Ok(answer.text.len());
    }
    let text = body(&answer.text);
    let bounds = Bounds { bytes: ANSWER_BYTES_MAX, samples: SAMPLES_MAX, ..Bounds::default() };
    let exposition = read(&text, &bounds);
    if exposition.form != Form::Text {
        return Err(ScrapeFault::Form(exposition.form));
    }
    let reading = taximeter_fleet::read(&exposition.samples, at);
    if !reading.programs.iter().any(|program| program.is_read) {
        return Err(ScrapeFault::NoProgram);
    }
    note(target, reading, now, at, pool);
    target.skipped = exposition.skipped.count();
    target.cut = answer.cut || exposition.cut;
    Ok(answer.text.len())
}

/// A source has told this.
fn note(target: &mut Target, mut reading: Reading, now: Instant, at: Timestamp, pool: &mut Pool) {
    if *target.programs != reading.programs {
        target.programs = Arc::new(std::mem::take(&mut reading.programs));
    }
    note_versions(target, std::mem::take(&mut reading.versions));
    target.quantities = Arc::new(target.quantities.after(reading, now, pool));
    target.state = TargetState::Up;
    target.asked += 1;
    (target.asked_at, target.answered_at) = (Some(at), Some(at));
}

/// These are the versions that its metrics tell. That of an engine was asked for.
fn note_versions(target: &mut Target, mut told: Vec<Version>) {
    told.extend(target.versions.iter().filter(|one| one.of == Component::Engine).cloned());
    if *target.versions != told {
        target.versions = told.into();
    }
}

#[cfg(test)]
mod tests;
