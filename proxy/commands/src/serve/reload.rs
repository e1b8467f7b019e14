//! Reloads the configuration on SIGHUP, and when one of its files changes. A new configuration
//! takes effect as a whole or not at all. Running requests keep the one that they started with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use taximeter_config::{Config, Overrides, TokenizerFile};
use taximeter_fleet::Fact;
use taximeter_gateway::gateway::{Current, Gateway, Rules};
use taximeter_gateway::recognise;
use taximeter_gateway::reload::{InForce, Rejected, Settled};
use taximeter_gateway::tokenizers::Tokenizers;
use taximeter_system::clock;
use taximeter_system::look::Look;
use taximeter_system::signals::Hangup;
use taximeter_telemetry::events::{ConfigRejected, ConfigReloaded};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use super::sources;
use super::tell;
use crate::load::{self, LoadError};

/// Time between two checks of the files. A changed file is read when two checks see the same state.
const LOOK_PERIOD: Duration = Duration::from_millis(200);
/// Most readings in a row. The file is read again if it names other files than before.
const READINGS_MAX: usize = 3;

/// The source of a configuration.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) file: PathBuf,
    /// Values of command-line options, which override the file.
    pub(super) overrides: Overrides,
}

impl Source {
    /// Reads the configuration. Also returns the files that it comes from, sorted and each once.
    ///
    /// Errors: the file cannot be read, or has mistakes.
    pub(super) fn read(&self) -> (Vec<PathBuf>, Result<Config, LoadError>) {
        let mut files = vec![self.file.clone()];
        let config = load::config_and_secrets(&self.file, &mut files)
            .and_then(|config| Ok(config.with(&self.overrides)?));
        if let Ok(config) = &config {
            files.extend(load::named_by(config));
        }
        taximeter_collections::sort(&mut files);
        files.dedup();
        (files, config)
    }
}

/// Watches the files and reloads them.
pub(super) struct Reloader {
    source: Source,
    files: Vec<PathBuf>,
    settled: Settled<Look>,
    /// The state of the vocabulary files when they were read.
    vocabularies: Look,
    current: Current,
    replace: watch::Sender<Arc<Gateway>>,
}

/// The result of one reading.
struct Reading {
    files: Vec<PathBuf>,
    look: Look,
    next: Result<Next, LoadError>,
}

/// The next configuration.
struct Next {
    rules: Rules,
    waiting: Vec<&'static str>,
    vocabularies: Look,
    facts: Vec<Fact>,
}

impl Reloader {
    /// Watches `files`, whose state was `seen` when the configuration was read.
    pub(super) fn new(
        source: Source,
        (files, seen): (Vec<PathBuf>, Look),
        current: Current,
        replace: watch::Sender<Arc<Gateway>>,
    ) -> Self {
        let settled = Settled::new(seen);
        let vocabularies = Look::at(&paths(&current.get().config.tokenizers));
        Self { source, files, settled, vocabularies, current, replace }
    }

    /// Reloads the configuration whenever its files change, until the gateway drains.
    pub(super) async fn run(mut self, mut hangup: Hangup) {
        let mut period = interval(LOOK_PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = period.tick() => {}
                () = hangup.wait() => self.settled.hurry(),
            }
            if self.current.get().is_draining() {
                return;
            }
            let files = self.files.clone();
            // The disk may be slow.
            let Ok(look) = spawn_blocking(move || Look::at(&files)).await else { continue };
            let is_whole = look.is_whole();
            if self.settled.look(clock::now(), look, is_whole) {
                self.reload().await;
            }
        }
    }

    async fn reload(&mut self) {
        let (source, before) = (self.source.clone(), self.current.get());
        let (files, vocabularies) = (self.files.clone(), self.vocabularies.clone());
        let reading = spawn_blocking(move || read(&source, files, &before, &vocabularies)).await;
        let now = clock::wall();
        let problems = match reading {
            Ok(Reading { files, look, next }) => {
                self.files = files;
                self.settled = Settled::new(look);
                match next {
                    Ok(next) => return self.put_in_force(next),
                    Err(fault) => fault.lines(),
                }
            }
            Err(_) => vec!["the reading panicked; the panic is on stderr".to_owned()],
        };
        let gateway = self.current.get();
        let path = self.source.file.display().to_string();
        gateway.telemetry.emit(&ConfigRejected { path: &path, problems: &problems });
        gateway.in_force().rejected = Some(Rejected { at: now, problems });
    }

    fn put_in_force(&mut self, next: Next) {
        let Next { rules, waiting, vocabularies, facts } = next;
        self.vocabularies = vocabularies;
        let gateway = Arc::new(self.current.get().reconfigured(rules));
        gateway.telemetry.reconfigured(&gateway.config);
        self.replace.send_replace(gateway.clone());
        recognise::start(&gateway);
        tell::unencrypted(&gateway.telemetry, &gateway.config.upstreams);
        let since = clock::wall();
        *gateway.in_force() = InForce { since, waiting: waiting.clone(), rejected: None, facts };
        gateway.telemetry.emit(&ConfigReloaded { waiting: &waiting });
    }
}

/// Reads a source. `files` are its files, as far as they are known.
fn read(
    source: &Source,
    mut files: Vec<PathBuf>,
    before: &Gateway,
    vocabularies: &Look,
) -> Reading {
    let mut readings = 0;
    loop {
        readings += 1;
        // The state is taken before the reading. A later change leads to another reading.
        let look = Look::at(&files);
        let (mut found, config) = source.read();
        let next = config.and_then(|config| {
            let facts = sources::facts(&source.file, &found, &config);
            take_place(config, before, vocabularies).map(|next| Next { facts, ..next })
        });
        if next.is_err() {
            // A file with mistakes may name fewer files than it should.
            found.extend(files.iter().cloned());
            taximeter_collections::sort(&mut found);
            found.dedup();
        }
        if found == files || readings == READINGS_MAX {
            return Reading { files, look, next };
        }
        files = found;
    }
}

fn take_place(config: Config, before: &Gateway, read: &Look) -> Result<Next, LoadError> {
    let (config, waiting) = config.while_running(&before.config);
    let tariffs = load::tariffs(&config)?;
    let vocabularies = Look::at(&paths(&config.tokenizers));
    let unchanged = config.tokenizers == before.config.tokenizers && vocabularies == *read;
    let tokenizers: Tokenizers =
        if unchanged { before.tokenizers.clone() } else { load::tokenizers(&config)?.0 };
    let (rules, facts) = (Rules { config, tariffs, tokenizers }, Vec::new());
    Ok(Next { rules, waiting, vocabularies, facts })
}

fn paths(files: &[TokenizerFile]) -> Vec<PathBuf> {
    files.iter().map(|file| file.path.clone()).collect()
}
