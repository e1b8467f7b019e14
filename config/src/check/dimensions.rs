//! The places and tags of `dimensions`.

use std::collections::BTreeMap;

use taximeter_dimensions::{Place, TAGS_MAX};

use crate::dimensions::Dimensions;
use crate::places::{BodyPath, HeaderPlace};
use crate::reader::{List, Optional, Reader, Spanned};
use crate::schema::{RawDimensions, RawPlace, RawTag};

/// The keys under `dimensions`. Reports places that are none, and tags that are too many.
pub(crate) fn dimensions(raw: RawDimensions, reader: &mut Reader<'_>) -> Dimensions {
    let [session, agent, parent_agent, turn, client, end_user] =
        [raw.session, raw.agent, raw.parent_agent, raw.turn, raw.client, raw.end_user]
            .map(|list| places(list, reader));
    Dimensions {
        session,
        agent,
        parent_agent,
        turn,
        client,
        end_user,
        tags: tags(raw.tags, reader),
        secret: raw.secret.given().map(|at| at.value.0),
        ..Dimensions::default()
    }
}

fn places(list: Optional<List<RawPlace>>, reader: &mut Reader<'_>) -> Vec<Place> {
    let Some(list) = list.given() else { return Vec::new() };
    let read = |RawPlace { header, body }| place(header, body, reader);
    list.items.into_iter().filter_map(read).collect()
}

fn tags(list: Optional<List<RawTag>>, reader: &mut Reader<'_>) -> BTreeMap<String, Vec<Place>> {
    let mut tags: BTreeMap<String, Vec<Place>> = BTreeMap::new();
    let Some(list) = list.given() else { return tags };
    for RawTag { name, header, body } in list.items {
        let place = place(header, body, reader);
        if let Some(name) = name.0 {
            tags.entry(name.value.into()).or_default().extend(place);
        }
    }
    if tags.len() > TAGS_MAX {
        let problem = format!("has {} names", tags.len());
        reader.report(&list.location, problem, format!("expected at most {TAGS_MAX} tags"));
    }
    tags
}

/// The one place of an entry. An entry without one says nothing.
fn place(
    header: Optional<Spanned<HeaderPlace>>,
    body: Optional<Spanned<BodyPath>>,
    reader: &mut Reader<'_>,
) -> Option<Place> {
    match (header, body) {
        (Optional::Given(header), Optional::Absent) => Some(header.value.0),
        (Optional::Absent, Optional::Given(body)) => Some(body.value.0),
        (Optional::Given(header), Optional::Given(_)) => {
            reader.report(&header.location, "cannot stand beside `body`", "expected one of them");
            None
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use taximeter_dimensions::Keep;

    use super::*;
    use crate::model::Config;

    fn load(text: &str) -> Result<Config, String> {
        let none = |_: &Path| Err(io::ErrorKind::NotFound.into());
        let whole = format!("upstreams: [{{name: e, url: \"http://127.0.0.1:1\"}}]\n{text}");
        Config::from_yaml(&whole, "t.yaml", &|_| None, &none).map_err(|why| why.to_string())
    }

    #[test]
    fn places_tags_and_what_is_kept_are_read() {
        let config = load(
            "sessions: hash\nend_user: off\ndimensions:\n  session: [{header: X-My-Run}, {body: metadata.run}]\n  \
             tags:\n  - {name: team, header: x-team}\n  - {name: team, body: team}\n  \
             secret: sesame-0123456789abcdef\n",
        );
        let read = config.unwrap().dimensions;
        let (header, body) =
            (Place::header("x-my-run").unwrap(), Place::body("metadata.run").unwrap());
        assert_eq!(read.session, [header, body]);
        let team = [Place::header("x-team").unwrap(), Place::body("team").unwrap()];
        assert_eq!(read.tags, BTreeMap::from([("team".to_owned(), team.to_vec())]));
        assert_eq!((read.sessions, read.end_users), (Keep::Hash, Keep::Off));
        assert!(read.hashes() && read.secret.is_some());
        let default = load("").unwrap().dimensions;
        assert_eq!((default.sessions, default.end_users), (Keep::Keep, Keep::Hash));
        assert_eq!(default, Dimensions::default());
    }

    #[test]
    fn mistakes_are_told_with_their_line_and_key() {
        let tags: Vec<_> = (0..9).map(|tag| format!("{{name: t{tag}, header: x-t}}")).collect();
        let tags = format!("dimensions: {{tags: [{}]}}", tags.join(", "));
        for (text, at, what) in [
            ("sessions: plain", "t.yaml:2:11: sessions:", "expected keep, hash or off"),
            ("end_user: [hash]", "t.yaml:2:11: end_user", "is a list"),
            (
                "dimensions: {session: [{header: authorization}]}",
                "t.yaml:2:33: dimensions.session[0].header",
                "may contain a credential",
            ),
            (
                "dimensions: {turn: [{body: a.b.c}]}",
                "t.yaml:2:28: dimensions.turn[0].body",
                "is not a member of the body",
            ),
            (
                "dimensions: {agent: [{header: x-a, body: a}]}",
                "t.yaml:2:31: dimensions.agent[0].header",
                "cannot stand beside `body`",
            ),
            ("dimensions: {secret: short}", "t.yaml:2:22: dimensions.secret", "is too short"),
            ("dimensions: {seession: []}", "dimensions.seession", "did you mean `session`?"),
            (&tags, "t.yaml:2:20: dimensions.tags", "expected at most 8 tags"),
        ] {
            let told = load(text).unwrap_err();
            assert!(told.contains(at) && told.contains(what), "{told}");
        }
    }
}
