//! How long each stage of a request took.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A stage of a request. Each begins when the one before ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Finds the route and the tenant.
    Identify,
    /// Reads the body.
    Body,
    /// Chooses an upstream.
    Route,
    /// Writes the reservation to the ledger.
    Admit,
    /// Until the first byte is sent upstream, failed attempts included.
    Connect,
    /// For a stream: until the first token of the engine.
    Prefill,
    /// From the first token to the end.
    Stream,
    /// The whole time of the engine, if the first token is not known. It replaces the two stages
    /// before.
    Answer,
    /// Counts what the engine did not report, and computes the price.
    Settle,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Self; 9] = [
        Self::Identify,
        Self::Body,
        Self::Route,
        Self::Admit,
        Self::Connect,
        Self::Prefill,
        Self::Stream,
        Self::Answer,
        Self::Settle,
    ];

    /// The word in records and spans.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Identify => "identify",
            Self::Body => "body",
            Self::Route => "route",
            Self::Admit => "admit",
            Self::Connect => "connect",
            Self::Prefill => "prefill",
            Self::Stream => "stream",
            Self::Answer => "answer",
            Self::Settle => "settle",
        }
    }

    /// What happens in the stage.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Identify => "finding route and tenant",
            Self::Body => "reading the body",
            Self::Route => "choosing an upstream",
            Self::Admit => "putting it onto the ledger",
            Self::Connect => "reaching the engine, failed attempts included",
            Self::Prefill => "the engine’s queue and prefill, up to a stream’s first token",
            Self::Stream => "from the first token to the end",
            Self::Answer => "the engine’s whole answer, where no first token is known",
            Self::Settle => "counting what was not reported, and pricing; behind the duration",
        }
    }
}

/// How long each stage took. All but the last add up to the duration of the request.
///
/// In the journal this is a list of whole microseconds, in the order of [`Stage::ALL`]. In all
/// other JSON it is an object with the seconds of each stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "StagesJson")]
pub struct Stages([Option<u64>; Stage::ALL.len()]);

impl Stages {
    /// From the time of the end of each stage, since the start of the request. `None` for a stage
    /// that the request did not have.
    #[must_use]
    pub fn ending(ends: [Option<Duration>; Stage::ALL.len()]) -> Self {
        let mut begun = 0;
        Self(ends.map(|end| {
            let end = micros(end?).max(begun);
            Some(end - std::mem::replace(&mut begun, end))
        }))
    }

    /// From how long each stage took. `None` for a stage that the request did not have.
    #[must_use]
    pub fn lasting(took: [Option<Duration>; Stage::ALL.len()]) -> Self {
        Self(took.map(|took| took.map(micros)))
    }

    /// Microseconds of each stage, in the order of [`Stage::ALL`].
    #[must_use]
    pub const fn micros(&self) -> &[Option<u64>; Stage::ALL.len()] {
        &self.0
    }

    /// Microseconds of a stage. `None` if the request did not have it.
    #[must_use]
    pub fn get(&self, stage: Stage) -> Option<u64> {
        let mut stages = Stage::ALL.into_iter().zip(self.0);
        stages.find(|(other, _)| *other == stage).and_then(|(_, micros)| micros)
    }

    /// Each stage that the request had, in order, and how long it took.
    pub fn each(&self) -> impl Iterator<Item = (Stage, Duration)> {
        let all = Stage::ALL.into_iter().zip(self.0);
        all.filter_map(|(stage, took)| Some((stage, Duration::from_micros(took?))))
    }
}

fn micros(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000).saturating_add(time.subsec_micros().into())
}

impl Serialize for Stages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let seconds = self.each().map(|(stage, took)| (stage.as_str(), took.as_secs_f64()));
        serializer.collect_map(seconds)
    }
}

/// Stages in the journal, and stages in other JSON.
#[derive(Deserialize)]
#[serde(untagged)]
enum StagesJson {
    Micros(Vec<Option<u64>>),
    Seconds(BTreeMap<String, f64>),
}

impl From<StagesJson> for Stages {
    fn from(written: StagesJson) -> Self {
        Self(match written {
            StagesJson::Micros(all) => {
                let mut all = all.into_iter();
                Stage::ALL.map(|_| all.next().flatten())
            }
            StagesJson::Seconds(by_word) => Stage::ALL.map(|stage| {
                let seconds = by_word.get(stage.as_str())?;
                Duration::try_from_secs_f64(*seconds).ok().map(micros)
            }),
        })
    }
}

impl PartialSchema for Stages {
    fn schema() -> RefOr<Schema> {
        let seconds = |stage: Stage| {
            ObjectBuilder::new()
                .schema_type(Type::Number)
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Double)))
                .description(Some(stage.meaning()))
        };
        let object = ObjectBuilder::new().description(Some(
            "How long each stage took, in seconds; all but `settle` add up to the duration.",
        ));
        let all = Stage::ALL.into_iter();
        let object = all.fold(object, |all, stage| all.property(stage.as_str(), seconds(stage)));
        object.into()
    }
}

impl ToSchema for Stages {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MICRO: Duration = Duration::from_micros(1);

    fn stream() -> Stages {
        let at = |micros: u32| Some(micros * MICRO + Duration::from_nanos(999));
        let [identify, body, route, admit] = [at(12), at(52), at(51), at(107)];
        Stages::ending([
            identify,
            body,
            route,
            admit,
            at(300),
            at(4_000),
            at(9_999),
            None,
            at(10_003),
        ])
    }

    #[test]
    fn each_stage_begins_where_the_one_before_ended_so_that_they_add_up() {
        let took: Vec<_> = stream().each().map(|(stage, took)| (stage, took.as_micros())).collect();
        use Stage::*;
        let expected = [
            (Identify, 12),
            (Body, 40),
            (Route, 0),
            (Admit, 55),
            (Connect, 193),
            (Prefill, 3_700),
            (Stream, 5_999),
            (Settle, 4),
        ];
        assert_eq!(took, expected);
        assert_eq!(took.iter().map(|(_, took)| took).sum::<u128>(), 10_003);
    }

    #[test]
    fn people_read_seconds_by_words_and_journals_have_microseconds_in_order() {
        let stages = stream();
        let shown = serde_json::to_value(stages).unwrap();
        assert_eq!(
            shown,
            json!({"identify": 0.000_012, "body": 0.000_04, "route": 0.0, "admit": 0.000_055,
                   "connect": 0.000_193, "prefill": 0.0037, "stream": 0.005_999,
                   "settle": 0.000_004})
        );
        let kept = serde_json::to_value(stages.micros()).unwrap();
        assert_eq!(kept, json!([12, 40, 0, 55, 193, 3700, 5999, null, 4]));
        for written in [shown, kept] {
            assert_eq!(serde_json::from_value::<Stages>(written).unwrap(), stages);
        }
    }

    #[test]
    fn stages_of_another_version_do_not_hide_those_that_are_known() {
        let read = |json| serde_json::from_value::<Stages>(json).unwrap();
        let first =
            Stages::ending([Some(7 * MICRO), None, None, None, None, None, None, None, None]);
        assert_eq!(read(json!([7])), first);
        assert_eq!(read(json!([7, null, null, null, null, null, null, null, null, 5])), first);
        assert_eq!(read(json!({"identify": 0.000_007, "ponder": 1.0, "body": -1.0})), first);
    }
}
