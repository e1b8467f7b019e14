//! A collector that is not there, for tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use taximeter_config::{Exporter, OtlpProtocol, UpstreamUrl};

use super::collector::Collector;
use super::outcome::{ExportOutcome, Teller};
use super::signal::TRACES;

/// What a pusher tells.
pub(super) type Told = Arc<Mutex<Vec<String>>>;

/// Where nobody listens, who tells of it, and what is told.
pub(super) fn nobody() -> (Collector, Teller, Told) {
    let exporter = Exporter {
        url: UpstreamUrl::parse("http://127.0.0.1:1").expect("a URL"),
        protocol: OtlpProtocol::HttpProtobuf,
        headers: BTreeMap::new(),
        gzip: false,
        timeout: Duration::from_secs(1),
        ca: None,
        client: None,
    };
    let told = Told::default();
    let heard = told.clone();
    let tell = move |told: &ExportOutcome<'_>| heard.lock().unwrap().push(format!("{told:?}"));
    let teller = Teller { signal: TRACES.name, tell: Box::new(tell) };
    (Collector::new(&exporter, TRACES).unwrap(), teller, told)
}
