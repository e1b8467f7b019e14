//! Beside an application: its variables point at us, and what they were becomes what we ask.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use taximeter_config::UpstreamUrl;

use crate::configuration::Upstream;
use crate::options::Sidecar;
use crate::pod::{list, name_of, named, put_named, text};
use crate::unfit::Unfit;

/// A variable that clients of a wire format find their provider by.
pub(crate) struct Variable {
    /// Its name.
    pub(crate) name: &'static str,
    /// What stands behind host and port in it.
    path: &'static str,
    /// Of the upstream.
    upstream: &'static str,
    /// What clients ask where it is not set.
    default: &'static str,
    models: Option<&'static str>,
    /// The sidecar's variable, where the former value is not in the manifest.
    handed_on: &'static str,
}

/// The first whose models match serves.
const VARIABLES: [Variable; 2] = [
    Variable {
        name: "ANTHROPIC_BASE_URL",
        path: "",
        upstream: "anthropic",
        default: "https://api.anthropic.com",
        models: Some("claude-*"),
        handed_on: "TAXIMETER_ANTHROPIC_BASE_URL",
    },
    Variable {
        name: "OPENAI_BASE_URL",
        path: "/v1",
        upstream: "openai",
        default: "https://api.openai.com/v1",
        models: None,
        handed_on: "TAXIMETER_OPENAI_BASE_URL",
    },
];

/// What a variable was before we set it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Former {
    pub(crate) container: String,
    pub(crate) variable: String,
    /// The element of `env`; `None` where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) entry: Option<Value>,
}

/// What the sidecar asks, and what of the pod's variables changes.
#[derive(Default)]
pub(crate) struct Redirected {
    pub(crate) upstreams: Vec<Upstream>,
    /// For the sidecar, where the configuration refers to them.
    pub(crate) variables: Vec<Value>,
    pub(crate) former: Vec<Former>,
    pub(crate) notes: Vec<String>,
}

/// Points the containers at `port`. `known` is what an earlier injection has found.
///
/// Errors: a container that is not there; former values that cannot become one upstream.
pub(crate) fn redirect(
    containers: &mut [Value],
    sidecar: &Sidecar,
    port: u16,
    known: &[Former],
) -> Result<Redirected, Unfit> {
    let chosen = |container: &Value| {
        sidecar.container.as_deref().is_none_or(|wanted| wanted == name_of(container))
    };
    if let Some(wanted) = &sidecar.container
        && !containers.iter().any(chosen)
    {
        let there = containers.iter().map(name_of).collect::<Vec<_>>().join(", ");
        return Err(Unfit::NoSuchContainer { wanted: wanted.clone(), there });
    }
    let mut redirected = Redirected::default();
    for variable in &VARIABLES {
        let ours = json!({
            "name": variable.name,
            "value": format!("http://127.0.0.1:{port}{}", variable.path),
        });
        let mut former = Vec::new();
        for container in containers.iter().filter(|container| chosen(container)) {
            former.push(was(container, variable.name, &ours, known));
        }
        let upstream = upstream(variable, sidecar, port, &former)?;
        redirected.upstreams.push(upstream.0);
        redirected.variables.extend(upstream.1);
        for container in containers.iter_mut().filter(|container| chosen(container)) {
            put_named(crate::pod::list_in(container, "env")?, ours.clone(), usize::MAX);
        }
        redirected.former.extend(former);
    }
    for container in containers.iter().filter(|container| chosen(container)) {
        if !list(container, "envFrom").is_empty() && sidecar.upstream.is_none() {
            redirected.notes.push(format!(
                "container `{}` takes variables from elsewhere (envFrom): where OPENAI_BASE_URL is \
                 among them, say with --upstream what it was",
                name_of(container)
            ));
        }
    }
    Ok(redirected)
}

/// What a variable of a container was, by what the pod says now or was found before.
fn was(container: &Value, variable: &str, ours: &Value, known: &[Former]) -> Former {
    let name = name_of(container);
    let now = named(list(container, "env"), variable);
    let before = known.iter().find(|f| f.container == name && f.variable == variable);
    let entry = match (now, before) {
        (Some(now), Some(before)) if now == ours => before.entry.clone(),
        (now, _) => now.cloned(),
    };
    Former { container: name.to_owned(), variable: variable.to_owned(), entry }
}

/// The one upstream that the former values are, and the variable that it needs.
fn upstream(
    variable: &Variable,
    sidecar: &Sidecar,
    port: u16,
    former: &[Former],
) -> Result<(Upstream, Option<Value>), Unfit> {
    let is_openai = variable.models.is_none();
    let told = sidecar.upstream.as_ref().filter(|_| is_openai);
    let mut set = former.iter().filter_map(|former| former.entry.as_ref().map(|e| (former, e)));
    let first = if told.is_some() { None } else { set.next() };
    if let Some((_, first)) = first
        && set.any(|(_, other)| other != first)
    {
        return Err(Unfit::Different(variable.name));
    }
    let mut handed_on = None;
    let url = match first {
        None => told.map_or(variable.default, String::as_str).to_owned(),
        Some((former, entry)) => {
            match (entry.get("value").and_then(text), entry.get("valueFrom")) {
                (Some(value), _) if !value.is_empty() => {
                    literal(value, port).map_err(|problem| Unfit::BaseUrl {
                        variable: variable.name,
                        container: former.container.clone(),
                        problem,
                    })?
                }
                (_, Some(source)) => {
                    handed_on = Some(json!({"name": variable.handed_on, "valueFrom": source}));
                    format!("${{env:{}}}", variable.handed_on)
                }
                _ => variable.default.to_owned(),
            }
        }
    };
    let dialect = match url.as_str() {
        "https://api.openai.com/v1" | "https://api.openai.com/v1/" => Some("openai"),
        "https://api.anthropic.com" | "https://api.anthropic.com/" => Some("anthropic"),
        _ => None,
    };
    let upstream = Upstream { name: variable.upstream, url, dialect, models: variable.models };
    Ok((upstream, handed_on))
}

/// A base URL as the manifest has it.
fn literal(value: &str, port: u16) -> Result<String, String> {
    if value.contains("$(") {
        return Err("is made of other variables".to_owned());
    }
    UpstreamUrl::parse(value).map_err(|fault| fault.to_string())?;
    let ours = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("http://{host}:{port}"));
    let rest = ours.iter().find_map(|ours| value.strip_prefix(ours.as_str()));
    if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        return Err("points at the sidecar's own port".to_owned());
    }
    Ok(value.to_owned())
}

/// Puts variables back to what they were.
pub(crate) fn restore(containers: &mut [Value], former: &[Former]) {
    for Former { container, variable, entry } in former {
        let found = containers.iter_mut().find(|other| name_of(other) == container);
        let env = found.and_then(|found| found.get_mut("env")?.as_array_mut());
        let Some(env) = env else { continue };
        match entry {
            Some(entry) => put_named(env, entry.clone(), usize::MAX),
            None => env.retain(|other| name_of(other) != variable),
        }
    }
}
