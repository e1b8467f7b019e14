//! Starts the senders to the receivers and collectors that a configuration names.

use std::sync::Arc;

use anyhow::Context as _;
use taximeter_config::{LogsExport, MetricsExport, OtelSettings, TracesExport};
use taximeter_gateway::gateway::Gateway;
use taximeter_journal::PushOutcome;
use taximeter_push::{Delivery, Source};
use taximeter_store::Location;
use taximeter_system::clock;
use taximeter_telemetry::events::{EventsPushed, TelemetryPushed};
use taximeter_telemetry::otlp::MetricsSource;
use taximeter_telemetry::pusher;

/// Sends finished requests to the receiver of `export.push`, if there is one.
pub(super) fn delivery(gateway: &Arc<Gateway>) -> anyhow::Result<Option<Delivery>> {
    let Some(push) = &gateway.config.export.push else { return Ok(None) };
    let telemetry = gateway.telemetry.clone();
    let config = &gateway.config;
    let source = Source {
        data_dir: &config.data_dir,
        store: Location::of(config, &gateway.id),
        newest: gateway.journal.sequence(),
        keep_days: config.ledger.records_keep_days,
        budget: gateway.disk_budget.clone(),
    };
    let tell = move |outcome: &PushOutcome<'_>| {
        telemetry.exports.note_push(outcome);
        telemetry.emit(&EventsPushed(outcome));
    };
    Ok(Some(Delivery::start(source, push, tell)?))
}

/// Sends metrics, spans and log records to OTLP collectors, if there are any.
pub(super) fn otlp(
    gateway: &Arc<Gateway>,
    otel: &OtelSettings,
) -> anyhow::Result<Vec<pusher::Pusher>> {
    let tell = || {
        let telemetry = gateway.telemetry.clone();
        move |outcome: &pusher::ExportOutcome<'_>| {
            telemetry.exports.note(outcome);
            telemetry.emit(&TelemetryPushed(outcome));
        }
    };
    let begin =
        |signal: &pusher::Signal, exporter| gateway.telemetry.exports.begin(signal.name, exporter);
    let metrics = &gateway.telemetry.metrics;
    let resource = metrics.resource();
    let mut pushers = Vec::new();
    if let Some(MetricsExport { exporter, interval, temporality, histograms }) = &otel.metrics {
        let form = (*temporality, *histograms);
        let source = MetricsSource::new(metrics.genai, &resource, metrics.since, form, {
            let process = gateway.process().clone();
            move || (process.telemetry.metrics.readings(&process.vitals()), clock::wall())
        });
        begin(&pusher::METRICS, exporter);
        let pusher = pusher::Pusher::start(exporter, pusher::METRICS, *interval, source, tell());
        pushers.push(pusher.context("cannot push metrics")?);
    }
    if let (Some(traces), Some(TracesExport { exporter, interval, .. })) =
        (&gateway.telemetry.traces, &otel.traces)
    {
        let source = traces.source(&resource);
        begin(&pusher::TRACES, exporter);
        let pusher =
            pusher::Pusher::start_queue(exporter, pusher::TRACES, *interval, source, tell());
        pushers.push(pusher.context("cannot push spans")?);
    }
    if let (Some(logs), Some(LogsExport { exporter, interval })) =
        (&gateway.telemetry.log.logs, &otel.logs)
    {
        let source = logs.source(&resource);
        begin(&pusher::LOGS, exporter);
        let pusher = pusher::Pusher::start_queue(exporter, pusher::LOGS, *interval, source, tell());
        pushers.push(pusher.context("cannot push log lines")?);
    }
    Ok(pushers)
}
