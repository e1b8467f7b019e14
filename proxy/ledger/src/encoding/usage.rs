//! The usage of a request.
//!
//! What many requests have in common (where the numbers come from, their flags, conditions) is one
//! string. The numbers are members.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use taximeter_pricing::{Flag, Member, Modalities, Pass, Source, Usage};

use super::keys::member_key as key;
use super::member::{DecodeError, Members, Value, Writer, number, put, put_successor, successor};
use super::numbered::Numbered;
use crate::record::{Counted, RecordUsage};

/// Keys inside the string of sources.
mod sources {
    pub(super) const SOURCE: u64 = 1;
    /// Pairs of a number of the usage and its source.
    pub(super) const OF_MEMBER: u64 = 2;
    /// A number of the usage, and its flags.
    pub(super) const FLAGGED: u64 = 3;
    pub(super) const FLAGS: u64 = 4;
    /// A condition, and its text.
    pub(super) const CONDITION: u64 = 5;
    /// The counted tokens are those of the usage.
    pub(super) const COUNTED: u64 = 6;
}

/// Keys inside a quantity with a name.
mod named {
    pub(super) const NAME: u64 = 1;
    pub(super) const QUANTITY: u64 = 2;
}

/// Keys inside a further model run.
mod pass {
    pub(super) const MODEL: u64 = 1;
    pub(super) const MODALITIES: u64 = 2;
    pub(super) const CONDITION: u64 = 3;
}

/// Writes what many requests have in common.
pub(super) fn sources(string: u64, usage: &RecordUsage, out: &mut Writer<'_>) {
    out.group(string, |out| {
        out.number(sources::SOURCE, usage.source.number());
        if !usage.sources.is_empty() {
            out.filled(sources::OF_MEMBER, |out| {
                for (member, source) in &usage.sources {
                    put(member.number(), out);
                    put(source.number(), out);
                }
            });
        }
        for (member, flags) in &usage.flagged {
            out.filled(sources::FLAGGED, |out| {
                put(member.number(), out);
                put_flags(flags, out);
            });
        }
        if !usage.flags.is_empty() {
            out.filled(sources::FLAGS, |out| put_flags(&usage.flags, out));
        }
        for (condition, value) in &usage.conditions {
            out.filled(sources::CONDITION, |out| {
                put(condition.number(), out);
                out.extend_from_slice(value.as_bytes());
            });
        }
        out.unless_zero(sources::COUNTED, is_counted(usage).into());
    });
}

/// Whether the tokens of a usage are those that were counted.
fn is_counted(usage: &RecordUsage) -> bool {
    let RecordUsage { input_tokens, output_tokens, .. } = *usage;
    usage.counted == Some(Counted { input_tokens, output_tokens })
}

fn put_flags(flags: &[Flag], out: &mut Vec<u8>) {
    flags.iter().for_each(|flag| put(flag.number(), out));
}

/// Reads the same into `usage`.
pub(super) fn read_sources(group: &[u8], usage: &mut RecordUsage) -> Result<(), DecodeError> {
    let mut members = Members::new(group);
    while let Some((key, value)) = members.next()? {
        let mut bytes = value.bytes();
        match key {
            sources::SOURCE => usage.source = Source::of(value.number())?,
            sources::OF_MEMBER => {
                while !bytes.is_empty() {
                    let member = Member::of(number(&mut bytes)?);
                    let source = Source::of(number(&mut bytes)?)?;
                    // What a newer version knows besides is left out.
                    usage.sources.extend(member.ok().map(|member| (member, source)));
                }
            }
            sources::FLAGGED => {
                let member = Member::of(number(&mut bytes)?);
                let flags = flags(bytes)?;
                usage.flagged.extend(member.ok().map(|member| (member, flags)));
            }
            sources::FLAGS => usage.flags = flags(bytes)?,
            sources::CONDITION => condition(bytes, &mut usage.conditions)?,
            // The tokens follow as members.
            sources::COUNTED => usage.counted = Some(Counted::default()),
            _ => {}
        }
    }
    Ok(())
}

/// What of the string of sources bills need: the source, and whether the usage is pending and
/// whether the clock was set.
pub(super) fn read_source(group: &[u8]) -> Result<(Source, Vec<Flag>), DecodeError> {
    let mut found = (Source::Unknown, Vec::new());
    let mut members = Members::new(group);
    while let Some((key, value)) = members.next()? {
        match key {
            sources::SOURCE => found.0 = Source::of(value.number())?,
            sources::FLAGS => found.1 = flags(value.bytes())?,
            _ => {}
        }
    }
    Ok(found)
}

