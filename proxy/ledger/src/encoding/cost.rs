//! The cost of a request.
//!
//! The price and the rates are strings, as many requests share them. Of a line only the quantity is
//! a member: its amount follows from it, and so does the sum. What does not follow is written.

use std::ops::Range;

use rust_decimal::Decimal;

use super::keys::{member_key as key, string};
use super::member::{
    DecodeError, Members, Value, Writer, decimal, decimal_parts, number, put, put_decimal,
};
use super::numbered::Numbered as _;
use crate::record::{RecordCost, RecordLine};
use crate::unknown_cost::{UnknownCost, UnknownCostReason};

/// Keys inside the string of a price.
mod price {
    pub(super) const CURRENCY: u64 = 1;
    pub(super) const PRICE_ID: u64 = 2;
    pub(super) const PRICE_MATCH: u64 = 3;
    pub(super) const AT_LEAST: u64 = 4;
}

/// Keys inside the string of a rate.
mod rate {
    pub(super) const METER: u64 = 1;
    pub(super) const MODEL: u64 = 2;
    pub(super) const PRICE_MATCH: u64 = 3;
    pub(super) const UNIT: u64 = 4;
    pub(super) const UNIT_PRICE: u64 = 5;
    pub(super) const LIST_UNIT_PRICE: u64 = 6;
}

/// Keys inside the string of an unknown cost.
mod unknown {
    pub(super) const REASON: u64 = 1;
    pub(super) const OF: u64 = 2;
    pub(super) const PRICE_ID: u64 = 3;
    pub(super) const DAY: u64 = 4;
    pub(super) const COMBINATION: u64 = 5;
}

/// What a line has, before its numbers.
const HAS_TOKENS: u64 = 1;
const HAS_QUANTITY: u64 = 2;
const HAS_AMOUNT: u64 = 4;

/// The keys of one cost in an entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct CostKeys {
    pub(super) price: u64,
    pub(super) rate: u64,
    pub(super) lines: u64,
    pub(super) amount: u64,
    pub(super) list_amount: u64,
}

impl CostKeys {
    /// The cost of a record, or the one after a correction.
    pub(super) const COST: Self = Self {
        price: string::PRICE,
        rate: string::RATE,
        lines: key::LINES,
        amount: key::AMOUNT,
        list_amount: key::LIST_AMOUNT,
    };
    /// The cost before a correction.
    pub(super) const BEFORE: Self = Self {
        price: string::PRICE_BEFORE,
        rate: string::RATE_BEFORE,
        lines: key::LINES_BEFORE,
        amount: key::AMOUNT_BEFORE,
        list_amount: key::LIST_AMOUNT_BEFORE,
    };
}

/// Writes the strings of a cost.
pub(super) fn strings(keys: CostKeys, cost: &RecordCost, out: &mut Writer<'_>) {
    out.group(keys.price, |out| {
        out.bytes(price::CURRENCY, cost.currency.as_bytes());
        out.bytes(price::PRICE_ID, cost.price_id.as_bytes());
        out.maybe_text(price::PRICE_MATCH, cost.price_match.as_deref());
        out.unless_zero(price::AT_LEAST, cost.at_least.into());
    });
    for line in &cost.lines {
        out.group(keys.rate, |out| {
            out.bytes(rate::METER, line.meter.as_bytes());
            out.maybe_text(rate::MODEL, line.model.as_deref());
            out.maybe_text(rate::PRICE_MATCH, line.price_match.as_deref());
            out.maybe_text(rate::UNIT, line.unit.as_deref());
            out.decimal(rate::UNIT_PRICE, &line.unit_price);
            if let Some(list) = &line.list_unit_price {
                out.decimal(rate::LIST_UNIT_PRICE, list);
            }
        });
    }
}

/// Writes the members of a cost.
pub(super) fn members(keys: CostKeys, cost: &RecordCost, out: &mut Writer<'_>) {
    if !cost.lines.is_empty() {
        out.filled(keys.lines, |out| cost.lines.iter().for_each(|line| put_line(line, out)));
    }
    if !is_written_as(exact_sum(&cost.lines), cost.amount) {
        out.decimal(keys.amount, &cost.amount);
    }
    if !is_written_as(Some(cost.amount), cost.list_amount) {
        out.decimal(keys.list_amount, &cost.list_amount);
    }
}

fn put_line(line: &RecordLine, out: &mut Vec<u8>) {
    let explicit = !is_written_as(exact_amount(line), line.amount);
    let mut form = 0;
    for (flag, is_there) in [
        (HAS_TOKENS, line.tokens.is_some()),
        (HAS_QUANTITY, line.quantity.is_some()),
        (HAS_AMOUNT, explicit),
    ] {
        form |= if is_there { flag } else { 0 };
    }
    put(form, out);
    if let Some(tokens) = line.tokens {
        put(tokens, out);
    }
    if let Some(quantity) = &line.quantity {
        put_decimal(quantity, out);
    }
    if explicit {
        put_decimal(&line.amount, out);
    }
}

