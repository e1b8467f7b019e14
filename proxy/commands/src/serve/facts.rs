//! Tells what alerts compare with: limits, the dates of price books, and when certificates end.

use std::path::Path;
use std::time::Duration;

use jiff::tz::TimeZone;
use taximeter_config::Config;
use taximeter_gateway::gateway::{Current, Gateway};
use taximeter_net::tls::Validity;
use taximeter_telemetry::{CertificateFact, Facts};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Time between two looks at them: certificates are renewed while the gateway runs.
const LOOK_PERIOD: Duration = Duration::from_secs(10);

/// Tells them now, and again from time to time.
pub(super) fn start(current: Current) {
    let gateway = current.get();
    note(&gateway);
    gateway.background.spawn(async move {
        loop {
            sleep(LOOK_PERIOD).await;
            let gateway = current.get();
            // A slow disk delays nobody.
            let _ = spawn_blocking(move || note(&gateway)).await;
        }
    });
}

fn note(gateway: &Gateway) {
    let config = &gateway.config;
    let date = |(book, date): (_, jiff::civil::Date)| {
        Some((book, date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second()))
    };
    gateway.telemetry.metrics.note_facts(&Facts {
        started_at: gateway.started_at,
        age_max: config.limits.request_timeout,
        keep_days: config.ledger.records_keep_days,
        books: gateway.tariffs.book.dates().filter_map(date).collect(),
        certificates: certificates(config).collect(),
    });
}

/// The certificates that the files have which a configuration names. One that cannot be read is told of
/// by who uses it.
fn certificates(config: &Config) -> impl Iterator<Item = CertificateFact> {
    let otlp = config.telemetry.otlp.client.as_ref();
    let files: [(_, Option<&Path>); 3] = [
        ("listen", config.tls.as_ref().map(|tls| tls.cert.as_path())),
        ("admin", config.admin_tls.as_ref().map(|tls| tls.cert.as_path())),
        ("otlp", otlp.map(|client| client.cert.as_path())),
    ];
    files.into_iter().filter_map(|(kind, file)| {
        let Validity { not_before, not_after } = Validity::of_file(file?).ok()??;
        Some(CertificateFact { kind, not_before, not_after })
    })
}
