//! What a pod should be.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::beside::application::{self, Former, Redirected};
use crate::beside::engine::{self, Engine};
use crate::configuration::{ADMIN_PORT, Settings, Upstream};
use crate::container::{self, CONFIG, Container, NAME};
use crate::options::{Beside, Sidecar, Tenant};
use crate::pod::{list, list_in, name_of, named, object_in, port, put, put_named, take, text};
use crate::quantity::JournalSize;
use crate::unfit::Unfit;

/// The annotation that says what was there before.
const INJECTED: &str = "taximeter.io/injected";
/// The label that says whom we stand beside.
const SIDECAR: &str = "taximeter.io/sidecar";
/// Where the sidecar listens unless told: the first of these that nobody has.
const LISTEN_PORTS: [u16; 4] = [8080, 18080, 28080, 38080];

/// A pod, or the template of one, with the sidecar in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Injected {
    /// Its `metadata` and `spec`, and whatever else was there.
    pub pod: Value,
    /// What whoever runs it should know.
    pub notes: Vec<Note>,
}

/// What whoever runs a pod should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// Who asks for the engine's port by its number goes past the sidecar.
    PastByNumber {
        /// The number.
        engine: u16,
        /// The name of the sidecar's port.
        port_name: &'static str,
    },
    /// A container takes variables from where they cannot be read; the text says what to do.
    VariablesElsewhere(String),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PastByNumber { engine, port_name } => write!(
                f,
                "a Service that finds the engine by its number {engine} goes past the meter; let \
                 its targetPort be `{port_name}`"
            ),
            Self::VariablesElsewhere(text) => f.write_str(text),
        }
    }
}

/// What an earlier injection changed.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Before {
    beside: Beside,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    engine: Option<EngineBefore>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    variables: Vec<Former>,
    /// Of the journal's volume; `None` is `Sidecar::JOURNAL_SIZE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    journal_size: Option<String>,
}

impl Before {
    /// Nothing was changed yet.
    const fn beside(beside: Beside) -> Self {
        Self { beside, engine: None, variables: Vec::new(), journal_size: None }
    }

    /// The size of the volume that was made for the journal.
    fn journal_size(&self) -> Option<JournalSize> {
        self.journal_size.as_deref().unwrap_or(Sidecar::JOURNAL_SIZE).parse().ok()
    }
}

/// The engine's port, and what it was called.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EngineBefore {
    container: String,
    port: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    port_name: Option<String>,
}

impl EngineBefore {
    fn engine(&self) -> Engine {
        let Self { container, port, port_name } = self;
        Engine { container: container.clone(), port: *port, port_name: port_name.clone() }
    }
}

/// `pod` as it should be: with the sidecar that `sidecar` and the pod's annotations ask for.
/// `None` where the pod says that it wants none, or where it has to ask and does not
/// (`only_if_asked`).
///
/// What is there of an earlier injection is brought up to date, so that a second one changes
/// nothing.
///
/// Errors: what is in the way.
pub fn inject(
    pod: &Value,
    sidecar: &Sidecar,
    only_if_asked: bool,
) -> Result<Option<Injected>, Unfit> {
    let metadata = pod.get("metadata").unwrap_or(&Value::Null);
    if !crate::options::wish(metadata)?.unwrap_or(!only_if_asked) {
        return Ok(None);
    }
    let sidecar = sidecar.told_by(metadata)?;
    let before = before(pod)?;
    let former_size = before.as_ref().and_then(Before::journal_size);
    let mut pod = pod.clone();
    let spec = object_in(&mut pod, "spec")?;
    fits(spec, before.is_some())?;
    let known = before.filter(|before| {
        before.beside == sidecar.beside || {
            restore(spec, before);
            false
        }
    });
    let port = listen_port(spec, &sidecar)?;
    let (work, notes) = match sidecar.beside {
        Beside::Engine => beside_engine(spec, &sidecar, port, known.as_ref())?,
        Beside::Application => beside_application(spec, &sidecar, port, known.as_ref())?,
    };
    let tenant = match (&sidecar.tenant, sidecar.beside) {
        (Some(tenant), _) => Some(tenant),
        (None, Beside::Application) => Some(&Tenant::Namespace),
        (None, Beside::Engine) => None,
    };
    if let Some(Tenant::Label(key)) = tenant
        && metadata.get("labels").and_then(|all| all.get(key)?.as_str()).is_none_or(str::is_empty)
    {
        return Err(Unfit::NoTenantLabel(key.clone()));
    }
    let ours = Container {
        sidecar: &sidecar,
        port,
        port_name: &work.port_name,
        tenant,
        variables: &work.variables,
    };
    put_named(list_in(spec, "initContainers")?, ours.value(), 0);
    put_volumes(spec, &sidecar, former_size.as_ref())?;
    let text = Settings {
        beside: sidecar.beside,
        listen_port: port,
        upstreams: work.upstreams,
        tenant: tenant.is_some(),
        admin: sidecar.admin_secret.is_some(),
        fleet: sidecar.fleet,
        room: container::room(list_in(spec, "volumes")?, &sidecar.journal_size),
        drain_seconds: sidecar.drain_seconds,
        bodies: sidecar.memory.count() / 4,
    }
    .text();
    let size = sidecar.journal_size.to_string();
    let before =
        Before { journal_size: (size != Sidecar::JOURNAL_SIZE).then_some(size), ..work.before };
    annotate(&mut pod, &sidecar, text, &before)?;
    Ok(Some(Injected { pod, notes }))
}

