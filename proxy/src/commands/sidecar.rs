//! What a sidecar should be, as flags: of `inject` and of `webhook`.

use std::num::{NonZeroU16, NonZeroU32};
use std::str::FromStr as _;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use taximeter_config::UpstreamUrl;
use taximeter_sidecar::{Beside, Cpu, JournalSize, Memory, Sidecar, Tenant, drain_seconds};

/// Of this version.
const IMAGE: &str = concat!("taximeter:", env!("CARGO_PKG_VERSION"));

/// Annotations of a pod, `taximeter.io/` and a flag's name, win over these.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sidecar")]
pub(crate) struct SidecarArgs {
    /// Image of the sidecar.
    #[arg(long, value_name = "IMAGE", default_value = IMAGE)]
    image: String,
    /// When nodes ask the registry for it.
    #[arg(long, value_name = "POLICY", default_value = "IfNotPresent",
          value_parser = ["Always", "IfNotPresent", "Never"])]
    image_pull_policy: String,
    /// Whom it stands beside: an inference engine, whose callers come to it, or an application,
    /// whose OPENAI_BASE_URL and ANTHROPIC_BASE_URL point at it.
    #[arg(long, default_value = "engine",
          value_parser = PossibleValuesParser::new(["engine", "application"])
              .try_map(|word| Beside::from_str(&word)))]
    beside: Beside,
    /// Container of the engine, or of the application [default: the one that looks like an engine;
    /// all of an application's].
    #[arg(long, value_name = "NAME")]
    container: Option<String>,
    /// Port of the engine [default: its `--port`, the port that it declares, or its engine's].
    #[arg(long, value_name = "PORT")]
    engine_port: Option<NonZeroU16>,
    /// Port of the sidecar [default: 8080, or 18080, 28080, 38080 where that is taken].
    #[arg(long, value_name = "PORT")]
    listen_port: Option<NonZeroU16>,
    /// Who pays for callers without a key: `namespace`, `label:KEY` of the pod, or a name [default:
    /// `default` beside an engine, `namespace` beside an application].
    #[arg(long, value_name = "TENANT", value_parser = Tenant::from_str)]
    tenant: Option<Tenant>,
    /// What the sidecar asks for an application [default: what OPENAI_BASE_URL was, or OpenAI].
    #[arg(long, value_name = "URL", value_parser = url)]
    upstream: Option<String>,
    /// ConfigMap whose `taximeter.yaml` the sidecar reads [default: the annotation
    /// `taximeter.io/config`, which is written for it]. Its `listen` is the sidecar's port. Its
    /// `admin` is port 9464 with --admin-secret; beside an application without one it does not
    /// count: TAXIMETER_ADMIN in the container says 127.0.0.1:9464, where its probes ask.
    #[arg(long, value_name = "NAME")]
    config_map: Option<String>,
    /// Secret whose `token` opens the admin address (9464) to the cluster: metrics, and probes that
    /// ask whether requests are served [default: it is open to the pod alone].
    #[arg(long, value_name = "NAME")]
    admin_secret: Option<String>,
    /// Most memory that the sidecar may take, from 128Mi; a quarter of it is for bodies that are held at
    /// once.
    #[arg(long, value_name = "BYTES", default_value = Sidecar::MEMORY, value_parser = Memory::from_str)]
    memory: Memory,
    /// What it is promised of processors. It has no limit of them, which would delay tokens.
    #[arg(long, value_name = "CPUS", default_value = Sidecar::CPU, value_parser = Cpu::from_str)]
    cpu: Cpu,
    /// How long requests have to end once the pod's other containers have gone: a part of the pod's
    /// terminationGracePeriodSeconds.
    #[arg(long, value_name = "SECONDS", default_value = Sidecar::DRAIN_SECONDS,
          value_parser = drain_seconds)]
    drain_seconds: NonZeroU32,
    /// Size of the journal's volume, from 128Mi, of which it takes nine tenths; a million short requests
    /// want 2.4 GB without PostgreSQL.
    #[arg(long, value_name = "BYTES", default_value = Sidecar::JOURNAL_SIZE,
          value_parser = JournalSize::from_str)]
    journal_size: JournalSize,
}

fn url(text: &str) -> Result<String, String> {
    UpstreamUrl::parse(text).map(|_| text.to_owned()).map_err(|fault| fault.to_string())
}

impl SidecarArgs {
    /// What they say.
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
            memory: self.memory.clone(),
            cpu: self.cpu.clone(),
            drain_seconds: self.drain_seconds,
            journal_size: self.journal_size.clone(),
        }
    }
}
