//! The arguments for a sidecar, which `inject` and `webhook` share.

use std::num::{NonZeroU16, NonZeroU32};
use std::str::FromStr as _;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use taximeter_config::UpstreamUrl;
use taximeter_sidecar::{Beside, Cpu, JournalSize, Memory, Sidecar, Tenant, drain_seconds};

/// The image of this version.
const IMAGE: &str = concat!("taximeter:", env!("CARGO_PKG_VERSION"));

/// Annotations of a pod override these options: `taximeter.io/` and the name of the option.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sidecar")]
pub(crate) struct SidecarArgs {
    /// Image of the sidecar
    #[arg(long, value_name = "IMAGE", default_value = IMAGE)]
    image: String,
    /// Pull policy of the image
    #[arg(long, value_name = "POLICY", default_value = "IfNotPresent",
          value_parser = ["Always", "IfNotPresent", "Never"])]
    image_pull_policy: String,
    /// What the pod runs: an inference engine, whose clients then connect to the sidecar, or an
    /// application, whose OPENAI_BASE_URL and ANTHROPIC_BASE_URL then point to the sidecar
    #[arg(long, default_value = "engine",
          value_parser = PossibleValuesParser::new(["engine", "application"])
              .try_map(|word| Beside::from_str(&word)))]
    beside: Beside,
    /// Container of the engine or the application [default: the container that looks like an engine;
    /// all containers of an application]
    #[arg(long, value_name = "NAME")]
    container: Option<String>,
    /// Port of the engine [default: its `--port`, else its declared port, else the usual one of the
    /// engine]
    #[arg(long, value_name = "PORT")]
    engine_port: Option<NonZeroU16>,
    /// Port of the sidecar [default: 8080, or 18080, 28080, 38080 if that is in use]
    #[arg(long, value_name = "PORT")]
    listen_port: Option<NonZeroU16>,
    /// Tenant for callers without a key: `namespace`, `label:KEY` of the pod, or a name [default:
    /// `default` for an engine, `namespace` for an application]
    #[arg(long, value_name = "TENANT", value_parser = Tenant::from_str)]
    tenant: Option<Tenant>,
    /// Upstream for an application [default: its old OPENAI_BASE_URL, else OpenAI]
    #[arg(long, value_name = "URL", value_parser = url)]
    upstream: Option<String>,
    /// ConfigMap with a `taximeter.yaml` for the sidecar [default: a generated configuration in the
    /// annotation `taximeter.io/config`]. Its `listen` must be the port of the sidecar. With
    /// --admin-secret, its `admin` must be port 9464. For an application without --admin-secret, its
    /// `admin` has no effect: the probes use 127.0.0.1:9464, which TAXIMETER_ADMIN sets
    #[arg(long, value_name = "NAME")]
    config_map: Option<String>,
    /// Secret with a `token` for the admin address. It opens port 9464 to the cluster, for metrics
    /// and readiness probes [default: only the pod itself can use the admin address]
    #[arg(long, value_name = "NAME")]
    admin_secret: Option<String>,
    /// Read the metrics of the engine, of the host, and of what the pod's annotations `prometheus.io/*`
    /// name (section `fleet` of the configuration, which a ConfigMap has itself)
    #[arg(long)]
    fleet: bool,
    /// Memory limit of the sidecar, at least 128Mi. A quarter of it is for request bodies
    #[arg(long, value_name = "BYTES", default_value = Sidecar::MEMORY, value_parser = Memory::from_str)]
    memory: Memory,
    /// CPU request of the sidecar. There is no CPU limit, because it would delay tokens
    #[arg(long, value_name = "CPUS", default_value = Sidecar::CPU, value_parser = Cpu::from_str)]
    cpu: Cpu,
    /// Time for requests to end after the other containers have ended. It is a part of the pod's
    /// terminationGracePeriodSeconds
    #[arg(long, value_name = "SECONDS", default_value = Sidecar::DRAIN_SECONDS,
          value_parser = drain_seconds)]
    drain_seconds: NonZeroU32,
    /// Size of the journal volume, at least 128Mi. The journal uses at most nine tenths of it. A
    /// million short requests need 2.4 GB without PostgreSQL
    #[arg(long, value_name = "BYTES", default_value = Sidecar::JOURNAL_SIZE,
          value_parser = JournalSize::from_str)]
    journal_size: JournalSize,
}

fn url(text: &str) -> Result<String, String> {
    UpstreamUrl::parse(text).map(|_| text.to_owned()).map_err(|fault| fault.to_string())
}

impl SidecarArgs {
    /// The sidecar in the arguments.
    pub(super) fn sidecar(&self) -> Sidecar {
        Sidecar {
            image: self.image.clone(),
            image_pull_policy: self.image_pull_policy.clone(),
            beside: self.beside,
            container: self.container.clone(),
            engine_port: self.engine_port.map(NonZeroU16::get),
            listen_port: self.listen_port.map(NonZeroU16::get),
            tenant: self.tenant.clone(),
            upstream: self.upstream.clone(),
            config_map: self.config_map.clone(),
            admin_secret: self.admin_secret.clone(),
            fleet: self.fleet,
            memory: self.memory.clone(),
            cpu: self.cpu.clone(),
            drain_seconds: self.drain_seconds,
            journal_size: self.journal_size.clone(),
        }
    }
}
