//! `taximeter serve`: starts the gateway, runs it, and drains it at the end.

mod changes;
mod facts;
mod fleet;
mod keeping;
mod old_records;
mod reload;
mod remembering;
mod sealing;
mod senders;
mod served_models;
mod signals;
mod sources;
mod tell;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use taximeter_config::{Addresses, Config, Overrides};
use taximeter_gateway::gateway::{Current, Gateway, ProcessParts, Rules};
use taximeter_gateway::listen::Workers;
use taximeter_gateway::recognise;
use taximeter_journal::{Event, Journal, JournalError, Options};
use taximeter_net::listening::{self, BindFault};
use taximeter_net::tls::{Reload, Tls, Watch};
use taximeter_push::Delivery;
use taximeter_system::clock;
use taximeter_system::look::Look;
use taximeter_system::memory;
use taximeter_system::panics;
use taximeter_system::signals::{Hangup, Stop};
use taximeter_telemetry::events::{CertificateReloaded, JournalChanged, Panicked};
use taximeter_telemetry::log::{Log, LogFormat};
use taximeter_telemetry::pusher;
use taximeter_telemetry::{LogEvent, Telemetry};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::load::{self, LoadError};
use crate::exit::{self, Exit};
use reload::{Reloader, Source};
use signals::Signals;

/// Threads for token counts and files. They carry no requests.
const BLOCKING_THREADS_MAX: usize = 4;
/// Time after which the engines are recognised and most start-up code never runs again.
const START_WAIT: Duration = Duration::from_secs(3);
/// Longest time for streams to end after the cut.
const CUT_WAIT: Duration = Duration::from_secs(1);
/// Longest time to count their tokens. The first count loads a vocabulary.
const SETTLE_WAIT: Duration = Duration::from_secs(10);
/// Longest time from the cut to the end of the process. The documentation tells supervisors 15 s.
const END_WAIT: Duration = Duration::from_secs(14);
/// Time for store, receiver and collectors after a second signal.
const HURRIED_WAIT: Duration = Duration::from_millis(500);

const EXAMPLES: &str = "\
Examples:
  taximeter serve --upstream http://127.0.0.1:8000        one engine, all requests to one tenant
  taximeter serve --config taximeter.yaml                 tenants, prices, several engines
  OPENAI_BASE_URL=http://127.0.0.1:8080/v1 python app.py  send a client through the gateway

SIGTERM or Ctrl-C drains the gateway. A second signal ends it at once. SIGHUP reloads the
configuration.";

/// Runs the gateway
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Configuration file. The other options override it
    #[arg(long, value_name = "FILE", env = "TAXIMETER_CONFIG")]
    config: Option<PathBuf>,
    /// Base URL of the engine, such as http://127.0.0.1:8000
    #[arg(long, value_name = "URL", env = "TAXIMETER_UPSTREAM")]
    upstream: Option<String>,
    /// Address for clients, or several with commas [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR", env = "TAXIMETER_LISTEN", value_delimiter = ',')]
    listen: Vec<String>,
    /// Admin address for metrics, health, usage API and console, or several with commas [default:
    /// 127.0.0.1:9464]
    #[arg(long, value_name = "ADDR", env = "TAXIMETER_ADMIN", value_delimiter = ',')]
    admin: Vec<String>,
    /// Directory for the ledger and the SQLite store [default: ./taximeter-data]
    #[arg(long, value_name = "DIR", env = "TAXIMETER_DATA_DIR")]
    data_dir: Option<String>,
    /// Format of log lines on stderr
    #[arg(long, value_enum, default_value_t, env = "TAXIMETER_LOG_FORMAT")]
    log_format: LogFormat,
}

/// Runs the gateway until a signal ends it.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let runtime = runtime()?;
    let mut signals = Signals::new(&runtime)?;
    let (args, log_format) = (args.clone(), args.log_format);
    let begin = move |runtime| begin(runtime, &args);
    let Some(begun) = signals.unless_stopped(runtime, begin)? else {
        let log = Log::new(log_format).context("cannot start the log")?;
        log.tell(LogEvent::StartGivenUp, []);
        log.flush();
        return Ok(ExitCode::SUCCESS);
    };
    match begun? {
        Ok(Begun { running, source, files, seen }) => {
            running.read_again(source, files, seen, signals.hangup);
            running.until_signal(signals.stop);
            Ok(ExitCode::SUCCESS)
        }
        Err(exit) => Ok(exit.into()),
    }
}