/// The flags that this version knows.
fn flags(mut bytes: &[u8]) -> Result<Vec<Flag>, DecodeError> {
    let mut flags = Vec::new();
    while !bytes.is_empty() {
        flags.extend(Flag::of(number(&mut bytes)?).ok());
    }
    Ok(flags)
}

fn condition(
    mut bytes: &[u8],
    conditions: &mut BTreeMap<taximeter_pricing::Condition, String>,
) -> Result<(), DecodeError> {
    let condition = taximeter_pricing::Condition::of(number(&mut bytes)?);
    let value = str::from_utf8(bytes).map_err(|_| DecodeError::NotText)?.to_owned();
    conditions.extend(condition.ok().map(|condition| (condition, value)));
    Ok(())
}

/// Writes numbers, each one more than it is, and 0 for one that is not there. Those at the end that
/// are not there are left out.
pub(super) fn list(key: u64, numbers: &[Option<u64>], out: &mut Writer<'_>) {
    let end = numbers.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    let Some(numbers) = numbers.get(..end).filter(|numbers| !numbers.is_empty()) else { return };
    out.filled(key, |out| {
        numbers.iter().for_each(|number| put_successor(*number, out));
    });
}

/// Reads such numbers. Those that are missing at the end are not there.
pub(super) fn read_list<const N: usize>(mut bytes: &[u8]) -> Result<[Option<u64>; N], DecodeError> {
    let mut numbers = [None; N];
    for slot in &mut numbers {
        if bytes.is_empty() {
            break;
        }
        *slot = successor(&mut bytes)?;
    }
    Ok(numbers)
}

/// Writes the numbers of a usage.
pub(super) fn quantities(usage: &RecordUsage, out: &mut Writer<'_>) {
    list(
        key::TOKENS,
        &[
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            usage.reasoning_output_tokens,
            usage.cache_write_input_tokens,
            usage.cache_write_long_input_tokens,
        ],
        out,
    );
    if let Some(counted) = usage.counted.as_ref().filter(|_| !is_counted(usage)) {
        // One that has neither number is there all the same.
        out.filled(key::COUNTED, |bytes| {
            put_successor(counted.input_tokens, bytes);
            put_successor(counted.output_tokens, bytes);
        });
    }
    if let Some(modalities) = &usage.modalities {
        named_numbers(key::MODALITY, modalities, out);
    }
    units(key::UNIT, &usage.units, out);
    if let Some(passes) = &usage.passes {
        if passes.is_empty() {
            out.number(key::HAS_PASSES, 1);
        }
        passes.iter().for_each(|one| write_pass(key::PASS, one, out));
    }
}

pub(super) fn named_numbers(key: u64, numbers: &BTreeMap<String, u64>, out: &mut Writer<'_>) {
    if numbers.is_empty() {
        out.filled(key, |_| {});
    }
    for (name, number) in numbers {
        out.nested(key, |out| {
            out.bytes(named::NAME, name.as_bytes());
            out.number(named::QUANTITY, *number);
        });
    }
}

fn units(key: u64, units: &BTreeMap<String, Decimal>, out: &mut Writer<'_>) {
    for (name, quantity) in units {
        out.nested(key, |out| {
            out.bytes(named::NAME, name.as_bytes());
            out.decimal(named::QUANTITY, quantity);
        });
    }
}

/// Removes the numbers of a usage. What many requests have in common stays; `counted` is what that
/// says of the tokens that were counted.
pub(super) fn forget_quantities(usage: &mut RecordUsage, counted: Option<Counted>) {
    // All members, so that none is left out.
    let RecordUsage {
        source: _,
        sources: _,
        input_tokens,
        cache_read_input_tokens,
        cache_write_input_tokens,
        cache_write_long_input_tokens,
        output_tokens,
        reasoning_output_tokens,
        modalities,
        units,
        conditions: _,
        passes,
        counted: counted_before,
        flagged: _,
        flags: _,
    } = usage;
    (*input_tokens, *output_tokens) = (None, None);
    (*cache_read_input_tokens, *reasoning_output_tokens) = (None, None);
    (*cache_write_input_tokens, *cache_write_long_input_tokens) = (None, None);
    (*modalities, *passes, *counted_before) = (None, None, counted);
    units.clear();
}