/// Whether two amounts are equal, and have the same digits after the point.
fn is_written_as(one: Option<Decimal>, other: Decimal) -> bool {
    one.is_some_and(|one| one == other && one.scale() == other.scale())
}

/// Quantity × price. `None` if a decimal cannot hold it.
fn amount(line: &RecordLine) -> Option<Decimal> {
    line.count().checked_mul(line.unit_price)
}

fn sum(lines: &[RecordLine]) -> Option<Decimal> {
    let (first, rest) = lines.split_first()?;
    rest.iter().try_fold(first.amount, |sum, line| sum.checked_add(line.amount))
}

/// The amount of a line, if no digit of it was rounded away. Other readers round in other ways.
fn exact_amount(line: &RecordLine) -> Option<Decimal> {
    let scale = line.count().scale() + line.unit_price.scale();
    amount(line).filter(|product| product.scale() == scale || product.is_zero())
}

/// The sum of lines, if no digit of it was rounded away.
fn exact_sum(lines: &[RecordLine]) -> Option<Decimal> {
    let scale = lines.iter().map(|line| line.amount.scale()).max();
    sum(lines).filter(|sum| Some(sum.scale()) == scale)
}

/// The parts of a cost, in the order in which a reader finds them.
#[derive(Debug, Default)]
pub(super) struct CostReader<'a> {
    price: Option<RecordCost>,
    rates: Vec<RecordLine>,
    numbers: CostNumbersRead<'a>,
}

impl<'a> CostReader<'a> {
    /// Reads a string, if it is one of the cost.
    pub(super) fn string(
        &mut self,
        keys: CostKeys,
        key: u64,
        group: &[u8],
    ) -> Result<(), DecodeError> {
        if key == keys.price {
            self.price = Some(read_price(group)?);
        } else if key == keys.rate {
            self.rates.push(read_rate(group)?);
        }
        Ok(())
    }

    /// Notes a member, if it is one of the cost.
    pub(super) const fn member(&mut self, keys: CostKeys, key: u64, value: Value<'a>) {
        self.numbers.member(keys, key, value);
    }

    /// The cost from its strings alone. `None` if the entry has none.
    pub(super) fn without_numbers(self) -> Option<RecordCost> {
        self.price.map(|price| RecordCost { lines: self.rates, ..price })
    }

    /// The cost. `None` if the entry has none.
    pub(super) fn finish(self) -> Result<Option<RecordCost>, DecodeError> {
        let numbers = self.numbers;
        let mut cost = self.without_numbers();
        if let Some(cost) = &mut cost {
            numbers.read_into(cost)?;
        }
        Ok(cost)
    }
}

/// The members of a cost.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct CostNumbersRead<'a> {
    lines: Option<Value<'a>>,
    amount: Option<Value<'a>>,
    list_amount: Option<Value<'a>>,
}

impl<'a> CostNumbersRead<'a> {
    /// Notes a member, if it is one of the cost.
    pub(super) const fn member(&mut self, keys: CostKeys, key: u64, value: Value<'a>) {
        if key == keys.lines {
            self.lines = Some(value);
        } else if key == keys.amount {
            self.amount = Some(value);
        } else if key == keys.list_amount {
            self.list_amount = Some(value);
        }
    }

    /// Reads all numbers of a cost that has its price and rates.
    pub(super) fn read_into(self, cost: &mut RecordCost) -> Result<(), DecodeError> {
        let mut lines = self.lines.map(Value::bytes);
        for line in &mut cost.lines {
            read_line(lines.as_mut(), line)?;
        }
        let read = |value: Option<Value<'_>>| value.map(Value::decimal).transpose();
        let amount = read(self.amount)?.or_else(|| sum(&cost.lines));
        cost.amount = amount.ok_or(DecodeError::Missing("amount"))?;
        cost.list_amount = read(self.list_amount)?.unwrap_or(cost.amount);
        Ok(())
    }
}

fn read_price(group: &[u8]) -> Result<RecordCost, DecodeError> {
    let mut cost = RecordCost {
        at_least: false,
        currency: String::new(),
        amount: Decimal::ZERO,
        list_amount: Decimal::ZERO,
        price_id: String::new(),
        price_match: None,
        lines: Vec::new(),
    };
    let mut members = Members::new(group);
    while let Some((key, value)) = members.next()? {
        match key {
            price::CURRENCY => cost.currency = value.owned()?,
            price::PRICE_ID => cost.price_id = value.owned()?,
            price::PRICE_MATCH => cost.price_match = Some(value.owned()?.into()),
            price::AT_LEAST => cost.at_least = value.number() != 0,
            _ => {}
        }
    }
    Ok(cost)
}

