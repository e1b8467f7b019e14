//! Checks the section `fleet`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use crate::fleet::{Engines, EnginesWord, Fleet, FleetMemory, ScrapeUrl};
use crate::mistake::Invalid;
use crate::model::Upstream;
use crate::reader::{List, Optional, Reader, Required, Spanned};
use crate::schema::{RawEngines, RawFleet, RawGpuExporters, RawHosts, RawMemory};
use crate::value::Value;
use crate::values::Name;

/// What the file says. Reports places and GPUs that are named twice, and upstreams that are not there.
pub(crate) fn fleet(
    raw: RawFleet,
    upstreams: Option<&[Upstream]>,
    reader: &mut Reader<'_>,
) -> Fleet {
    let mut places = Named::default();
    let engines = match raw.engines {
        Optional::Given(RawEngines::Urls(list)) => Engines::Listed(places.urls(list, reader)),
        Optional::Given(RawEngines::Word(word)) => match word.value {
            EnginesWord::Auto => Engines::Auto,
            EnginesWord::Off => Engines::Off,
        },
        Optional::Absent | Optional::Wrong => Engines::Auto,
    };
    let (gpus, assigned, podresources) = match raw.gpus.given() {
        Some(RawGpuExporters { scrape, podresources, assigned }) => {
            (Some(scrape), Some(assigned), podresources.given())
        }
        None => (None, None, None),
    };
    let gpus = gpus.and_then(Optional::given).map(|list| places.urls(list, reader));
    let mut of = BTreeMap::new();
    let mut ids = Named::default();
    for one in assigned.and_then(Optional::given).into_iter().flat_map(|list| list.items) {
        let upstream = known(&one.upstream, upstreams, reader);
        for id in one.ids.0.into_iter().flat_map(|list| list.items) {
            ids.check(&id.value.0, &id, "GPU", reader);
            of.insert(id.value.0, upstream.clone());
        }
    }
    let default = Fleet::default();
    let hosts = raw.hosts.given();
    let (local, hosts) = match hosts {
        Some(RawHosts { local, local_interval_seconds, scrape }) => {
            let period = local_interval_seconds.or(Duration::from_secs(1));
            let urls = scrape.given().map(|list| places.urls(list, reader));
            (local.or(true).then_some(period), urls)
        }
        None => (default.local, None),
    };
    Fleet {
        engines,
        annotations: raw.annotations.given().map(|at| reader.resolve(&at.value)),
        gpus: gpus.unwrap_or_default(),
        podresources: podresources.map(|at| reader.resolve(&at.value)),
        assigned: of,
        hosts: hosts.unwrap_or_default(),
        local,
        memory: memory(raw.memory, raw.memory_bytes_max.given().map(|most| most.value.get())),
    }
}

fn memory(raw: Optional<RawMemory>, bytes_max: Option<u64>) -> FleetMemory {
    let [seconds, minutes, hours] = FleetMemory::default().keep;
    let keep = raw
        .given()
        .map(|raw| [raw.seconds.or(seconds), raw.minutes.or(minutes), raw.hours.or(hours)]);
    FleetMemory { keep: keep.unwrap_or([seconds, minutes, hours]), bytes_max }
}

/// The name of an upstream. Reports one that no upstream has.
fn known(
    name: &Required<Spanned<Name>>,
    upstreams: Option<&[Upstream]>,
    reader: &mut Reader<'_>,
) -> String {
    let Required(Some(name)) = name else { return String::new() };
    let text: String = name.value.clone().into();
    // Where an upstream has a mistake, that is reported.
    let is_known = upstreams.is_none_or(|all| all.iter().any(|upstream| upstream.name == text));
    if !is_known {
        let why = Invalid::new("is the name of no upstream", "one of the `upstreams`");
        reader.invalid::<Name>(&name.location, &name.written, &why);
    }
    text
}

/// What may be named once, with the path of the key that names it.
struct Named<T>(BTreeMap<T, String>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord + Clone> Named<T> {
    fn check<V: Value>(&mut self, named: &T, at: &Spanned<V>, what: &str, reader: &mut Reader<'_>) {
        match self.0.entry(named.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(at.location.path.clone());
            }
            Entry::Occupied(first) => {
                let problem = format!("is also the {what} of {}", first.get());
                let why = Invalid::new(problem, format!("each {what} once"));
                reader.invalid::<V>(&at.location, &at.written, &why);
            }
        }
    }
}

