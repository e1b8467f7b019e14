//! The keys under `fleet`.

use std::path::PathBuf;

use taximeter_yaml::{Kind, Node};

use crate::fleet::{EnginesWord, GpuId, KeepFor, LookPeriod, ScrapeUrl};
use crate::json_schema::{Described, Schema, default, required, without};
use crate::numbers::AtLeast;
use crate::reader::{List, Optional, Read, Reader, Required, Spanned, keys};
use crate::values::Name;

keys! {
    /// What Taximeter reads of engines, GPUs and hosts while it runs. `{}` takes all defaults.
    RawFleet {
        /// The engines that Taximeter asks for their metrics: with `auto` each upstream at a loopback,
        /// private or cluster address, at `/metrics`; or a list of URLs; or `off`. It asks each second
        /// while requests run there, else every 15 seconds.
        engines: Optional<RawEngines> = default("auto").example(r#"["http://vllm.example:8000"]"#),
        /// The file in which Kubernetes shows the annotations of the gateway's own pod (downward API,
        /// `metadata.annotations`). Where `prometheus.io/scrape` is `"true"`, Taximeter also asks the pod at
        /// `prometheus.io/port`, `path` and `scheme`. It reads the file again when it changes.
        annotations: Optional<Spanned<PathBuf>> =
            without("no annotations are read").example("/run/taximeter/pod/annotations"),
        /// Exporters of GPUs.
        gpus: Optional<RawGpuExporters> = without("no exporters of GPUs"),
        /// The host of the gateway, and exporters of hosts.
        hosts: Optional<RawHosts> = without("the defaults of its keys"),
        /// How long Taximeter keeps what it reads, in Parquet files in `samples` of the data directory. It
        /// keeps at least so much, and whole days.
        memory: Optional<RawMemory> = without("the defaults of its keys"),
        /// The most bytes that these files may take. The oldest go first, by the second before others. While
        /// the data directory has too little room, they go before records of requests do.
        memory_bytes_max: Optional<Spanned<AtLeast<0>>> =
            without("a twentieth of the room of the data directory").example("1073741824"),
    }
}

keys! {
    /// How long samples are kept.
    RawMemory {
        /// Each value that is read, on the second.
        seconds("1s"): Optional<Spanned<KeepFor>> = default("48h").example("24h"),
        /// Mean, least and most of each minute; what counters grew by.
        minutes("1m"): Optional<Spanned<KeepFor>> = default("90d").example("30d"),
        /// The same of each hour.
        hours("1h"): Optional<Spanned<KeepFor>> = default("3y").example("1y"),
    }
}

keys! {
    /// Exporters of GPUs, such as dcgm-exporter.
    RawGpuExporters {
        /// Their URLs; `/metrics` where a URL has no path. Taximeter asks every 5 seconds.
        scrape: Optional<List<Spanned<ScrapeUrl>>> =
            without("no exporters").example(r#"["http://dcgm:9400"]"#),
        /// The socket at which the kubelet of this node says which container has which GPU (podresources
        /// API, v1). Taximeter asks every 5 seconds.
        podresources: Optional<Spanned<PathBuf>> = without("the kubelet is not asked")
            .example("/var/lib/kubelet/pod-resources/kubelet.sock"),
        /// Which GPUs an upstream runs on. This outranks the kubelet, and labels of exporters.
        assigned: Optional<List<RawAssigned>> = without("what the kubelet and exporters say"),
    }
}

keys! {
    /// The GPUs of an upstream.
    RawAssigned {
        /// The name of the upstream.
        upstream: Required<Spanned<Name>> = required().example("local"),
        /// The ids of its GPUs, as exporters print them; of a part of a GPU with its number behind it, as
        /// in `GPU-5fd4f087-86f3-7a43-b711-4771313afc50/2`. No two upstreams have the same.
        ids: Required<List<Spanned<GpuId>>> =
            required().example(r#"["GPU-5fd4f087-86f3-7a43-b711-4771313afc50"]"#),
    }
}

keys! {
    /// The host of the gateway, and exporters of hosts.
    RawHosts {
        /// Whether Taximeter reads `/proc` of the host that it runs on.
        local: Optional<Spanned<bool>> = default("on").example("off"),
        /// The time between two looks at `/proc`, from 0.1 seconds on.
        local_interval_seconds: Optional<Spanned<LookPeriod>> = default("1").example("0.1"),
        /// The URLs of exporters, such as node_exporter; `/metrics` where a URL has no path. Taximeter
        /// asks every 5 seconds.
        scrape: Optional<List<Spanned<ScrapeUrl>>> =
            without("no exporters").example(r#"["http://node:9100"]"#),
    }
}

/// `auto`, `off`, or URLs.
#[derive(Debug)]
pub(crate) enum RawEngines {
    Word(Spanned<EnginesWord>),
    Urls(List<Spanned<ScrapeUrl>>),
}

impl Read for RawEngines {
    fn read(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        match &node.kind {
            Kind::List(_) => List::read(node, path, reader).map(Self::Urls),
            _ => Spanned::read(node, path, reader).map(Self::Word),
        }
    }
}

impl Described for RawEngines {
    fn described() -> Schema {
        Schema::AnyOf(vec![
            Spanned::<EnginesWord>::described(),
            List::<Spanned<ScrapeUrl>>::described(),
        ])
    }
}