/// What standing beside something takes, and changes.
struct Work {
    port_name: String,
    upstreams: Vec<Upstream>,
    variables: Vec<Value>,
    before: Before,
}

fn before(pod: &Value) -> Result<Option<Before>, Unfit> {
    let annotations = pod.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let Some(value) = annotations.and_then(|all| all.get(INJECTED)) else { return Ok(None) };
    let value = value.as_str().unwrap_or_default();
    serde_json::from_slice(value.as_bytes()).map(Some).map_err(|fault| Unfit::Told {
        key: INJECTED.to_owned(),
        value: value.to_owned(),
        problem: format!("was not written by us ({fault}); remove it"),
    })
}

/// The container of the engine that an earlier injection found, and the engine's port.
pub(crate) fn engine_before(pod: &Value) -> Option<(String, u16)> {
    let engine = before(pod).ok()??.engine?;
    Some((engine.container, engine.port))
}

fn fits(spec: &Value, ours_is_there: bool) -> Result<(), Unfit> {
    if list(spec, "containers").is_empty() {
        return Err(Unfit::NoContainers);
    }
    let is = |place: &str, value: &str| spec.pointer(place).and_then(text) == Some(value);
    if is("/os/name", "windows") || is("/nodeSelector/kubernetes.io~1os", "windows") {
        return Err(Unfit::Windows);
    }
    if spec.get("hostNetwork").and_then(Value::as_bool) == Some(true) {
        return Err(Unfit::HostNetwork);
    }
    let inits = list(spec, "initContainers");
    let foreign = named(list(spec, "containers"), NAME).is_some()
        || (named(inits, NAME).is_some() && !ours_is_there);
    if foreign { Err(Unfit::Foreign) } else { Ok(()) }
}

/// Whoever else of the pod has a port.
fn who_has(spec: &Value, wanted: u16) -> Option<&str> {
    let inits = list(spec, "initContainers").iter().filter(|init| name_of(init) != NAME);
    let has = |container: &&Value| {
        let numbers =
            list(container, "ports").iter().filter_map(|entry| entry.get("containerPort"));
        numbers.filter_map(port).any(|port| port == wanted)
    };
    list(spec, "containers").iter().chain(inits).find(has).map(name_of)
}

fn listen_port(spec: &Value, sidecar: &Sidecar) -> Result<u16, Unfit> {
    let taken = |port, choose| match who_has(spec, port) {
        None => Ok(port),
        Some(container) => Err(Unfit::PortTaken { container: container.to_owned(), port, choose }),
    };
    if sidecar.admin_secret.is_some() {
        taken(ADMIN_PORT, "leaving out --admin-secret")?;
    }
    if let Some(port) = sidecar.listen_port {
        return taken(port, "--listen-port");
    }
    // What an engine does not say that it has, it may have all the same.
    let engine = match sidecar.beside {
        Beside::Engine => Some(engine::find(list(spec, "containers"), sidecar)?.port),
        Beside::Application => None,
    };
    let free = |port: &u16| who_has(spec, *port).is_none() && engine != Some(*port);
    let all = || LISTEN_PORTS.map(|port| port.to_string()).join(", ");
    LISTEN_PORTS.into_iter().find(free).ok_or_else(|| Unfit::PortsTaken(all()))
}