/// A gateway that has started, and where its configuration comes from.
struct Begun {
    running: Running,
    source: Option<Source>,
    files: Vec<PathBuf>,
    seen: Look,
}

/// Reads the configuration and starts the gateway, or prints why it cannot.
fn begin(runtime: Runtime, args: &ServeArgs) -> anyhow::Result<Result<Begun, Exit>> {
    let overrides = Overrides {
        upstream: args.upstream.clone(),
        listen: (!args.listen.is_empty()).then(|| args.listen.join(",")),
        admin: (!args.admin.is_empty()).then(|| args.admin.join(",")),
        data_dir: args.data_dir.clone(),
    };
    let source = args.config.clone().map(|file| Source { file, overrides: overrides.clone() });
    let (files, config) = match (&source, &args.upstream) {
        (Some(source), _) => source.read(),
        (None, Some(url)) => {
            let config = Config::zero(url).and_then(|config| config.with(&overrides));
            (Vec::new(), config.map_err(LoadError::from))
        }
        (None, None) => {
            exit::complain("there is no upstream; use --upstream URL or --config FILE");
            return Ok(Err(Exit::Configuration));
        }
    };
    let config = match config {
        Ok(config) => config,
        Err(fault) => {
            exit::complain(&not_started(&fault));
            return Ok(Err(Exit::Configuration));
        }
    };
    let seen = Look::at(&files);
    let log = Log::new(args.log_format).context("cannot start the log")?;
    let facts = source.as_ref().map(|source| sources::facts(&source.file, &files, &config));
    match start_on(runtime, config, log) {
        Ok(running) => {
            running.current.get().in_force().facts = facts.unwrap_or_default();
            Ok(Ok(Begun { running, source, files, seen }))
        }
        Err(fault) if matches!(fault.downcast_ref(), Some(JournalError::InUse { .. })) => {
            exit::complain(&exit::text(&fault));
            Ok(Err(Exit::InUse))
        }
        Err(fault) => match fault.downcast_ref() {
            Some(fault) => {
                exit::complain(&not_started(fault));
                Ok(Err(Exit::Configuration))
            }
            None => Err(fault),
        },
    }
}

/// The message for a start that failed.
fn not_started(fault: &LoadError) -> String {
    match fault {
        // Their text ends with the same words.
        LoadError::Mistakes(mistakes) => mistakes.to_string(),
        other => format!("{other}; nothing was started"),
    }
}

/// A running gateway.
pub(crate) struct Running {
    pub(crate) current: Current,
    /// Puts another gateway in force.
    replace: watch::Sender<Arc<Gateway>>,
    workers: Workers,
    store: (keeping::StoreThreads, remembering::Remembering),
    delivery: Option<Delivery>,
    otlp: Vec<pusher::Pusher>,
    runtime: Runtime,
    /// The addresses for clients.
    pub(crate) listen: Addresses,
    /// The admin addresses.
    pub(crate) admin: Addresses,
}

/// Starts the gateway. The ledger opens first, and the address for clients last.
///
/// Errors: the data directory is in use or damaged; an address is in use; prices or vocabularies
/// cannot be read.
pub(crate) fn start(config: Config, log: Log) -> anyhow::Result<Running> {
    start_on(runtime()?, config, log)
}

/// The background runtime: everything that carries no requests.
fn runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .thread_name("background")
        .enable_all()
        .build()
        .context("cannot start a runtime")
}

