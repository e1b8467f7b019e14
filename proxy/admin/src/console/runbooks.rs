//! What to do about each alert: the pages that `runbook_url` names. They are the same for every gateway,
//! so they need no token.

use axum::extract::Path;
use axum::http::header;
use axum::response::IntoResponse;

use crate::problem::ApiError;

macro_rules! pages {
    ($($name:literal,)*) => {
        /// The pages by their names, as Markdown.
        const PAGES: &[(&str, &str)] = &[$((
            concat!($name, ".md"),
            include_str!(concat!("../../../../deploy/prometheus/runbooks/", $name, ".md")),
        )),*];
    };
}

pages! {
    "TaximeterAbsent",
    "TaximeterAuthRefusals",
    "TaximeterBudgetBurns",
    "TaximeterCertificateEnds",
    "TaximeterClientsLeave",
    "TaximeterClockAhead",
    "TaximeterConfigRejected",
    "TaximeterCountsDiffer",
    "TaximeterCredentialRefused",
    "TaximeterDetailsShort",
    "TaximeterDied",
    "TaximeterDown",
    "TaximeterEngineDown",
    "TaximeterEnginePreempts",
    "TaximeterEngineRefuses",
    "TaximeterEngineSpeaksBadHttp",
    "TaximeterEntriesLost",
    "TaximeterEntriesRejected",
    "TaximeterEstimated",
    "TaximeterEventsRejected",
    "TaximeterGatewaySlow",
    "TaximeterGpuThrottled",
    "TaximeterGpuXid",
    "TaximeterHistoryRemovedForOthers",
    "TaximeterKvCacheFull",
    "TaximeterLabelsShared",
    "TaximeterLedgerRoomEnds",
    "TaximeterLedgerSlow",
    "TaximeterLedgerUnwritable",
    "TaximeterLogLinesLost",
    "TaximeterOverloaded",
    "TaximeterPanics",
    "TaximeterPricesOld",
    "TaximeterPushAtRisk",
    "TaximeterPushBehind",
    "TaximeterRequestsNeverEnd",
    "TaximeterRestarts",
    "TaximeterSenderRestarts",
    "TaximeterSourceStale",
    "TaximeterSpoofedIdentity",
    "TaximeterStoreBehind",
    "TaximeterStreamsStall",
    "TaximeterTelemetryLost",
    "TaximeterTenantLimited",
    "TaximeterUncounted",
    "TaximeterUnpriced",
    "TaximeterUpstreamUnhealthy",
    "TaximeterUpstreamUnreachable",
}

/// One page. Browsers show it as text.
pub(super) async fn page(Path(name): Path<String>) -> Result<impl IntoResponse, ApiError> {
    let found = PAGES.iter().find(|(page, _)| *page == name);
    let Some((_, text)) = found else {
        return Err(ApiError::NotFound(
            "there is no page about an alert with this name".to_owned(),
        ));
    };
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], *text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_of_the_folder_is_there() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/prometheus/runbooks");
        let files = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(PAGES.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
    }
}
