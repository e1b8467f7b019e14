//! Reads the usage object of Gemini's own API.

use taximeter_pricing::{ByModality, Member};

use super::{Report, names, put, sum};
use crate::json::{Malformed, Reader};

impl Report {
    /// Reads `usageMetadata`. What was thought is beside the candidates, and what tools brought is
    /// beside the prompt. A zero is left out, so what stands alone is all of it.
    pub(crate) fn read_google(value: &mut Reader<'_>) -> Result<Option<Box<Self>>, Malformed> {
        let mut report = Box::new(Self { includes_cache: true, ..Self::default() });
        match value.peek() {
            Some(b'n') => return value.skip().map(|()| None),
            Some(b'{') => {}
            _ => report.mark_unreadable(),
        }
        let mut tools = None;
        value.object(|key, value| {
            let invalid = report.invalid;
            let Self { modalities, invalid: faults, .. } = &mut *report;
            match key {
                b"promptTokenCount" => report.put(value, |report| &mut report.input),
                b"toolUsePromptTokenCount" => put(value, &mut tools, faults),
                b"candidatesTokenCount" => report.put(value, |report| &mut report.output),
                b"thoughtsTokenCount" => report.put(value, |report| &mut report.reasoning),
                b"cachedContentTokenCount" => report.put(value, |report| &mut report.read_inside),
                b"totalTokenCount" => report.put(value, |report| &mut report.total),
                b"promptTokensDetails" | b"toolUsePromptTokensDetails" => {
                    value.array(|part| read_part(part, &mut modalities.input, faults))
                }
                b"cacheTokensDetails" => {
                    value.array(|part| read_part(part, &mut modalities.cache_read, faults))
                }
                b"candidatesTokensDetails" => {
                    value.array(|part| read_part(part, &mut modalities.output, faults))
                }
                _ => value.skip(),
            }?;
            report.note_invalid(invalid, key);
            Ok(())
        })?;
        report.input = sum(report.input, tools);
        report.output = sum(report.output, report.reasoning);
        // The output is the sum of both numbers. It is unknown where one of them is.
        if report.invalid_members.contains(&Member::ReasoningOutputTokens) {
            report.invalid_members.insert(Member::OutputTokens);
        }
        Ok(Some(report))
    }
}

/// Reads the tokens of one modality, and adds them to its part.
fn read_part(
    part: &mut Reader<'_>,
    parts: &mut ByModality,
    invalid: &mut u32,
) -> Result<(), Malformed> {
    let (mut modality, mut tokens) = (None, None);
    part.object(|key, value| {
        match key {
            b"modality" => modality = value.text()?,
            b"tokenCount" => put(value, &mut tokens, invalid)?,
            _ => value.skip()?,
        }
        Ok(())
    })?;
    let kept = modality.and_then(|word| names::google_modality(parts, &word.decode()));
    if let Some(kept) = kept {
        *kept = sum(*kept, tokens);
    }
    Ok(())
}