fn beside_engine(
    spec: &mut Value,
    sidecar: &Sidecar,
    port: u16,
    known: Option<&Before>,
) -> Result<(Work, Vec<Note>), Unfit> {
    let mut engine = engine::find(list(spec, "containers"), sidecar)?;
    let known = known.and_then(|before| before.engine.as_ref()).map(EngineBefore::engine);
    if let Some(known) = known {
        if known.container == engine.container && known.port == engine.port {
            engine.port_name = engine.port_name.or(known.port_name);
        } else {
            engine::restore(list_in(spec, "containers")?, &known);
        }
    }
    if engine.port == port {
        let container = engine.container;
        return Err(Unfit::PortTaken { container, port, choose: "--listen-port" });
    }
    let containers = list_in(spec, "containers")?;
    let others = containers.iter().flat_map(|container| list(container, "ports"));
    let is_taken = others.filter(|entry| name_of(entry) == "http").count() > 0;
    let mut notes = Vec::new();
    let port_name = engine.port_name.clone().unwrap_or_else(|| {
        let name = if is_taken { NAME } else { "http" };
        notes.push(Note::PastByNumber { engine: engine.port, port_name: name });
        name.to_owned()
    });
    let container = containers.iter_mut().find(|other| name_of(other) == engine.container);
    if let Some(container) = container {
        engine::divert(container, &engine);
    }
    let url = format!("http://127.0.0.1:{}", engine.port);
    let upstream = Upstream { name: "engine", url, dialect: None, models: None };
    let Engine { container, port, port_name: former } = engine;
    let before = EngineBefore { container, port, port_name: former };
    let before = Before { engine: Some(before), ..Before::beside(Beside::Engine) };
    let work = Work { port_name, upstreams: vec![upstream], variables: Vec::new(), before };
    Ok((work, notes))
}

fn beside_application(
    spec: &mut Value,
    sidecar: &Sidecar,
    port: u16,
    known: Option<&Before>,
) -> Result<(Work, Vec<Note>), Unfit> {
    let known = known.map_or(&[][..], |before| before.variables.as_slice());
    let containers = list_in(spec, "containers")?;
    let left = |former: &&Former| {
        sidecar.container.as_ref().is_some_and(|wanted| *wanted != former.container)
    };
    let left: Vec<Former> = known.iter().filter(left).cloned().collect();
    application::restore(containers, &left);
    let Redirected { upstreams, variables, former, notes } =
        application::redirect(containers, sidecar, port, known)?;
    let before = Before { variables: former, ..Before::beside(Beside::Application) };
    let work = Work { port_name: String::new(), upstreams, variables, before };
    Ok((work, notes.into_iter().map(Note::VariablesElsewhere).collect()))
}

/// Undoes what an injection beside something else changed.
fn restore(spec: &mut Value, before: &Before) {
    let Some(containers) = spec.get_mut("containers").and_then(Value::as_array_mut) else { return };
    if let Some(known) = &before.engine {
        engine::restore(containers, &known.engine());
    }
    application::restore(containers, &before.variables);
}

fn put_volumes(
    spec: &mut Value,
    sidecar: &Sidecar,
    former_size: Option<&JournalSize>,
) -> Result<(), Unfit> {
    let volumes = list_in(spec, "volumes")?;
    let wanted = container::volumes(sidecar);
    volumes.retain(|volume| {
        named(&wanted, name_of(volume)).is_some() || !container::is_our_volume(volume)
    });
    for volume in wanted {
        // A pod may bring a claim of its own for the journal.
        let is_data = name_of(&volume) == container::DATA_VOLUME;
        let there = named(volumes, container::DATA_VOLUME).filter(|_| is_data);
        let is_theirs = there.is_some_and(|there| {
            !former_size.is_some_and(|size| container::is_data_volume(there, size))
        });
        if !is_theirs {
            put_named(volumes, volume, usize::MAX);
        }
    }
    Ok(())
}

fn annotate(
    pod: &mut Value,
    sidecar: &Sidecar,
    configuration: String,
    before: &Before,
) -> Result<(), Unfit> {
    let metadata = object_in(pod, "metadata")?;
    put(metadata, "labels", SIDECAR, sidecar.beside.as_str().into())?;
    // Serialising cannot fail: its keys are names and its values JSON.
    let before = serde_json::to_string(before).unwrap_or_default();
    put(metadata, "annotations", INJECTED, before.into())?;
    if sidecar.config_map.is_some() {
        take(metadata, "annotations", CONFIG);
        return Ok(());
    }
    put(metadata, "annotations", CONFIG, configuration.into())
}

#[cfg(test)]
mod tests;