fn read_rate(group: &[u8]) -> Result<RecordLine, DecodeError> {
    let mut line = RecordLine {
        meter: String::new(),
        model: None,
        price_match: None,
        tokens: None,
        quantity: None,
        unit: None,
        unit_price: Decimal::ZERO,
        list_unit_price: None,
        amount: Decimal::ZERO,
    };
    let mut members = Members::new(group);
    while let Some((key, value)) = members.next()? {
        match key {
            rate::METER => line.meter = value.owned()?,
            rate::MODEL => line.model = Some(value.owned()?),
            rate::PRICE_MATCH => line.price_match = Some(value.owned()?.into()),
            rate::UNIT => line.unit = Some(value.owned()?),
            rate::UNIT_PRICE => line.unit_price = value.decimal()?,
            rate::LIST_UNIT_PRICE => line.list_unit_price = Some(value.decimal()?),
            _ => {}
        }
    }
    Ok(line)
}

/// Reads the numbers of a line, or that it has none.
fn read_line(bytes: Option<&mut &[u8]>, line: &mut RecordLine) -> Result<(), DecodeError> {
    (line.tokens, line.quantity, line.amount) = (None, None, Decimal::ZERO);
    let Some(bytes) = bytes else { return Ok(()) };
    let form = number(bytes)?;
    if form & HAS_TOKENS != 0 {
        line.tokens = Some(number(bytes)?);
    }
    if form & HAS_QUANTITY != 0 {
        line.quantity = Some(decimal(bytes)?);
    }
    let explicit = if form & HAS_AMOUNT != 0 { Some(decimal(bytes)?) } else { amount(line) };
    line.amount = explicit.ok_or(DecodeError::OutOfRange)?;
    Ok(())
}

/// The quantities of the lines of costs, one post after the other.
#[derive(Debug, Clone, Default)]
pub struct LineQuantities {
    /// Of posts whose lines count tokens.
    pub tokens: Vec<u64>,
    /// Of other posts.
    pub decimals: Vec<Decimal>,
}

/// The numbers of the cost of a post. The quantities of its lines are in [`LineQuantities`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CostNumbers {
    /// The post has no cost.
    None,
    /// Each line counts tokens, at most [`TOKENS_MAX`], and all amounts are the sum of tokens ×
    /// price. So many tokens of each line have an exact sum.
    Tokens(Range<usize>),
    /// Any other cost.
    Amounts {
        /// The amount or its known part.
        amount: Decimal,
        /// The same at list price.
        list_amount: Decimal,
        /// The quantities of the lines.
        quantities: Range<usize>,
    },
}

/// Most tokens of one line of [`CostNumbers::Tokens`].
pub const TOKENS_MAX: u64 = 1 << 40;
/// Most lines, and most units of the last digit of a price, of which [`TOKENS_MAX`] tokens have a
/// sum that fits into the 96 bits of a decimal.
const SMALL_LINES_MAX: usize = 16;
const SMALL_PRICE_MAX: u64 = 1 << 50;

/// Reads the numbers of costs at these rates.
#[derive(Debug)]
pub(super) struct CostNumbersReader {
    prices: Vec<Decimal>,
    /// The same, as numbers of units of 10^-`scale`. `None` if sums of tokens may not be exact.
    units: Option<Vec<i64>>,
    scale: u32,
}

impl CostNumbersReader {
    pub(super) fn new(rates: &[RecordLine]) -> Self {
        let prices: Vec<_> = rates.iter().map(|rate| rate.unit_price).collect();
        let scale = prices.iter().map(Decimal::scale).max().unwrap_or_default();
        let units = |price: &Decimal| {
            let units = in_units(price.mantissa(), price.scale(), scale)?;
            i64::try_from(units).ok().filter(|units| units.unsigned_abs() <= SMALL_PRICE_MAX)
        };
        let are_few = (1..=SMALL_LINES_MAX).contains(&prices.len());
        let units = if are_few { prices.iter().map(units).collect() } else { None };
        Self { prices, units, scale }
    }

