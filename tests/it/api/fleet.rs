//! `/api/v1/fleet` is as described, whatever is asked for, and the page *Fleet* shows it.

use crate::api::console::page;
use crate::api::description::Description;
use crate::fleet_scraping::{Source, await_source, metrics, text};
use crate::gateway::Setup;

#[test]
fn the_fleet_is_as_described() {
    let source = Source::saying(text(&metrics(7)));
    let upstream = format!("name: engine, url: \"http://{}\", dialect: openai", source.address);
    let gateway = Setup::with_upstream(&upstream).with("fleet: {}").start();
    await_source(&gateway, &source.url(), |source| source["state"] == "up");
    let description = Description::of(&gateway);
    let url = source.url();
    for (query, more) in [
        (String::new(), false),
        ("?layer=L6".to_owned(), false),
        ("?limit=1".to_owned(), true),
        (format!("?source={url}"), false),
        ("?source=nowhere".to_owned(), false),
    ] {
        let answer = gateway.admin(&format!("/api/v1/fleet{query}"));
        let fleet = description.checked("/api/v1/fleet", &answer);
        assert_eq!(fleet["more"], more, "{query}");
    }
    for wrong in ["layer=L9", "limit=0", "source=a&source=b", "sources=a"] {
        let answer = gateway.admin(&format!("/api/v1/fleet?{wrong}"));
        assert_eq!(answer.status(), 400, "{wrong}");
        description.checked("/api/v1/fleet", &answer);
    }
}

/// What an exporter tells of a GPU that is held down, and of a part of another one.
const GPUS: &str = "\
    # TYPE DCGM_FI_DEV_GPU_UTIL gauge\n\
    DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-1\",device=\"nvidia0\",modelName=\"NVIDIA H100\",\
    Hostname=\"node-1\",namespace=\"llm\",pod=\"engine-0\"} 90\n\
    # TYPE DCGM_FI_DEV_FB_USED gauge\n\
    DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-1\",device=\"nvidia0\",modelName=\"NVIDIA H100\",\
    Hostname=\"node-1\",namespace=\"llm\",pod=\"engine-0\"} 40960\n\
    # TYPE DCGM_FI_DEV_POWER_USAGE gauge\n\
    DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-1\",device=\"nvidia0\",modelName=\"NVIDIA H100\",\
    Hostname=\"node-1\",namespace=\"llm\",pod=\"engine-0\"} 412.4\n\
    # TYPE DCGM_FI_DEV_CLOCKS_EVENT_REASONS gauge\n\
    DCGM_FI_DEV_CLOCKS_EVENT_REASONS{gpu=\"0\",UUID=\"GPU-1\",device=\"nvidia0\",\
    modelName=\"NVIDIA H100\",Hostname=\"node-1\",namespace=\"llm\",pod=\"engine-0\"} 4\n";

#[test]
fn the_page_shows_engines_gpus_and_hosts_and_why_a_figure_is_unknown() {
    // Of its queue the engine tells with its number alone.
    let queue = "vllm:num_requests_waiting{engine=\"0\"} 5\n";
    let engine = Source::saying(text(&format!("{}{queue}", metrics(7))));
    let gpus = Source::saying(text(GPUS));
    let upstream = format!("name: local, url: \"http://{}\", dialect: openai", engine.address);
    let fleet = format!(
        "resource: {{k8s.pod.name: engine-0, k8s.namespace.name: llm}}\n\
         fleet: {{gpus: {{scrape: [{:?}]}}}}",
        gpus.url()
    );
    let gateway = Setup::with_upstream(&upstream).with(&fleet).start();
    for name in [&engine.url(), &gpus.url(), "/proc"] {
        await_source(&gateway, name, |source| source["state"] == "up");
    }
    let shown = page(&gateway.admin("/fleet"));
    let rows = |title: &str| {
        let (_, table) = shown.split_once(&format!(">{title}</h2>")).expect("a table");
        let (_, rows) = table.split_once("<tbody>").expect("rows");
        text_of(rows.split_once("</tbody>").expect("their end").0)
    };
    let [joins, engines, gpus, hosts] = ["Upstreams", "Engines", "GPUs", "Hosts"].map(rows);
    let join = format!(
        "local {} by address llm/engine-0 by address GPU-1 by labels node-1 by labels none",
        engine.url()
    );
    assert!(joins.starts_with(&join), "{joins}");
    assert!(engines.contains("vllm at") && engines.contains(" local 3 5 "), "{engines}");
    assert_eq!(engines.matches("vllm at").count(), 1, "{engines}");
    for figure in ["NVIDIA H100", "GPU-1", "node-1", "llm/engine-0", "90 %", "40.0 GiB", "412 W"] {
        assert!(gpus.contains(figure), "{figure}: {gpus}");
    }
    assert!(gpus.contains("power cap"), "{gpus}");
    assert!(hosts.contains("/proc") || hosts.contains(" %"), "{hosts}");
    assert!(shown.contains("<span class=\"unknown\" title=\""), "{shown}");

    let without = Setup::with_upstream(&upstream).start();
    let shown = page(&without.admin("/fleet"));
    assert!(text_of(&shown).contains("the configuration has no section"), "{shown}");
}

