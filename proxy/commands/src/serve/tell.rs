//! Log lines of a start.

use taximeter_config::{IgnoredVariable, Upstream};
use taximeter_journal::{Loss, Recovery};
use taximeter_pricing::PriceBook;
use taximeter_system::clock;
use taximeter_telemetry::{LogEvent, Telemetry};

use crate::model_files::ModelFiles;

/// Logs the environment variables that the gateway ignores.
pub(super) fn ignored(telemetry: &Telemetry, ignored: &[IgnoredVariable]) {
    for IgnoredVariable { variable, why } in ignored {
        let fields = [("name", variable.as_str().into()), ("reason", why.to_string().into())];
        telemetry.log.tell(LogEvent::VariableIgnored, fields);
    }
}

/// Tells what the start found in the ledger.
pub(super) fn recovery(telemetry: &Telemetry, recovery: &Recovery) {
    let (torn, lost): (Vec<_>, Vec<_>) =
        recovery.losses.iter().partition(|loss| loss.torn_bytes.is_some());
    let entries = |losses: Vec<&Loss>| losses.iter().map(|loss| loss.entries).sum::<u64>();
    let unpriced = recovery.died.iter().filter(|record| record.cost.is_none()).count();
    telemetry.log.tell(
        LogEvent::LedgerOpened,
        [
            ("from_seq", recovery.from_seq.into()),
            ("entries", recovery.entries.into()),
            ("torn_bytes", recovery.torn_bytes.into()),
            ("torn_entries", entries(torn).into()),
            ("lost_entries", entries(lost).into()),
            ("stray_entries", recovery.strays.into()),
            ("gateway_died", recovery.died.len().into()),
            ("gateway_died_unpriced", unpriced.into()),
        ],
    );
}

/// Logs the currencies without an exchange rate.
pub(super) fn prices(telemetry: &Telemetry, book: &PriceBook) {
    for currency in book.without_exchange(clock::wall()) {
        telemetry.log.tell(
            LogEvent::PricesWithoutExchange,
            [
                ("currency", currency.as_str().into()),
                ("bills_in", book.currency().as_str().into()),
                ("hint", "set `prices.exchange`, or models priced in it have no known cost".into()),
            ],
        );
    }
}

/// Logs the upstreams that get credentials without encryption, over networks of others.
pub(super) fn unencrypted(telemetry: &Telemetry, upstreams: &[Upstream]) {
    for upstream in upstreams.iter().filter(|up| up.shows_credential_to_everyone()) {
        let fields = [
            ("upstream", upstream.name.as_str().into()),
            ("hint", "use https in its `url`".into()),
        ];
        telemetry.log.tell(LogEvent::CredentialUnencrypted, fields);
    }
}

/// Logs the vocabularies that were read.
pub(super) fn tokenizers(telemetry: &Telemetry, loaded: &[ModelFiles]) {
    for ModelFiles { path, fallback, .. } in loaded {
        let path = path.display().to_string();
        match fallback {
            None => telemetry.log.tell(LogEvent::TokenizerLoaded, [("path", path.into())]),
            // This count is exact as well, but slower.
            Some(why) => telemetry.log.tell(
                LogEvent::TokenizerFallback,
                [("path", path.into()), ("reason", why.as_str().into())],
            ),
        }
    }
}