    /// The numbers of a cost with these lines, and with the amounts that are written: the one at the
    /// price, and the one at list price.
    pub(super) fn read(
        &self,
        lines: Option<&[u8]>,
        written: [Option<&[u8]>; 2],
        out: &mut LineQuantities,
    ) -> Result<CostNumbers, DecodeError> {
        let [amount, list_amount] = written;
        if list_amount.is_none()
            && let (Some(units), Some(lines)) = (&self.units, lines)
            && let Some(tokens) = self.read_tokens(units, lines, amount, &mut out.tokens)
        {
            return Ok(CostNumbers::Tokens(tokens));
        }
        let (start, mut sum) = (out.decimals.len(), None);
        if let Some(mut lines) = lines {
            for (index, price) in self.prices.iter().enumerate() {
                let (quantity, amount) = read_quantity(&mut lines, *price)?;
                out.decimals.push(quantity);
                sum = if index == 0 { Some(amount) } else { add(sum, amount) };
            }
        }
        out.decimals.resize(start + self.prices.len(), Decimal::ZERO);
        let read = |amount: Option<&[u8]>| amount.map(|mut bytes| decimal(&mut bytes)).transpose();
        let amount = read(amount)?.or(sum).ok_or(DecodeError::Missing("amount"))?;
        let list_amount = read(list_amount)?.unwrap_or(amount);
        Ok(CostNumbers::Amounts { amount, list_amount, quantities: start..out.decimals.len() })
    }

    /// The tokens of each line. `None` if a line has something else, or if `amount` is not what they
    /// cost.
    fn read_tokens(
        &self,
        units: &[i64],
        mut lines: &[u8],
        amount: Option<&[u8]>,
        out: &mut Vec<u64>,
    ) -> Option<Range<usize>> {
        let (start, mut sum) = (out.len(), 0);
        for units in units {
            let form = number(&mut lines).unwrap_or_default();
            let tokens = number(&mut lines).unwrap_or(u64::MAX);
            if form != HAS_TOKENS || tokens > TOKENS_MAX {
                out.truncate(start);
                return None;
            }
            sum += i128::from(tokens) * i128::from(*units);
            out.push(tokens);
        }
        // An amount is written without zeros at its end, which the sum may have.
        if amount.is_some_and(|amount| self.units_in(amount) != Some(sum)) {
            out.truncate(start);
            return None;
        }
        Some(start..out.len())
    }

    /// How many units a decimal has that is written. `None` if it is no whole number of them.
    fn units_in(&self, mut decimal: &[u8]) -> Option<i128> {
        let (is_negative, digits, scale) = decimal_parts(&mut decimal).ok()?;
        in_units(if is_negative { -digits } else { digits }, scale, self.scale)
    }
}

/// How many units of 10^-`unit` a decimal with these digits has. `None` if it is no whole number of
/// them, or too large to be worth the work.
fn in_units(digits: i128, scale: u32, unit: u32) -> Option<i128> {
    let digits = i64::try_from(digits).ok()?;
    let factor = 10_i64.checked_pow(unit.checked_sub(scale)?)?;
    Some(i128::from(digits) * i128::from(factor))
}

fn add(sum: Option<Decimal>, amount: Decimal) -> Option<Decimal> {
    sum.and_then(|sum| sum.checked_add(amount))
}

/// The quantity and the amount of a line at this price.
fn read_quantity(bytes: &mut &[u8], price: Decimal) -> Result<(Decimal, Decimal), DecodeError> {
    let form = number(bytes)?;
    let mut count = None;
    if form & HAS_TOKENS != 0 {
        count = Some(Decimal::from(number(bytes)?));
    }
    if form & HAS_QUANTITY != 0 {
        let quantity = decimal(bytes)?;
        count = count.or(Some(quantity));
    }
    let count = count.unwrap_or_default();
    let explicit = if form & HAS_AMOUNT != 0 { Some(decimal(bytes)?) } else { None };
    let amount = explicit.or_else(|| count.checked_mul(price)).ok_or(DecodeError::OutOfRange)?;
    Ok((count, amount))
}

/// Writes why a cost is unknown.
pub(super) fn unknown_cost(reason: &UnknownCost, out: &mut Writer<'_>) {
    out.group(string::UNKNOWN_COST, |out| {
        out.number(unknown::REASON, reason.reason.number());
        out.maybe_text(unknown::OF, reason.of.as_deref());
        out.maybe_text(unknown::PRICE_ID, reason.price_id.as_deref());
        if let Some(day) = reason.day {
            out.bytes(unknown::DAY, day.to_string().as_bytes());
        }
        out.maybe_text(unknown::COMBINATION, reason.combination.as_deref());
    });
}

/// Reads why a cost is unknown.
pub(super) fn read_unknown_cost(group: &[u8]) -> Result<UnknownCost, DecodeError> {
    let mut found = UnknownCost::new(UnknownCostReason::NoPrice, None);
    let mut members = Members::new(group);
    while let Some((key, value)) = members.next()? {
        match key {
            unknown::REASON => found.reason = UnknownCostReason::of(value.number())?,
            unknown::OF => found.of = Some(value.owned()?),
            unknown::PRICE_ID => found.price_id = Some(value.owned()?),
            unknown::DAY => {
                let day = value.text()?.parse();
                found.day = Some(day.map_err(|_| DecodeError::UnknownValue("day"))?);
            }
            unknown::COMBINATION => found.combination = Some(value.owned()?),
            _ => {}
        }
    }
    Ok(found)
}
