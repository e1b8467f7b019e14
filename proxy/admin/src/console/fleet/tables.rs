//! A table each of engines, GPUs and hosts.

use maud::{Markup, html};

use super::figures::{bytes, bytes_per_second, celsius, clock, number, per_second, share, watts};
use super::subject::{Subject, Told, share as share_of};
use crate::console::text::{name, name_or_none};

/// An engine: is it full, does it wait, and what does it do?
pub(super) fn engines(engines: &[Subject<'_>]) -> Markup {
    html! {
        @if !engines.is_empty() {
            section aria-labelledby="engines" { h2 #engines { "Engines" } div.scroll { table {
                caption { "Queue, memory and work of each engine. Rates are those between the last two scrapes." }
                thead { tr {
                    th scope="col" { "Engine" }
                    th scope="col" { "Model" }
                    th scope="col" { "Upstream" }
                    th.number scope="col" { "Running" }
                    th.number scope="col" { "Waiting" }
                    th.number scope="col" { "KV cache in use" }
                    th.number scope="col" { "Prefix cache hits" }
                    th.number scope="col" { "Preemptions" }
                    th.number scope="col" { "Prompt tokens" }
                    th.number scope="col" { "Generated tokens" }
                } }
                tbody { @for engine in engines { (engine_row(engine)) } }
            } } }
        }
    }
}

fn engine_row(engine: &Subject<'_>) -> Markup {
    let of = |suffix: &str| format!("taximeter.fleet.engine.{suffix}");
    let hits = share_of(
        engine.rate(&of("prefix_hit_tokens"), &[]),
        engine.rate(&of("prefix_query_tokens"), &[]),
    );
    // What the engine says itself, where it counts no tokens.
    let hits = engine.value(&of("prefix_hit_rate"), &[]).or(hits);
    html! {
        tr {
            th scope="row" {
                (engine.program()) " at " (name(&engine.source.name))
                @for label in ["k8s.pod.name", "engine", "engine.rank"] {
                    @if let Some(value) = engine.label(label) { ", " (word(label)) " " (name(value)) }
                }
            }
            td { (name_or_none(engine.label("gen_ai.request.model"))) }
            td { (name_or_none(engine.upstream())) }
            td.number { (number(engine.value(&of("requests_running"), &[]))) }
            td.number { (number(engine.value(&of("requests_waiting"), &[]))) }
            td.number { (share(engine.value(&of("kv_cache_usage"), &[]))) }
            td.number { (share(hits)) }
            td.number { (per_second(engine.rate(&of("preemptions"), &[]))) }
            td.number { (per_second(engine.rate(&of("prompt_tokens"), &[]))) }
            td.number { (per_second(engine.rate(&of("generation_tokens"), &[]))) }
        }
    }
}

/// A label, in a word.
fn word(label: &str) -> &str {
    match label {
        "k8s.pod.name" => "pod",
        "engine.rank" => "rank",
        _ => "engine",
    }
}

/// A GPU: what does it do and draw, is it held down or ill, and whose is it?
pub(super) fn gpus(gpus: &[Subject<'_>]) -> Markup {
    html! {
        @if !gpus.is_empty() {
            section aria-labelledby="gpus" { h2 #gpus { "GPUs" } div.scroll { table {
                caption {
                    "Utilisation says how long a GPU did something, not how much: the multiprocessors' "
                    "share says more."
                }
                thead { tr {
                    th scope="col" { "GPU" }
                    th scope="col" { "Host" }
                    th scope="col" { "Owner" }
                    th scope="col" { "Upstream" }
                    th.number scope="col" { "Utilisation" }
                    th.number scope="col" { "Multiprocessors" }
                    th.number scope="col" { "Memory" }
                    th.number scope="col" { "Power" }
                    th.number scope="col" { "Clock" }
                    th.number scope="col" { "Temperature" }
                    th.number scope="col" { "Links" }
                    th scope="col" { "Held down by" }
                    th.number scope="col" { "Last XID" }
                } }
                tbody { @for gpu in gpus { (gpu_row(gpu)) } }
            } } }
        }
    }
}

