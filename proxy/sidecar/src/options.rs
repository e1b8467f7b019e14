//! What the sidecar should be: what flags say, and over it what the pod says of itself.

use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use taximeter_config::{UpstreamUrl, is_tenant_name};

use crate::pod;
use crate::quantity::{Cpu, JournalSize, Memory};
use crate::unfit::Unfit;

/// Whom the sidecar stands beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Beside {
    /// An inference engine, whose callers come to the sidecar.
    Engine,
    /// A program that asks models, and asks the sidecar in place of a provider.
    Application,
}

impl Beside {
    /// As labels and annotations have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Application => "application",
        }
    }
}

impl FromStr for Beside {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "engine" => Ok(Self::Engine),
            "application" => Ok(Self::Application),
            _ => Err("is neither `engine` nor `application`".to_owned()),
        }
    }
}

/// Who pays for what callers without a credential ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tenant {
    /// Called as the pod's namespace.
    Namespace,
    /// Called as this label of the pod says.
    Label(String),
    /// This one.
    Named(String),
}

impl FromStr for Tenant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("label:")) {
            ("namespace", _) => Ok(Self::Namespace),
            (_, Some("")) => Err("names no label".to_owned()),
            (_, Some(label)) => Ok(Self::Label(label.to_owned())),
            _ if is_tenant_name(text) => Ok(Self::Named(text.to_owned())),
            _ => Err("is neither `namespace`, nor `label:KEY`, nor a tenant's name".to_owned()),
        }
    }
}

/// What the sidecar should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sidecar {
    /// Where its program is.
    pub image: String,
    /// When nodes ask the registry for it: `Always`, `IfNotPresent` or `Never`.
    pub image_pull_policy: String,
    /// Whom it stands beside.
    pub beside: Beside,
    /// The container of the engine, or of the application; `None` finds out, or takes all.
    pub container: Option<String>,
    /// Where the engine listens; `None` finds out.
    pub engine_port: Option<u16>,
    /// Where the sidecar listens; `None` takes 8080, or the first of some others that is free.
    pub listen_port: Option<u16>,
    /// Who pays; `None` is `default` beside an engine, and the namespace beside an application.
    pub tenant: Option<Tenant>,
    /// What is asked beside an application, whatever `OPENAI_BASE_URL` was.
    pub upstream: Option<String>,
    /// Of the configuration, under the key `taximeter.yaml`; `None` puts one into an annotation.
    pub config_map: Option<String>,
    /// Of the token (key `token`) with which the admin address is open to the cluster.
    pub admin_secret: Option<String>,
    /// Whether it reads the metrics of the engine, of the host, and of what the pod's annotations name.
    pub fleet: bool,
    /// Most memory that it may take; of it a quarter is for bodies that are held at once.
    pub memory: Memory,
    /// What it takes of processors when others want them too.
    pub cpu: Cpu,
    /// How long requests have to end once the pod's other containers have gone, in seconds.
    pub drain_seconds: NonZeroU32,
    /// The volume of the journal.
    pub journal_size: JournalSize,
}

/// A day: what `limits.drain_seconds` may be.
const DRAIN_SECONDS_MAX: u32 = 86_400;

/// What every name of ours begins with.
const PREFIX: &str = "taximeter.io/";

impl Sidecar {
    /// `memory` unless told.
    pub const MEMORY: &str = "512Mi";
    /// `cpu` unless told.
    pub const CPU: &str = "50m";
    /// `drain_seconds` unless told.
    pub const DRAIN_SECONDS: &str = "5";
    /// `journal_size` unless told.
    pub const JOURNAL_SIZE: &str = "1Gi";

    /// These options under what the annotations of a pod say.
    ///
    /// Errors: the first annotation that does not do.
    pub(crate) fn told_by(&self, metadata: &serde_json::Value) -> Result<Self, Unfit> {
        let mut told = self.clone();
        if let Some(beside) = read(metadata, "beside", Beside::from_str)? {
            told.beside = beside;
        }
        let name = |text: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
            let good = !text.is_empty() && text.len() <= 253 && text.chars().all(fits);
            good.then(|| text.to_owned()).ok_or_else(|| "is no name of Kubernetes".to_owned())
        };
        let port = |text: &str| {
            text.parse().ok().filter(|port| *port > 0).ok_or_else(|| "is no port".to_owned())
        };
        told.container = read(metadata, "container", name)?.or(told.container);
        told.config_map = read(metadata, "config-map", name)?.or(told.config_map);
        told.admin_secret = read(metadata, "admin-secret", name)?.or(told.admin_secret);
        told.engine_port = read(metadata, "engine-port", port)?.or(told.engine_port);
        told.listen_port = read(metadata, "listen-port", port)?.or(told.listen_port);
        told.tenant = read(metadata, "tenant", Tenant::from_str)?.or(told.tenant);
        let url = |text: &str| match UpstreamUrl::parse(text) {
            Ok(_) => Ok(text.to_owned()),
            Err(fault) => Err(fault.to_string()),
        };
        told.upstream = read(metadata, "upstream", url)?.or(told.upstream);
        let flag =
            |text: &str| text.parse().map_err(|_| "is neither \"true\" nor \"false\"".to_owned());
        told.fleet = read(metadata, "fleet", flag)?.unwrap_or(told.fleet);
        told.memory = read(metadata, "memory", Memory::from_str)?.unwrap_or(told.memory);
        told.cpu = read(metadata, "cpu", Cpu::from_str)?.unwrap_or(told.cpu);
        let size = read(metadata, "journal-size", JournalSize::from_str)?;
        told.journal_size = size.unwrap_or(told.journal_size);
        let drain = read(metadata, "drain-seconds", drain_seconds)?;
        told.drain_seconds = drain.unwrap_or(told.drain_seconds);
        Ok(told)
    }
}

/// How long requests have to end, as flags and annotations say it.
///
/// Errors: it is none, or more than a configuration takes.
pub fn drain_seconds(text: &str) -> Result<NonZeroU32, String> {
    let seconds =
        text.parse().ok().filter(|seconds: &NonZeroU32| seconds.get() <= DRAIN_SECONDS_MAX);
    seconds.ok_or_else(|| format!("is no whole number of seconds from 1 to {DRAIN_SECONDS_MAX}"))
}

/// Whether the pod says that it wants a sidecar, or none: by annotation, or else by label.
///
/// Errors: what it says is neither.
pub(crate) fn wish(metadata: &serde_json::Value) -> Result<Option<bool>, Unfit> {
    let key = format!("{PREFIX}inject");
    let said = ["annotations", "labels"]
        .iter()
        .find_map(|place| pod::text(metadata.get(place)?.get(&key)?));
    match said {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(other) => Err(Unfit::Told {
            key,
            value: other.to_owned(),
            problem: "is neither \"true\" nor \"false\"".to_owned(),
        }),
    }
}

fn read<T>(
    metadata: &serde_json::Value,
    name: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Unfit> {
    let key = format!("{PREFIX}{name}");
    let Some(value) = metadata.get("annotations").and_then(|all| all.get(&key)) else {
        return Ok(None);
    };
    let value = value.as_str().unwrap_or_default();
    let told = |problem| Unfit::Told { key: key.clone(), value: value.to_owned(), problem };
    parse(value).map(Some).map_err(told)
}
