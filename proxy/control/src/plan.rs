//! Which sources are asked, by a configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use taximeter_config::{Addresses, Config, Engines, Fleet, ScrapeUrl, Secret, Upstream};
use taximeter_fleet::TargetKind;

use crate::annotations::{Annotations, AnnotationsFile, Place};

/// What is read, and how often.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The sources that are asked.
    pub sources: Vec<Source>,
    /// The time between two looks at `/proc`; `None` looks never.
    pub local: Option<Duration>,
    /// The file of the pod's annotations, and what is wrong with it or with them.
    pub annotations: Option<(String, Looked)>,
}

/// That all is well with a file, or what is wrong: in one word, and for people.
pub type Looked = Result<(), (&'static str, String)>;

/// Where a source is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Metrics, by HTTP.
    Url(ScrapeUrl),
    /// The kubelet's socket.
    Socket(Arc<Path>),
}

impl Address {
    /// Whether TLS is needed.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        matches!(self, Self::Url(ScrapeUrl { tls: true, .. }))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => url.fmt(f),
            Self::Socket(path) => path.display().fmt(f),
        }
    }
}

/// A source that is asked.
#[derive(Debug, Clone)]
pub struct Source {
    /// Where it is.
    pub address: Address,
    /// What it is asked for.
    pub kind: TargetKind,
    /// The names of the upstreams that are there.
    pub upstreams: Vec<String>,
    /// What it is shown. Only an upstream at the same address has one.
    pub credential: Option<Secret>,
    /// Whether it is left alone where its name is that of a public address.
    pub is_private: bool,
    /// The requests of ours that run there, for each upstream.
    pub running: Vec<Arc<AtomicUsize>>,
}

impl Source {
    /// Whether requests of ours run there.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.running.iter().any(|running| running.load(Relaxed) > 0)
    }
}

impl Plan {
    /// What `config` and the annotations of the pod ask for. `running` counts the requests at the upstream
    /// with this index.
    pub fn of(
        config: &Config,
        annotations: &AnnotationsFile,
        running: impl Fn(usize) -> Arc<AtomicUsize>,
    ) -> Self {
        let Some(fleet) = &config.fleet else { return Self::default() };
        let mut sources: BTreeMap<ScrapeUrl, Source> = BTreeMap::new();
        let said = annotations.said();
        let annotated = said.and_then(|(_, said)| said.as_ref().ok()?.at.as_ref());
        let annotated = annotated.and_then(|at| own(at, config));
        let annotated = annotated.map(|url| (TargetKind::Engine, url, true));
        for (kind, url, is_private) in places(fleet, &config.upstreams).chain(annotated) {
            let source = sources.entry(url.clone()).or_insert_with(|| Source {
                address: Address::Url(url.clone()),
                kind,
                upstreams: Vec::new(),
                credential: None,
                is_private,
                running: Vec::new(),
            });
            if source.kind != TargetKind::Engine || !source.upstreams.is_empty() {
                continue;
            }
            for (index, upstream) in config.upstreams.iter().enumerate() {
                if url.is_at(&upstream.url) {
                    source.upstreams.push(upstream.name.clone());
                    source.credential = source.credential.take().or(upstream.credential.clone());
                    source.running.push(running(index));
                }
            }
        }
        let annotations = said.map(|(path, said)| (path.display().to_string(), state(said)));
        let kubelet = fleet.podresources.iter().map(|path| Source {
            address: Address::Socket(path.as_path().into()),
            kind: TargetKind::Kubelet,
            upstreams: Vec::new(),
            credential: None,
            is_private: true,
            running: Vec::new(),
        });
        let sources = sources.into_values().chain(kubelet).collect();
        Self { sources, local: fleet.local, annotations }
    }
}