/// The text of a page, with one space for each run of tags and space.
fn text_of(html: &str) -> String {
    let text = html.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
    text.flat_map(str::split_whitespace).flat_map(|word| [word, " "]).collect()
}

#[test]
fn samples_are_as_described() {
    let source = Source::saying(text(&metrics(7)));
    let upstream = format!("name: engine, url: \"http://{}\", dialect: openai", source.address);
    let setup = || Setup::with_upstream(&upstream).with("fleet: {}");
    let mut gateway = setup().start();
    await_source(&gateway, &source.url(), |source| source["state"] == "up");
    gateway.terminate();
    assert!(gateway.exit().0.success());
    let gateway = setup().start_in(gateway.into_folder());
    let description = Description::of(&gateway);
    let quantity = "quantity=taximeter.fleet.engine.requests_running";
    for (query, series, compared) in [
        ("", 1, None),
        ("&step=1&statistic=mean&model=m&engine=0", 1, None),
        ("&step=60", 3, None),
        ("&model=other", 0, None),
        ("&step=3600&from=2026-01-01&to=2026-03-01", 0, None),
        ("&compare=1w", 1, Some(0)),
    ] {
        let answer = gateway.admin(&format!("/api/v1/fleet/samples?{quantity}{query}"));
        let told = description.checked("/api/v1/fleet/samples", &answer);
        assert_eq!(told["series"].as_array().expect("a list").len(), series, "{query}: {told:#}");
        assert_eq!(told["compared"].as_array().map(Vec::len), compared, "{query}");
        if series > 0 {
            let first = &told["series"][0];
            assert_eq!(
                (&first["unit"], &first["labels"]["engine"]),
                (&"{request}".into(), &"0".into())
            );
            assert_eq!(first["points"][0][1], 3.0);
        }
    }
    for wrong in [
        "step=1",
        "quantity=a&step=0",
        "quantity=a&statistic=median",
        "quantity=a&from=2026-01-01&to=2026-02-01&step=1",
        "quantity=a&compare=1y",
        "quantity=a&compare=1h&step=7",
        "quantity=a&limit=9999",
    ] {
        let answer = gateway.admin(&format!("/api/v1/fleet/samples?{wrong}"));
        assert_eq!(answer.status(), 400, "{wrong}");
        description.checked("/api/v1/fleet/samples", &answer);
    }
}

#[test]
fn events_are_as_described() {
    let source = Source::saying(text(&metrics(7)));
    let fleet = format!("fleet: {{gpus: {{scrape: [{:?}]}}}}", source.url());
    let gateway = Setup::with_upstream("name: a, url: \"http://192.0.2.1\"").with(&fleet).start();
    let description = Description::of(&gateway);
    for query in ["", "?kind=engine_version&subject=a&limit=5", "?from=2026-01-01&to=2026-01-02"] {
        let answer = gateway.admin(&format!("/api/v1/fleet/events{query}"));
        let told = description.checked("/api/v1/fleet/events", &answer);
        assert_eq!((&told["more"], &told["skipped_lines"]), (&false.into(), &0.into()), "{query}");
    }
    for wrong in ["kind=weather", "limit=10001", "from=yesterday", "subjects=a"] {
        let answer = gateway.admin(&format!("/api/v1/fleet/events?{wrong}"));
        assert_eq!(answer.status(), 400, "{wrong}");
        description.checked("/api/v1/fleet/events", &answer);
    }
}
