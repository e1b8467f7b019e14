//! `taximeter top`: the live view of a gateway on a terminal.
//!
//! Begin with `sample.rs` (one look at a gateway), then follow the data: `sample` adds up a look,
//! `history` makes rates from two looks, `picture` is what there is to show, `listing` and
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
mod picture;
mod plain;
mod sample;
mod screen;
mod terminal;
mod view;

use std::io::{self, IsTerminal as _, Write};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use clap::Args;
use ratatui::crossterm::event::Event;
use taximeter_config::{ADMIN_DEFAULT, UpstreamUrl};
use taximeter_net::upstream::Pair;
use taximeter_system::clock;
use taximeter_system::signals::Stop;
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::{MissedTickBehavior, interval, sleep};

pub use self::client::AdminFault;

use self::client::{Client, Proof};
use self::history::History;
use self::picture::Month;
use self::sample::Sample;
use self::screen::{Next, Screen};
use self::terminal::Taken;
use self::view::{Theme, View};

/// The least time from one question to the store, what the month comes to, to the next.
const MONTH_PERIOD_MIN: Duration = Duration::from_secs(5);
/// A store that takes long is left alone for so many times as long.
const MONTH_REST: u32 = 50;
/// How often what passes by itself is drawn anew.
const REDRAW_PERIOD: Duration = Duration::from_secs(1);
/// Shortest and longest time between two looks, in seconds.
const EVERY: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

/// Where the gateway of this machine is, unless somebody says so.
static ADMIN: LazyLock<String> = LazyLock::new(|| format!("http://{ADMIN_DEFAULT}"));

const EXAMPLES: &str = "\
Examples:
  taximeter top                                       the gateway on this machine
  taximeter top --admin https://meter.example:9464    another; its token is in TAXIMETER_ADMIN_TOKEN
  taximeter top --once | head -n 4                    one look as plain text

Keys: q quits, Tab and arrows turn to other tables, s sorts, p pauses, ? explains. Needs 40x10, and
shows all from 80x24 on. What is no terminal gets one look, as with --once.";

/// What a gateway does, live: tenants, models, running requests, times to first token, spend
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct TopArgs {
    /// Admin address of the gateway
    #[arg(
        long,
        value_name = "URL",
        env = "TAXIMETER_ADMIN",
        default_value = ADMIN.as_str(),
        value_parser = address
    )]
    admin: UpstreamUrl,

    /// What the gateway's admin_token is; better in the variable, since others see arguments
    #[arg(long, value_name = "TOKEN", env = "TAXIMETER_ADMIN_TOKEN", hide_env_values = true)]
    token: Option<String>,

    /// Trust the certificates in this file, PEM, instead of the system's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Certificate, PEM, to show in place of a token: of an authority that the gateway's admin_tls
    /// names as client_ca
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// Its key, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    every: Duration,

    /// One look as plain text, after one interval
    #[arg(long)]
    once: bool,
}

/// An admin address, with or without its scheme.
pub fn address(text: &str) -> Result<UpstreamUrl, String> {
    if text.contains('@') {
        return Err("has credentials in it: the token belongs into TAXIMETER_ADMIN_TOKEN".into());
    }
    let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    UpstreamUrl::parse(&url).map_err(|fault| fault.to_string())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| EVERY.contains(seconds));
    let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| format!("expected {} to {} seconds", EVERY.start(), EVERY.end()))
}

/// Why nothing is shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopError {
    /// No gateway to look at.
    #[error("no answer from {url}: {fault}")]
    Admin {
        /// Of its admin address.
        url: String,
        /// What is wrong.
        fault: AdminFault,
    },
    /// The terminal does not do as it is told.
    #[error("cannot use the terminal: {0}; --once writes plain text")]
    Screen(io::Error),
    /// The answer cannot be written.
    #[error("cannot write the answer: {0}")]
    Output(#[from] io::Error),
}

/// Shows it until told to stop, or once.
///
/// Errors: as [`TopError`] says, where the gateway does not answer the first time, or the terminal
/// does not obey.
pub fn run(args: &TopArgs, out: &mut dyn Write) -> Result<(), TopError> {
    let url = shown(&args.admin);
    let failed = |fault| TopError::Admin { url: url.clone(), fault };
    let (certificate, key) = (args.cert.as_deref(), args.key.as_deref());
    let pair = certificate.zip(key).map(|(certificate, key)| Pair { certificate, key });
    let proof = Proof { token: args.token.as_deref(), pair };
    let client = Client::new(args.admin.clone(), proof, args.ca.as_deref()).map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(TopError::Screen)?;
    runtime.block_on(async {
        let first = client.look().await.map_err(failed)?;
        let mut history = History::new(clock::now(), first);
        if args.once || !io::stdout().is_terminal() {
            if let Ok(month) = client.month().await {
                history.owed(month);
            }
            sleep(args.every).await;
            history.saw(clock::now(), client.look().await.map_err(failed)?);
            return Ok(plain::write(&history.picture(clock::now()), &url, out)?);
        }
        watch(client, history, args.every, &url).await.map_err(TopError::Screen)
    })
}

fn shown(url: &UpstreamUrl) -> String {
    let scheme = if url.tls { "https" } else { "http" };
    format!("{scheme}://{}{}", url.authority(), url.prefix)
}

/// What has been asked.
enum Told {
    Look(Result<Box<Sample>, AdminFault>),
    Month(Month),
}

/// Shows it until a key or a signal ends it.
async fn watch(client: Client, mut history: History, every: Duration, url: &str) -> io::Result<()> {
    let mut stop = Stop::new()?;
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let view = View { url, theme: Theme { colours } };
    let mut taken = Taken::new()?;
    let mut events = terminal::events()?;
    let (tell, mut told) = channel(1);
    tokio::spawn(ask_looks(client.clone(), every, tell.clone()));
    tokio::spawn(ask_months(client, tell));
    let mut redraw = interval(REDRAW_PERIOD);
    redraw.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut screen = Screen::default();
    let mut picture = history.picture(clock::now());
    loop {
        if !screen.paused {
            picture = history.picture(clock::now());
        }
        taken.terminal.draw(|frame| view.draw(&picture, &mut screen, frame))?;
        tokio::select! {
            event = events.recv() => match event {
                Some(Event::Key(key)) if screen.on_key(key) == Next::Quit => return Ok(()),
                Some(_) => {}
                // The terminal is gone.
                None => return Ok(()),
            },
            Some(told) = told.recv() => match told {
                Told::Look(Ok(sample)) => history.saw(clock::now(), *sample),
                Told::Look(Err(fault)) => history.missed(clock::now(), fault.to_string()),
                Told::Month(month) => history.owed(month),
            },
            _ = redraw.tick() => {}
            () = stop.wait() => return Ok(()),
        }
    }
}

/// A slow gateway is asked less often.
async fn ask_looks(client: Client, every: Duration, tell: Sender<Told>) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // There has been a first look already.
    ticks.reset();
    loop {
        ticks.tick().await;
        let looked = client.look().await.map(Box::new);
        if tell.send(Told::Look(looked)).await.is_err() {
            return;
        }
    }
}

/// One that is busy or away is asked again later; what it said before stays.
async fn ask_months(client: Client, tell: Sender<Told>) {
    loop {
        let asked = clock::now();
        let month = client.month().await;
        let took = clock::now() - asked;
        if let Ok(month) = month
            && tell.send(Told::Month(month)).await.is_err()
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
