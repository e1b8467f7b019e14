//! Reads Cohere's two counts: the tokens that it bills, and the tokens that it read.

use super::{Report, member, put, sum};
use crate::json::{Malformed, Reader};

impl Report {
    /// Reads `billed_units` or `tokens`: what is billed outranks what was read.
    pub(super) fn read_cohere(
        &mut self,
        is_billed: bool,
        value: &mut Reader<'_>,
    ) -> Result<(), Malformed> {
        let mut images = None;
        self.includes_cache = true;
        value.object(|key, value| {
            let invalid = self.invalid;
            match key {
                b"input_tokens" if is_billed || self.input.is_none() => {
                    self.put(value, |report| &mut report.input)?;
                }
                b"output_tokens" if is_billed || self.output.is_none() => {
                    self.put(value, |report| &mut report.output)?;
                }
                // Beside the input.
                b"image_tokens" => {
                    put(value, &mut images, &mut self.invalid)?;
                    self.note_invalid(invalid, b"input_tokens");
                }
                b"images" => self.read_unit("images", value)?,
                b"search_units" => self.read_unit("search_units", value)?,
                _ => value.skip()?,
            }
            self.note_invalid(invalid, key);
            if is_billed && self.invalid == invalid {
                let told = member(key);
                self.invalid_members.retain(|member| told != Some(*member));
            }
            Ok(())
        })?;
        self.input = sum(self.input, images);
        self.modalities.input.image = images.or(self.modalities.input.image);
        self.is_billed |= is_billed && self.input.or(self.output).is_some();
        Ok(())
    }
}
