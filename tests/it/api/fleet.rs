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