/// Where the pod itself has metrics by its annotations: at the name that another key has for it, so that
/// the same place is asked once, else at loopback. `None` for a port of Taximeter's own: others may ask it,
/// and we know what it would say.
fn own(at: &Place, config: &Config) -> Option<ScrapeUrl> {
    let Place { tls, port, path } = at.clone();
    let is_ours = [&config.listen, &config.admin].into_iter().flat_map(Addresses::iter);
    if is_ours.map(|address| address.port()).any(|ours| ours == port) {
        return None;
    }
    let upstreams = config.upstreams.iter().map(|one| one.url.clone());
    let fleet = config.fleet.iter();
    let listed = fleet.flat_map(|fleet| {
        let engines = match &fleet.engines {
            Engines::Listed(urls) => urls.as_slice(),
            Engines::Auto | Engines::Off => &[],
        };
        engines.iter().chain(&fleet.gpus).chain(&fleet.hosts).map(ScrapeUrl::origin)
    });
    let mut known = upstreams.chain(listed);
    let known = known.find(|url| url.is_loopback() && (url.tls, url.port) == (tls, port));
    let host = known.map_or_else(|| "127.0.0.1".to_owned(), |url| url.host);
    Some(ScrapeUrl { tls, host, port, path })
}

/// What is wrong with the file or with its annotations.
fn state(said: &Result<Annotations, String>) -> Looked {
    match said {
        Err(why) => Err(("unreadable", why.clone())),
        Ok(Annotations { wrong, .. }) if !wrong.is_empty() => Err(("annotation", wrong.join("; "))),
        Ok(_) => Ok(()),
    }
}