/// Reads a member of a usage into `usage`, if it is one.
pub(super) fn read_quantity(
    key: u64,
    value: Value<'_>,
    usage: &mut RecordUsage,
) -> Result<(), DecodeError> {
    match key {
        key::TOKENS => {
            let [input, output, read, reasoning, write, write_long] = read_list(value.bytes())?;
            (usage.input_tokens, usage.output_tokens) = (input, output);
            (usage.cache_read_input_tokens, usage.reasoning_output_tokens) = (read, reasoning);
            usage.cache_write_input_tokens = write;
            usage.cache_write_long_input_tokens = write_long;
            if let Some(counted) = &mut usage.counted {
                *counted = Counted { input_tokens: input, output_tokens: output };
            }
        }
        key::COUNTED => {
            let [input_tokens, output_tokens] = read_list(value.bytes())?;
            usage.counted = Some(Counted { input_tokens, output_tokens });
        }
        key::MODALITY => {
            let modalities = usage.modalities.get_or_insert_default();
            if let Some((name, number)) = read_named(value)? {
                modalities.insert(name, number.number());
            }
        }
        key::UNIT => {
            if let Some((name, quantity)) = read_named(value)? {
                usage.units.insert(name, quantity.decimal()?);
            }
        }
        key::PASS => usage.passes.get_or_insert_default().push(read_pass(value)?),
        key::HAS_PASSES => {
            usage.passes.get_or_insert_default();
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn read_named(value: Value<'_>) -> Result<Option<(String, Value<'_>)>, DecodeError> {
    let mut members = value.members();
    let (mut name, mut quantity) = (None, None);
    while let Some((key, value)) = members.next()? {
        match key {
            named::NAME => name = Some(value.owned()?),
            named::QUANTITY => quantity = Some(value),
            _ => {}
        }
    }
    Ok(name.zip(quantity))
}

/// Writes a further model run, which has no further ones of its own.
pub(super) fn write_pass(key: u64, one: &Pass, out: &mut Writer<'_>) {
    out.nested(key, |out| {
        out.maybe_text(pass::MODEL, one.model.as_deref());
        let usage = &one.usage;
        list(
            key::TOKENS,
            &[
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_input_tokens,
                usage.reasoning_output_tokens,
                usage.cache_write_input_tokens,
                usage.cache_write_long_input_tokens,
            ],
            out,
        );
        if let Some(modalities) = &usage.modalities {
            named_numbers(pass::MODALITIES, &modalities.named(), out);
        }
        units(key::UNIT, &usage.units, out);
        for (condition, value) in &usage.conditions {
            out.filled(pass::CONDITION, |out| {
                put(condition.number(), out);
                out.extend_from_slice(value.as_bytes());
            });
        }
    });
}

/// Reads a further model run.
pub(super) fn read_pass(value: Value<'_>) -> Result<Pass, DecodeError> {
    let mut one = Pass { model: None, usage: Usage::default() };
    let mut modalities: Option<BTreeMap<String, u64>> = None;
    let usage = &mut one.usage;
    let mut members = value.members();
    while let Some((key, value)) = members.next()? {
        match key {
            pass::MODEL => one.model = Some(value.owned()?),
            key::TOKENS => {
                let [input, output, read, reasoning, write, write_long] = read_list(value.bytes())?;
                (usage.input_tokens, usage.output_tokens) = (input, output);
                (usage.cache_read_input_tokens, usage.reasoning_output_tokens) = (read, reasoning);
                usage.cache_write_input_tokens = write;
                usage.cache_write_long_input_tokens = write_long;
            }
            pass::MODALITIES => {
                let modalities = modalities.get_or_insert_default();
                if let Some((name, number)) = read_named(value)? {
                    modalities.insert(name, number.number());
                }
            }
            key::UNIT => {
                if let Some((name, quantity)) = read_named(value)? {
                    usage.units.insert(name, quantity.decimal()?);
                }
            }
            pass::CONDITION => condition(value.bytes(), &mut usage.conditions)?,
            _ => {}
        }
    }
    usage.modalities = modalities.map(|named| Box::new(Modalities::from(&named)));
    Ok(one)
}