fn gpu_row(gpu: &Subject<'_>) -> Markup {
    let of = |suffix: &str| format!("taximeter.fleet.gpu.{suffix}");
    let links = gpu.rate("hw.gpu.io", &[]).or_else(|_| gpu.value(&of("link.io"), &[]));
    let owners = Some(gpu.owners()).filter(|owners| !owners.is_empty());
    html! {
        tr {
            th scope="row" {
                (name_or_none(gpu.label("hw.model")))
                @if let Some(id) = gpu.label("hw.id") { br; (name(id)) }
                @if let Some(part) = gpu.label("hw.gpu.part") { br; "part " (name(part)) }
            }
            td { (name_or_none(gpu.label("host.name"))) }
            td { (name_or_none(owners.as_deref())) }
            td { (name_or_none(gpu.upstream())) }
            td.number { (share(gpu.value("hw.gpu.utilization", &[("hw.gpu.task", "general")]))) }
            td.number { (share(gpu.value(&of("sm.active"), &[]))) }
            td.number {
                (bytes(gpu.value("hw.gpu.memory.usage", &[])))
                @if let Ok(limit) = gpu.value("hw.gpu.memory.limit", &[]) { " of " (bytes(Ok(limit))) }
            }
            td.number {
                (watts(gpu.value("hw.power", &[])))
                @if let Ok(limit) = gpu.value(&of("power.limit"), &[]) { " of " (watts(Ok(limit))) }
            }
            td.number { (clock(gpu.value(&of("clock"), &[("clock", "sm")]))) }
            td.number { (celsius(hottest(gpu))) }
            td.number { (bytes_per_second(links)) }
            td { (held_down(gpu)) }
            td.number { (number(gpu.value(&of("xid.last"), &[]))) }
        }
    }
}

/// The hottest sensor.
fn hottest<'a>(gpu: &Subject<'a>) -> Told<'a> {
    let all = gpu.all("hw.temperature", &[]);
    let values = all.iter().filter_map(|one| one.value);
    values.reduce(f64::max).map_or_else(|| gpu.value("hw.temperature", &[]), Ok)
}

/// The reasons that hold the clocks down now.
fn held_down(gpu: &Subject<'_>) -> Markup {
    let now = gpu.all("taximeter.fleet.gpu.throttled", &[]);
    let lately = gpu.all("taximeter.fleet.gpu.throttle", &[]);
    let reasons: Vec<_> = now
        .iter()
        .filter(|one| one.value.is_some_and(|value| value > 0.0))
        .chain(lately.iter().filter(|one| one.rate.is_some_and(|rate| rate > 0.0)))
        .filter_map(|one| one.labels.get("reason"))
        .map(|reason| reason.replace('_', " "))
        .collect();
    let is_known = !now.is_empty() || lately.iter().any(|one| one.rate.is_some());
    html! {
        @if !reasons.is_empty() { (name(&reasons.join(", "))) }
        @else if is_known { "nothing" }
        @else { (number(gpu.value("taximeter.fleet.gpu.throttled", &[]))) }
    }
}

/// A host: does it lack CPU, memory, disk or network?
pub(super) fn hosts(hosts: &[Subject<'_>]) -> Markup {
    html! {
        @if !hosts.is_empty() {
            section aria-labelledby="hosts" { h2 #hosts { "Hosts" } div.scroll { table {
                caption {
                    "Waiting is the share of time in which some task waited for the resource (PSI): above "
                    "a few per cent it is felt."
                }
                thead { tr {
                    th scope="col" { "Host" }
                    th.number scope="col" { "CPU busy" }
                    th.number scope="col" { "CPU waiting" }
                    th.number scope="col" { "Stolen" }
                    th.number scope="col" { "Memory free" }
                    th.number scope="col" { "Memory waiting" }
                    th.number scope="col" { "I/O waiting" }
                    th.number scope="col" { "Network" }
                    th.number scope="col" { "Sent again" }
                    th.number scope="col" { "Killed for memory" }
                } }
                tbody { @for host in hosts { (host_row(host)) } }
            } } }
        }
    }
}

fn host_row(host: &Subject<'_>) -> Markup {
    let cpu = |mode: &str| {
        share_of(
            host.rate("system.cpu.time", &[("cpu.mode", mode)]),
            host.rate("system.cpu.time", &[]),
        )
    };
    let waiting = |resource: &str| {
        let having = [("resource", resource), ("kind", "some")];
        host.rate("taximeter.fleet.host.pressure.time", &having)
    };
    let memory = share_of(
        host.value("system.memory.linux.available", &[]),
        host.value("system.memory.limit", &[]),
    );
    let again = share_of(
        host.rate("taximeter.fleet.net.retransmits", &[]),
        host.rate("taximeter.fleet.net.segments", &[]),
    );
    html! {
        tr {
            th scope="row" {
                @match host.label("host.name") {
                    Some(host) => (name(host)),
                    None => (name(&host.source.name)),
                }
            }
            td.number { (share(cpu("idle").map(|idle| 1.0 - idle))) }
            td.number { (share(waiting("cpu"))) }
            td.number { (share(cpu("steal"))) }
            td.number { (share(memory)) }
            td.number { (share(waiting("memory"))) }
            td.number { (share(waiting("io"))) }
            td.number { (bytes_per_second(host.rate("system.network.io", &[]))) }
            td.number { (share(again)) }
            td.number { (number(host.value("taximeter.fleet.host.oom_kills", &[]))) }
        }
    }
}