fn start_on(runtime: Runtime, config: Config, log: Log) -> anyhow::Result<Running> {
    let id = gateway_id(&config.resource);
    let tariffs = load::tariffs(&config)?;
    let (tokenizers, loaded) = load::tokenizers(&config)?;
    let (tls, admin_tls) = (load::tls(&config)?, load::admin_tls(&config)?);
    let (otel, ignored) = config.otel(&|name| std::env::var(name).ok());
    let telemetry = Arc::new(Telemetry::new(log, &config, &otel, clock::wall()));
    let panicked = telemetry.clone();
    panics::on_panic(move |place| panicked.emit(&Panicked { place }));
    tell::ignored(&telemetry, &ignored);
    tell::tokenizers(&telemetry, &loaded);
    tell::prices(&telemetry, &tariffs.book);
    tell::unencrypted(&telemetry, &config.upstreams);
    let free_bytes = keeping::make_room(&config, &id, &telemetry);
    let (journal, recovery) = Journal::open(
        &config.data_dir,
        Options {
            gateway: id.clone(),
            durability: config.ledger.durability,
            recovery: config.ledger.recovery,
            unavailable: config.ledger.unavailable,
            queue_bytes_max: config.limits.ledger_queue_bytes_max,
            segment_bytes: config.limits.ledger_segment_bytes as u64,
            now: clock::wall,
            tell: tell_journal(telemetry.clone()),
        },
        &|record| tariffs.charge_again(record),
    )?;
    telemetry.metrics.describe(journal.identity().id);
    tell::recovery(&telemetry, &recovery);
    let rules = Rules { config, tariffs, tokenizers };
    let background = runtime.handle().clone();
    let gateway =
        Arc::new(Gateway::new(rules, ProcessParts { id, journal, telemetry, background }));
    let (replace, current) = Current::new(gateway.clone());
    let watched = |(tls, watch): (Tls, Watch)| {
        let process = gateway.process().clone();
        let tell = move |reload: &Reload<'_>| process.telemetry.emit(&CertificateReloaded(reload));
        gateway.background.spawn(watch.run(tell));
        tls
    };
    let (tls, admin_tls) = (tls.map(watched), admin_tls.map(watched));
    let configured = {
        let current = current.clone();
        move || current.get().config.limits.memory_bytes_max
    };
    gateway.background.spawn(memory::watch(gateway.memory.clone(), configured));
    gateway.disk_budget.reusable(free_bytes);
    keeping::watch_disk_budget(&gateway);
    keeping::write_refusals(&gateway);
    keeping::set_rejected_aside(&gateway, recovery.rejected);
    old_records::start(&gateway);
    facts::start(current.clone());
    served_models::start(&gateway, recovery.died);
    let store = keeping::StoreThreads::start(&gateway, current.clone())?;
    let delivery = senders::delivery(&gateway)?;
    let otlp = senders::otlp(&gateway, &otel)?;
    // The listener is open before `/readyz` says that the gateway is ready.
    let listeners = listening::bind(&gateway.config.listen)?;
    let admin_listeners =
        listening::bind(&gateway.config.admin).map_err(|BindFault { address, source }| {
            anyhow::Error::new(source).context(format!("cannot listen on {address} (admin)"))
        })?;
    let (listen, admin) = (addresses(&listeners)?, addresses(&admin_listeners)?);
    taximeter_admin::start(current.clone(), admin_listeners, admin_tls);
    let workers = Workers::start(listeners, &current, tls.as_ref())?;
    recognise::start(&gateway);
    let store = (store, fleet::start(current.clone()));
    Ok(Running { current, replace, workers, store, delivery, otlp, runtime, listen, admin })
}

/// Where these sockets listen; the ports are real even if 0 was asked for.
fn addresses(listeners: &[TcpListener]) -> anyhow::Result<Addresses> {
    let addresses = listeners.iter().map(TcpListener::local_addr).collect::<Result<Vec<_>, _>>();
    Addresses::of(&addresses?).context("there is no address to listen on")
}

fn tell_journal(telemetry: Arc<Telemetry>) -> Box<dyn Fn(&Event<'_>) + Send + Sync> {
    Box::new(move |event| telemetry.emit(&JournalChanged(event)))
}

/// The name of this gateway on records, made from the name of the host.
pub(super) fn gateway_id(resource: &BTreeMap<String, String>) -> String {
    format!("{}/0", host(resource))
}

/// The name of the host, or of the pod.
pub(super) fn host(resource: &BTreeMap<String, String>) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = resource.get("k8s.pod.name").map_or(host.trim(), String::as_str);
    if host.is_empty() { "gateway".to_owned() } else { host.to_owned() }
}

impl Running {
    /// Starts to reload the configuration when its files change, and on SIGHUP.
    fn read_again(
        &self,
        source: Option<Source>,
        files: Vec<PathBuf>,
        seen: Look,
        mut hangup: Hangup,
    ) {
        let current = self.current.clone();
        match source {
            Some(source) => {
                let replace = self.replace.clone();
                let reloader = Reloader::new(source, (files, seen), current, replace);
                self.runtime.spawn(reloader.run(hangup));
            }
            None => {
                self.runtime.spawn(async move {
                    loop {
                        hangup.wait().await;
                        let hint = "start with --config FILE to reload the configuration";
                        let log = &current.get().telemetry.log;
                        log.tell(LogEvent::ConfigWithoutFile, [("hint", hint.into())]);
                    }
                });
            }
        }
    }

