//! Reads the usage object of Bedrock's Converse API. `inputTokens` excludes the cached tokens.

use super::{Report, put, sum};
use crate::json::{Malformed, Reader};

impl Report {
    /// Reads a member that counts something; steps over any other.
    pub(super) fn read_bedrock(
        &mut self,
        key: &[u8],
        value: &mut Reader<'_>,
    ) -> Result<(), Malformed> {
        match key {
            b"inputTokens" => self.put(value, |report| &mut report.input),
            b"outputTokens" => self.put(value, |report| &mut report.output),
            b"totalTokens" => self.put(value, |report| &mut report.total),
            b"cacheReadInputTokens" | b"cacheReadInputTokenCount" => {
                self.put(value, |report| &mut report.read_outside)
            }
            b"cacheWriteInputTokens" | b"cacheWriteInputTokenCount" => {
                self.put(value, |report| &mut report.write_outside)
            }
            b"cacheDetails" => value.array(|writes| self.read_writes(writes)),
            _ => value.skip(),
        }
    }

    /// Cache writes of one time to live.
    fn read_writes(&mut self, writes: &mut Reader<'_>) -> Result<(), Malformed> {
        let (mut is_long, mut tokens) = (false, None);
        writes.object(|key, value| {
            match key {
                b"ttl" => is_long = value.text()?.is_some_and(|time| time.is("1h")),
                b"inputTokens" => put(value, &mut tokens, &mut self.invalid)?,
                _ => value.skip()?,
            }
            Ok(())
        })?;
        let kept = if is_long { &mut self.write_outside_1h } else { &mut self.write_outside_5m };
        *kept = sum(*kept, tokens);
        Ok(())
    }
}
