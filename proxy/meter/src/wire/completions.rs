//! Reads answers of `/v1/completions`.

use super::choices;
use crate::facts::{Content, Facts, Format};
use crate::json::{Malformed, Reader};
use taximeter_framing::Event;

#[derive(Debug)]
pub(super) struct Completions;

impl Format for Completions {
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed> {
        choices::read(event.data, generated)
    }

    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        choices::read(body, generated)
    }
}

fn generated<'a>(
    key: &[u8],
    value: &mut Reader<'a>,
    content: &mut Content<'a>,
) -> Result<(), Malformed> {
    match key {
        b"text" => content.push(value.text()?),
        _ => value.skip()?,
    }
    Ok(())
}