    /// Serves until SIGTERM or SIGINT and for the grace period after it, then drains. A second
    /// signal ends the process at once.
    fn until_signal(self, mut stop: Stop) {
        self.say_listening();
        self.runtime.spawn(async {
            sleep(START_WAIT).await;
            // If the kernel refuses, the memory stays in use.
            let _ = taximeter_resident::give_back();
        });
        self.runtime.block_on(stop.wait());
        let limits = self.current.get().config.limits.clone();
        let mut is_hurried = self.leave(limits.drain_grace, &mut stop);
        self.begin_drain();
        if !is_hurried {
            is_hurried = self.runtime.block_on(async {
                tokio::select! {
                    () = self.idle() => false,
                    () = sleep(limits.drain) => false,
                    () = stop.wait() => true,
                }
            });
        }
        self.finish(async {
            if !is_hurried {
                stop.wait().await;
            }
        });
    }

    /// Serves for the grace period, while load balancers learn that the gateway leaves. Returns
    /// whether another signal came.
    fn leave(&self, grace: Duration, stop: &mut Stop) -> bool {
        if grace.is_zero() {
            return false;
        }
        let gateway = self.current.get();
        gateway.leave();
        let seconds = [("grace_seconds", grace.as_secs_f64().into())];
        gateway.telemetry.log.tell(LogEvent::Leaving, seconds);
        drop(gateway);
        self.runtime.block_on(async { timeout(grace, stop.wait()).await.is_ok() })
    }

    /// Logs that the gateway listens. It serves requests and handles signals from here on.
    fn say_listening(&self) {
        let gateway = self.current.get();
        let config = &gateway.config;
        gateway.telemetry.log.tell(
            LogEvent::Listening,
            [
                ("listen", self.listen.to_string().into()),
                ("admin", self.admin.to_string().into()),
                ("upstreams", config.upstreams.len().into()),
                ("data_dir", config.data_dir.display().to_string().into()),
                ("version", env!("CARGO_PKG_VERSION").into()),
            ],
        );
    }

    /// Drains the gateway and ends it.
    pub(crate) fn stop(self) {
        self.begin_drain();
        self.finish(std::future::pending());
    }

    fn begin_drain(&self) {
        let gateway = self.current.get();
        gateway.telemetry.log.tell(LogEvent::Draining, []);
        gateway.drain();
        self.workers.drain();
    }

    /// Cuts the requests that still run, settles them, and closes the ledger. After that, store,
    /// receiver and collectors get the rest, as long as there is time. Once `hurry` is ready, there
    /// is little time.
    fn finish(self, hurry: impl Future<Output = ()>) {
        let began = clock::now();
        self.workers.cut();
        self.runtime.block_on(async {
            let _ = timeout(CUT_WAIT, self.idle()).await;
            // Tokens of clients that left are still being counted.
            let _ = timeout(SETTLE_WAIT, self.settled()).await;
        });
        let Self { current, workers, store: (store, samples), delivery, otlp, runtime, .. } = self;
        let process = current.get().process().clone();
        process.write_refusals(true);
        // The journal closes before anything that may hang. The writer has logged its errors.
        let _ = process.journal.close();
        // All of them stop at the same time, so one that hangs does not delay the others.
        store.stop();
        samples.stop();
        delivery.iter().for_each(Delivery::stop);
        otlp.iter().for_each(pusher::Pusher::stop);
        runtime.block_on(async {
            let all = async {
                workers.ended().await;
                store.fed().await;
                samples.ended().await;
                if let Some(delivery) = delivery {
                    delivery.ended().await;
                }
                for pusher in otlp {
                    pusher.ended().await;
                }
            };
            let hurry = async {
                hurry.await;
                sleep(HURRIED_WAIT).await;
            };
            tokio::select! {
                () = all => {}
                () = sleep(END_WAIT.saturating_sub(clock::now() - began)) => {}
                () = hurry => {}
            }
        });
        // Threads that still run end with the process.
        runtime.shutdown_background();
        process.telemetry.log.tell(LogEvent::Stopped, []);
        process.telemetry.log.flush();
    }

    async fn settled(&self) {
        let mut period = tokio::time::interval(Duration::from_millis(10));
        let gateway = self.current.get();
        while gateway.telemetry.metrics.has_unsettled_requests() {
            period.tick().await;
        }
    }

    async fn idle(&self) {
        let mut period = tokio::time::interval(Duration::from_millis(10));
        while self.workers.open() > 0 {
            period.tick().await;
        }
    }
}
