//! `taximeter top`: the live view of a gateway on a terminal. Other commands ask the admin address through
//! [`AdminArgs`].
//!
//! Begin with `sample.rs` (one look at a gateway), then follow the data: `sample` adds up a look,
//! `history` makes rates from two looks, `snapshot` is what there is to show, `listing` and
//! `headline` turn it into text, `view` draws it on a terminal and `plain` writes it to a file.
//! Everything from `sample` to `view` is pure.
//!
//! This crate asks the admin address and knows nothing else: no journal, no store, no gateway.
//!
//! A look reads five metrics (`/metrics?name[]=`, so that it is cheap even with many series), the
//! running requests and the status. It asks the store for the month, and less often the longer the
//! store takes. `top` adds the tokens of running requests to what the metrics count of ended ones.
//! So the view shows long streams while they run, and counts them once.

mod client;
mod distribution;
mod exposition;
mod figures;
#[cfg(test)]
mod fixture;
mod headline;
mod history;
mod listing;
mod plain;
mod sample;
mod screen;
mod snapshot;
mod terminal;
mod view;

use std::io::{self, IsTerminal as _, Write};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use ratatui::crossterm::event::Event;
use taximeter_config::{ADMIN_DEFAULT, UpstreamUrl};
use taximeter_net::upstream::Pair;
use taximeter_system::clock;
use taximeter_system::signals::Stop;
use taximeter_system::stdout;
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::{MissedTickBehavior, interval, sleep};

pub use self::client::AdminFault;

use self::client::{Client, Credentials};
use self::history::History;
use self::sample::Sample;
use self::screen::{KeyEffect, Screen};
use self::snapshot::Month;
use self::terminal::FullScreen;
use self::view::{Theme, View};

/// Shortest time between two queries of the month's cost.
const MONTH_PERIOD_MIN: Duration = Duration::from_secs(5);
/// After a query, the store rests this many times as long as the query took.
const MONTH_REST: u32 = 50;
/// Time between two redraws without new data. Times such as the uptime change by themselves.
const REDRAW_PERIOD: Duration = Duration::from_secs(1);
/// Shortest and longest polling interval, in seconds.
const EVERY: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

/// The default admin address of a gateway on this machine.
static ADMIN: LazyLock<String> = LazyLock::new(|| format!("http://{ADMIN_DEFAULT}"));

const EXAMPLES: &str = "\
Examples:
  taximeter top                                       the gateway on this machine
  taximeter top --admin https://meter.example:9464    another gateway; set TAXIMETER_ADMIN_TOKEN
  taximeter top --once | head -n 4                    print the state once as plain text

Keys: q quits, Tab and the arrow keys change the table, s changes the order, p pauses, ? shows help.
The window needs 40x10 characters; 80x24 shows everything. If the output is no terminal, the command
prints the state once, as with --once.";

/// The admin address of a gateway, and what it is shown.
#[derive(Debug, Clone, Args)]
pub struct AdminArgs {
    /// Admin address of the gateway
    #[arg(
        long,
        value_name = "URL",
        env = "TAXIMETER_ADMIN",
        default_value = ADMIN.as_str(),
        value_parser = address
    )]
    admin: UpstreamUrl,

    /// The gateway's admin_token. Prefer the environment variable: other users can see arguments
    #[arg(long, value_name = "TOKEN", env = "TAXIMETER_ADMIN_TOKEN", hide_env_values = true)]
    token: Option<String>,

    /// PEM file with the certificates to trust, instead of those of the system
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// PEM file with a client certificate to use instead of a token. An authority in
    /// admin_tls.client_ca of the gateway must have signed it
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// PEM file with the private key of the client certificate
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

impl AdminArgs {
    /// The body of the answer to one question.
    ///
    /// Errors: the gateway does not answer, or with an error.
    pub fn ask(&self, path: &'static str, query: &str) -> Result<Bytes, TopError> {
        let client = self.client()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(TopError::Screen)?;
        let url = shown(&self.admin);
        runtime.block_on(client.get(path, query)).map_err(|fault| TopError::Admin { url, fault })
    }

    fn client(&self) -> Result<Client, TopError> {
        let (certificate, key) = (self.cert.as_deref(), self.key.as_deref());
        let pair = certificate.zip(key).map(|(certificate, key)| Pair { certificate, key });
        let credentials = Credentials { token: self.token.as_deref(), pair };
        let client = Client::new(self.admin.clone(), credentials, self.ca.as_deref());
        client.map_err(|fault| TopError::Admin { url: shown(&self.admin), fault })
    }
}

/// Shows a gateway live: tenants, models, running requests, time to first token, spend
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct TopArgs {
    #[command(flatten)]
    admin: AdminArgs,

    /// Polling interval in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    every: Duration,

    /// Print the state once as plain text, after one interval
    #[arg(long)]
    once: bool,
}

