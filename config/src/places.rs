//! Where a request says a dimension: the values of `header` and `body`.

use taximeter_dimensions::{Place, PlaceError};

use crate::mistake::Invalid;
use crate::value::Value;

/// A header that says a dimension.
#[derive(Debug, Clone)]
pub(crate) struct HeaderPlace(pub(crate) Place);

impl Value for HeaderPlace {
    const EXPECTED: &'static str = "a header without a credential, such as x-my-run";

    fn parse(text: &str) -> Result<Self, Invalid> {
        Place::header(text).map(Self).map_err(|why| misplaced(why, Self::EXPECTED))
    }
}

/// A member of the body that says a dimension.
#[derive(Debug, Clone)]
pub(crate) struct BodyPath(pub(crate) Place);

impl Value for BodyPath {
    const EXPECTED: &'static str = "a member such as run, or metadata.run";

    fn parse(text: &str) -> Result<Self, Invalid> {
        Place::body(text).map(Self).map_err(|why| misplaced(why, Self::EXPECTED))
    }
}

fn misplaced(why: PlaceError, expected: &'static str) -> Invalid {
    Invalid::new(why.to_string(), expected)
}
