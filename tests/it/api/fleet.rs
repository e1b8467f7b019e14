//! `/api/v1/fleet` is as described, whatever is asked for.

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