/// Reads an admin address, with or without a scheme.
pub fn address(text: &str) -> Result<UpstreamUrl, String> {
    if text.contains('@') {
        return Err("must have no credentials; put the token into TAXIMETER_ADMIN_TOKEN".into());
    }
    let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    UpstreamUrl::parse(&url).map_err(|fault| fault.to_string())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| EVERY.contains(seconds));
    let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| format!("expected {} to {} seconds", EVERY.start(), EVERY.end()))
}

/// Why `top` ends with an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopError {
    /// The gateway does not answer.
    #[error("no answer from {url}: {fault}")]
    Admin {
        /// The URL of the admin address.
        url: String,
        /// Why there is no answer.
        fault: AdminFault,
    },
    /// The terminal cannot be used.
    #[error("cannot use the terminal: {0}; use --once for plain text")]
    Screen(io::Error),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

/// Shows the gateway until the user quits, or once.
///
/// Errors: the gateway does not answer the first poll; the terminal cannot be used.
pub fn run(args: &TopArgs, out: &mut dyn Write) -> Result<(), TopError> {
    let url = shown(&args.admin.admin);
    let failed = |fault| TopError::Admin { url: url.clone(), fault };
    let client = args.admin.client()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(TopError::Screen)?;
    runtime.block_on(async {
        let first = client.poll().await.map_err(failed)?;
        let mut history = History::new(clock::now(), first);
        if args.once || !io::stdout().is_terminal() {
            if let Ok(month) = client.month().await {
                history.set_month(month);
            }
            tokio::select! {
                () = sleep(args.every) => {}
                () = stdout::reader_left() => return Ok(()),
            }
            history.add(clock::now(), client.poll().await.map_err(failed)?);
            return Ok(plain::write(&history.snapshot(clock::now()), &url, out)?);
        }
        watch(client, history, args.every, &url).await.map_err(TopError::Screen)
    })
}

fn shown(url: &UpstreamUrl) -> String {
    let scheme = if url.tls { "https" } else { "http" };
    format!("{scheme}://{}{}", url.authority(), url.prefix)
}

/// New data from the admin address.
enum Update {
    Poll(Result<Box<Sample>, AdminFault>),
    Month(Month),
}

/// Shows the gateway until a key or a signal ends the program.
async fn watch(client: Client, mut history: History, every: Duration, url: &str) -> io::Result<()> {
    let mut stop = Stop::new()?;
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let view = View { url, theme: Theme { colours } };
    let mut taken = FullScreen::new()?;
    let mut events = terminal::events()?;
    let (sender, mut updates) = channel(1);
    tokio::spawn(send_polls(client.clone(), every, sender.clone()));
    tokio::spawn(send_months(client, sender));
    let mut redraw = interval(REDRAW_PERIOD);
    redraw.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut screen = Screen::default();
    let mut snapshot = history.snapshot(clock::now());
    loop {
        if !screen.paused {
            snapshot = history.snapshot(clock::now());
        }
        taken.terminal.draw(|frame| view.draw(&snapshot, &mut screen, frame))?;
        tokio::select! {
            event = events.recv() => match event {
                Some(Event::Key(key)) if screen.on_key(key) == KeyEffect::Quit => return Ok(()),
                Some(_) => {}
                // The terminal is closed.
                None => return Ok(()),
            },
            Some(update) = updates.recv() => match update {
                Update::Poll(Ok(sample)) => history.add(clock::now(), *sample),
                Update::Poll(Err(fault)) => history.missed(clock::now(), fault.to_string()),
                Update::Month(month) => history.set_month(month),
            },
            _ = redraw.tick() => {}
            () = stop.wait() => return Ok(()),
        }
    }
}

/// Polls the gateway. If it is slow, the polls are further apart.
async fn send_polls(client: Client, every: Duration, sender: Sender<Update>) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first poll is done.
    ticks.reset();
    loop {
        ticks.tick().await;
        let sample = client.poll().await.map(Box::new);
        if sender.send(Update::Poll(sample)).await.is_err() {
            return;
        }
    }
}

/// Queries the month's cost again and again. A failed query keeps the last known value.
async fn send_months(client: Client, sender: Sender<Update>) {
    loop {
        let asked = clock::now();
        let month = client.month().await;
        let took = clock::now() - asked;
        if let Ok(month) = month
            && sender.send(Update::Month(month)).await.is_err()
        {
            return;
        }
        sleep(MONTH_PERIOD_MIN.max(took * MONTH_REST)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_scheme() {
        for (text, url) in [
            ("127.0.0.1:9464", "http://127.0.0.1:9464"),
            ("[::1]:9464", "http://[::1]:9464"),
            ("https://meter.example", "https://meter.example"),
            ("https://edge.example/meter/", "https://edge.example/meter"),
        ] {
            assert_eq!(address(text).map(|url| shown(&url)), Ok(url.to_owned()), "{text}");
        }
        for text in ["", "ftp://x", "http://:token@127.0.0.1:9464", "127.0.0.1:port"] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_interval_is_seconds_within_bounds() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "-1", "NaN", "inf", "3601", "1s", ""] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