impl Named<ScrapeUrl> {
    fn urls(&mut self, list: List<Spanned<ScrapeUrl>>, reader: &mut Reader<'_>) -> Vec<ScrapeUrl> {
        let urls = list.items.into_iter().map(|at| {
            self.check(&at.value, &at, "URL", reader);
            at.value
        });
        urls.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use super::*;
    use crate::model::{Config, UpstreamUrl};

    fn load(text: &str) -> Result<Option<Fleet>, String> {
        let none = |_: &Path| Err(io::ErrorKind::NotFound.into());
        let whole = format!("upstreams: [{{name: e, url: \"http://127.0.0.1:1/base\"}}]\n{text}");
        let config = Config::from_yaml(&whole, "t.yaml", &|_| None, &none);
        config.map(|config| config.fleet).map_err(|why| why.to_string())
    }

    fn url(text: &str) -> ScrapeUrl {
        ScrapeUrl::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn nothing_is_read_without_the_section_and_all_with_an_empty_one() {
        assert_eq!(load(""), Ok(None));
        assert_eq!(load("fleet: {}"), Ok(Some(Fleet::default())));
        let engines = |text: &str| load(text).unwrap().unwrap().engines;
        assert_eq!(engines("fleet: {engines: auto}"), Engines::Auto);
        assert_eq!(engines("fleet: {engines: off}"), Engines::Off);
        let listed = Engines::Listed(vec![url("http://a:8000/metrics"), url("https://b/x?y=1")]);
        assert_eq!(engines("fleet: {engines: ['http://a:8000', 'https://B/x?y=1']}"), listed);
        let local = |text: &str| load(text).unwrap().unwrap().local;
        assert_eq!(local("fleet: {hosts: {local: off}}"), None);
        let files = load("fleet: {annotations: pod/a, gpus: {podresources: /k.sock}}");
        let files = files.unwrap().unwrap();
        assert_eq!(files.annotations, Some("pod/a".into()));
        assert_eq!(files.podresources, Some("/k.sock".into()));
        let memory = |text: &str| load(text).unwrap().unwrap().memory;
        let hours = |hours: [u64; 3]| hours.map(|hours| Duration::from_secs(hours * 3_600));
        assert_eq!(memory("fleet: {}").keep, hours([48, 90 * 24, 3 * 365 * 24]));
        let some = memory("fleet: {memory: {1s: 12h, 1m: 7d}, memory_bytes_max: 1000}");
        let keep = hours([12, 7 * 24, 3 * 365 * 24]);
        assert_eq!(some, FleetMemory { keep, bytes_max: Some(1_000) });
        let tenth = Some(Duration::from_millis(100));
        assert_eq!(local("fleet: {hosts: {local_interval_seconds: 0.1}}"), tenth);
    }

    #[test]
    fn a_url_without_a_path_means_its_metrics() {
        for (text, shown) in [
            ("http://dcgm:9400", "http://dcgm:9400/metrics"),
            ("http://dcgm:9400/", "http://dcgm:9400/metrics"),
            ("https://prom/federate?match[]=up", "https://prom/federate?match[]=up"),
            ("http://[::1]:80?x=1", "http://[::1]/metrics?x=1"),
        ] {
            assert_eq!(url(text).to_string(), shown);
        }
        let engine = UpstreamUrl::parse("https://e:8000/base/v1").unwrap();
        let own = ScrapeUrl::of_engine(&engine);
        assert_eq!(own.to_string(), "https://e:8000/base/metrics");
        assert!(own.is_at(&engine) && !url("http://e:8000").is_at(&engine));
    }

    #[test]
    fn what_is_named_twice_is_told_with_its_line_and_key() {
        let twice = "fleet:\n  gpus:\n    scrape: ['http://a:9400', 'http://b:9400']\n    \
                     assigned:\n      - {upstream: e, ids: [GPU-1, 'GPU-2::0']}\n      \
                     - {upstream: x, ids: ['GPU-2::1']}\n  \
                     hosts: {scrape: ['http://A:9400/metrics']}\n";
        let told = load(twice).unwrap_err();
        for expected in [
            "t.yaml:7:20: fleet.gpus.assigned[1].upstream: \"x\" is the name of no upstream",
            "t.yaml:7:29: fleet.gpus.assigned[1].ids[0]: \"GPU-2::1\" is also the GPU of \
             fleet.gpus.assigned[0].ids[1]",
            "t.yaml:8:20: fleet.hosts.scrape[0]: \"http://A:9400/metrics\" is also the URL of \
             fleet.gpus.scrape[0]",
        ] {
            assert!(told.contains(expected), "{told}");
        }
        for (wrong, expected) in [
            ("fleet: {engines: on}", "expected auto, off, or a list of URLs"),
            ("fleet: {engines: ['ftp://a']}", "unsupported scheme"),
            ("fleet: {engines: ['http://u:p@a']}", "has credentials in it"),
            ("fleet: {memory: {1s: 48}}", "expected hours, days or years"),
            ("fleet: {memory: {1m: 0d}}", "expected hours, days or years"),
            ("fleet: {memory: {1h: 200y}}", "expected hours, days or years"),
            ("fleet: {memory: {5m: 1d}}", "fleet.memory.5m"),
            ("fleet: {hosts: {local_interval_seconds: 0.05}}", "from 0.1 to 60"),
            ("fleet: {gpus: {assigned: [{upstream: e, ids: ['']}]}}", "is no id of a GPU"),
        ] {
            let told = load(wrong).unwrap_err();
            assert!(told.contains(expected), "{told}");
        }
    }
}