/// Each place, what is there, and whether it may not be public.
fn places<'a>(
    fleet: &'a Fleet,
    upstreams: &'a [Upstream],
) -> impl Iterator<Item = (TargetKind, ScrapeUrl, bool)> + 'a {
    let engines: Vec<_> = match &fleet.engines {
        Engines::Off => Vec::new(),
        Engines::Listed(urls) => urls.iter().map(|url| (url.clone(), false)).collect(),
        Engines::Auto => {
            let own = upstreams.iter().filter(|upstream| !upstream.url.is_public());
            own.map(|upstream| (ScrapeUrl::of_engine(&upstream.url), true)).collect()
        }
    };
    let engines = engines.into_iter().map(|(url, own)| (TargetKind::Engine, url, own));
    let gpus = fleet.gpus.iter().map(|url| (TargetKind::Gpu, url.clone(), false));
    let hosts = fleet.hosts.iter().map(|url| (TargetKind::Host, url.clone(), false));
    engines.chain(gpus).chain(hosts)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn plan(text: &str) -> Plan {
        let none = |_: &std::path::Path| Err(io::ErrorKind::NotFound.into());
        let config = Config::from_yaml(text, "t.yaml", &|_| None, &none).unwrap();
        Plan::of(&config, &AnnotationsFile::default(), |index| Arc::new(AtomicUsize::new(index)))
    }

    /// Each source as `kind url upstreams credential private`.
    fn sources(text: &str) -> Vec<String> {
        let shown = |source: &Source| {
            format!(
                "{} {} {} {} {}",
                source.kind.as_str(),
                source.address,
                source.upstreams.join("+"),
                source.credential.as_ref().map_or("-", Secret::expose),
                source.is_private
            )
        };
        plan(text).sources.iter().map(shown).collect()
    }

    const UPSTREAMS: &str = "upstreams:\n\
        - {name: a, url: \"http://127.0.0.1:8000/v1\", credential: key-a}\n\
        - {name: b, url: \"http://127.0.0.1:8000\", models: [b]}\n\
        - {name: c, url: \"http://vllm.models.svc:8000/base\"}\n\
        - {name: hosted, url: \"https://api.openai.com/v1\", credential: key-hosted}\n";

    #[test]
    fn only_upstreams_that_are_not_public_are_asked_and_each_address_once() {
        assert_eq!(
            sources(&format!("{UPSTREAMS}fleet: {{}}\n")),
            [
                "engine http://127.0.0.1:8000/metrics a+b key-a true",
                "engine http://vllm.models.svc:8000/base/metrics c - true",
            ]
        );
        assert_eq!(sources(UPSTREAMS), [""; 0]);
        let off = plan(&format!("{UPSTREAMS}fleet: {{engines: off, hosts: {{local: off}}}}\n"));
        assert_eq!((off.sources.len(), off.local), (0, None));
    }

    #[test]
    fn a_credential_goes_only_to_the_address_of_its_upstream() {
        let listed = "fleet:\n  engines: ['http://127.0.0.1:8000/other', 'https://127.0.0.1:8000', \
            'https://api.openai.com:8443/metrics']\n  gpus: {scrape: ['https://api.openai.com']}\n  \
            hosts: {scrape: ['http://node:9100']}\n";
        assert_eq!(
            sources(&format!("{UPSTREAMS}{listed}")),
            [
                "engine http://127.0.0.1:8000/other a+b key-a false",
                "host http://node:9100/metrics  - false",
                "engine https://127.0.0.1:8000/metrics  - false",
                "gpu https://api.openai.com/metrics  - false",
                "engine https://api.openai.com:8443/metrics  - false",
            ]
        );
    }

    /// The place that these annotations name, as `url upstreams credential`, and what is wrong.
    fn annotated(text: &str, annotations: &str) -> Vec<String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, annotations).unwrap();
        let mut read = AnnotationsFile::default();
        assert!(read.refresh(Some(file.path())));
        let none = |_: &std::path::Path| Err(io::ErrorKind::NotFound.into());
        let config = Config::from_yaml(text, "t.yaml", &|_| None, &none).unwrap();
        let plan = Plan::of(&config, &read, |_| Arc::default());
        let wrong = plan.annotations.unwrap().1.err().map(|(cause, why)| format!("{cause}: {why}"));
        let shown = |source: &Source| {
            let credential = source.credential.as_ref().map_or("-", Secret::expose);
            format!("{} {} {credential}", source.address, source.upstreams.join("+"))
        };
        plan.sources.iter().map(shown).chain(wrong).collect()
    }

    #[test]
    fn a_place_that_annotations_name_is_asked_beside_the_others_and_each_once() {
        let at = |more: &str| format!("prometheus.io/scrape=\"true\"\n{more}");
        let off = format!("{UPSTREAMS}fleet: {{engines: off}}\n");
        let auto = format!("{UPSTREAMS}fleet: {{}}\n");
        let engine = "http://127.0.0.1:8000/metrics a+b key-a";
        let c = "http://vllm.models.svc:8000/base/metrics c -";
        let (port, other) = ("prometheus.io/port=\"8000\"", "prometheus.io/port=\"9000\"");
        assert_eq!(annotated(&off, &at(port)), [engine]);
        assert_eq!(annotated(&auto, &at(port)), [engine, c]);
        let beside = "http://127.0.0.1:9000/metrics  -";
        assert_eq!(annotated(&auto, &at(other)), [engine, beside, c]);
        // Another path of the same program is shown the same key; TLS makes it another program.
        let path = at(&format!("{port}\nprometheus.io/path=\"/m\""));
        assert_eq!(annotated(&off, &path), ["http://127.0.0.1:8000/m a+b key-a"]);
        let tls = at(&format!("{port}\nprometheus.io/scheme=\"https\""));
        assert_eq!(annotated(&off, &tls), ["https://127.0.0.1:8000/metrics  -"]);
        // By whatever name another key has it.
        let named = "upstreams: [{name: a, url: 'http://localhost:8000'}]\nfleet: {}\n";
        assert_eq!(annotated(named, &at(port)), ["http://localhost:8000/metrics a -"]);
        let listed =
            format!("{UPSTREAMS}fleet: {{engines: off, hosts: {{scrape: ['http://[::1]:9000']}}}}");
        assert_eq!(annotated(&listed, &at(other)), ["http://[::1]:9000/metrics  -"]);
        // What others ask us.
        assert_eq!(annotated(&off, &at("prometheus.io/port=\"9464\"")), [""; 0]);
        let wrong = annotated(&off, &at("prometheus.io/port=\"http\""));
        assert_eq!(wrong, ["annotation: prometheus.io/port: \"http\" is no port, from 1 to 65535"]);
    }

    #[test]
    fn a_place_is_busy_while_requests_run_at_any_of_its_upstreams() {
        let plan = plan(&format!("{UPSTREAMS}fleet: {{}}\n"));
        let [own, other] = plan.sources.as_slice() else { panic!("two sources") };
        // The counts are the indices of the upstreams: 0 and 1, and 2.
        assert!(own.is_busy() && other.is_busy());
        own.running.iter().chain(&other.running).for_each(|running| running.store(0, Relaxed));
        assert!(!own.is_busy() && !other.is_busy());
        own.running[1].store(1, Relaxed);
        assert!(own.is_busy());
    }
}
