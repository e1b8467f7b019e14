//! The sidecar's configuration as text.

use std::fmt::Write as _;
use std::num::NonZeroU32;

use taximeter_config::ADMIN_DEFAULT;

use crate::options::Beside;

/// Where clients connect, where the engine listens, whom callers are.
pub(crate) struct Settings {
    pub(crate) beside: Beside,
    pub(crate) listen_port: u16,
    pub(crate) upstreams: Vec<Upstream>,
    /// Callers without a credential are the tenant of the environment.
    pub(crate) tenant: bool,
    /// The admin address is open, and asks for a token.
    pub(crate) admin: bool,
    /// Metrics are read, and those that the pod's annotations name.
    pub(crate) fleet: bool,
    /// What the data directory may take, in bytes; `None` where the pod brings its volume.
    pub(crate) room: Option<u64>,
    /// How long requests have to end, once the pod's other containers have gone.
    pub(crate) drain_seconds: NonZeroU32,
    /// What bodies that are held at once may take, in bytes.
    pub(crate) bodies: u64,
}

/// What is asked.
pub(crate) struct Upstream {
    pub(crate) name: &'static str,
    pub(crate) url: String,
    /// Its wire format, where its address says which.
    pub(crate) dialect: Option<&'static str>,
    /// `None` is all.
    pub(crate) models: Option<&'static str>,
}

/// Where the folder of the token is.
pub(crate) const ADMIN_FOLDER: &str = "/run/secrets/taximeter";
/// Where the file of the pod's annotations is.
pub(crate) const POD_FOLDER: &str = "/run/taximeter/pod";
/// Its name there.
pub(crate) const ANNOTATIONS: &str = "annotations";
/// Where the journal is.
pub(crate) const DATA_FOLDER: &str = "/var/lib/taximeter";
/// Where metrics and health are, for those outside of the pod.
pub(crate) const ADMIN_PORT: u16 = ADMIN_DEFAULT.port();

impl Settings {
    /// The file that `serve --config` reads.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let is_engine = self.beside == Beside::Engine;
        let host = if is_engine { "0.0.0.0" } else { "127.0.0.1" };
        let mut line = |written: std::fmt::Arguments<'_>| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{written}");
        };
        line(format_args!("listen: {host}:{}", self.listen_port));
        if self.admin {
            line(format_args!("admin: 0.0.0.0:{ADMIN_PORT}"));
            line(format_args!("admin_token: ${{file:{ADMIN_FOLDER}/token}}"));
        }
        line(format_args!("data_dir: {DATA_FOLDER}"));
        if let Some(bytes) = self.room {
            line(format_args!("ledger: {{dir_bytes_max: {bytes}}}"));
        }
        line(format_args!("upstreams:"));
        for Upstream { name, url, dialect, models } in &self.upstreams {
            // What JSON quotes, YAML reads.
            let url = serde_json::Value::from(url.as_str());
            let dialect = dialect.map(|name| format!(", dialect: {name}")).unwrap_or_default();
            let models = models.map(|glob| format!(", models: [\"{glob}\"]")).unwrap_or_default();
            let credential = if is_engine { "" } else { ", forward_credential: on" };
            line(format_args!("  - {{name: {name}, url: {url}{dialect}{models}{credential}}}"));
        }
        if self.tenant {
            line(format_args!("tenants: {{unknown: \"${{env:TAXIMETER_TENANT}}\"}}"));
        }
        if !is_engine {
            line(format_args!("receipts: off"));
        }
        if self.fleet {
            line(format_args!("fleet: {{annotations: {POD_FOLDER}/{ANNOTATIONS}}}"));
        }
        line(format_args!("resource:"));
        line(format_args!("  k8s.pod.name: ${{env:K8S_POD_NAME}}"));
        line(format_args!("  k8s.namespace.name: ${{env:K8S_NAMESPACE_NAME}}"));
        line(format_args!("  k8s.node.name: ${{env:K8S_NODE_NAME}}"));
        let (drain, bodies) = (self.drain_seconds, self.bodies);
        line(format_args!("limits: {{drain_seconds: {drain}, bodies_total_bytes_max: {bodies}}}"));
        text
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use taximeter_config::{Config, ForwardCredential, UnknownCaller};

    use super::*;

    #[test]
    fn what_is_written_is_a_good_configuration() {
        let read = |settings: &Settings| {
            let env = |_: &str| Some("shop".to_owned());
            let file = |_: &std::path::Path| Ok("a-token-for-the-admin-address".to_owned());
            Config::from_yaml(&settings.text(), "taximeter.yaml", &env, &file).unwrap()
        };
        let upstream =
            |name, url: &str, models| Upstream { name, url: url.to_owned(), dialect: None, models };
        let mut settings = Settings {
            beside: Beside::Engine,
            listen_port: 8080,
            upstreams: vec![upstream("engine", "http://127.0.0.1:8000", None)],
            tenant: false,
            admin: false,
            fleet: false,
            room: None,
            drain_seconds: NonZeroU32::MIN,
            bodies: 32 << 20,
        };
        let engine = read(&settings);
        assert_eq!(engine.ledger.dir_bytes_max, None);
        assert_eq!(engine.limits.drain, Duration::from_secs(1));
        assert_eq!(engine.limits.bodies_total_bytes_max, Some(32 << 20));
        assert_eq!(engine.listen.to_string(), "0.0.0.0:8080");
        assert!(engine.admin.iter().all(|address| address.ip().is_loopback()));
        assert_eq!(engine.fleet, None);
        settings.admin = true;
        settings.fleet = true;
        settings.room = Some(966_367_641);
        settings.tenant = true;
        settings.beside = Beside::Application;
        settings.upstreams = vec![
            upstream("anthropic", "https://api.anthropic.com", Some("claude-*")),
            upstream("openai", "https://proxy.example/v1", None),
        ];
        let application = read(&settings);
        assert_eq!(application.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(application.admin.to_string(), "0.0.0.0:9464");
        let annotations = application.fleet.as_ref().and_then(|fleet| fleet.annotations.clone());
        assert_eq!(annotations, Some("/run/taximeter/pod/annotations".into()));
        assert_eq!(application.ledger.dir_bytes_max, Some(966_367_641));
        assert_eq!(application.tenants.unknown, UnknownCaller::Tenant("shop".to_owned()));
        let forwards = |mode| application.upstreams.iter().all(|up| up.forward_credential == mode);
        assert!(forwards(ForwardCredential::On));
    }
}
