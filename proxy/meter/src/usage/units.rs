//! Reads quantities that are not tokens.

use rust_decimal::Decimal;

use super::Report;
use crate::json::{Malformed, Quantity, Reader};

impl Report {
    /// Reads the quantity called `name`, where it is told beside usage or in its place; `None`
    /// where there is none.
    pub(crate) fn read_only(
        name: &'static str,
        value: &mut Reader<'_>,
    ) -> Result<Option<Box<Self>>, Malformed> {
        let mut report = Box::<Self>::default();
        report.read_quantity(name, value)?;
        Ok((!report.is_empty()).then_some(report))
    }

    /// Reads a count of what is no token.
    pub(super) fn read_unit(
        &mut self,
        name: &'static str,
        value: &mut Reader<'_>,
    ) -> Result<(), Malformed> {
        let count = self.read_tokens(value)?.number();
        self.units.extend(count.map(|count| (name, Decimal::from(count))));
        Ok(())
    }

    /// Reads a quantity of what is no token, which need not be whole.
    pub(super) fn read_quantity(
        &mut self,
        name: &'static str,
        value: &mut Reader<'_>,
    ) -> Result<(), Malformed> {
        match Quantity::read(value)? {
            Quantity::Exact(quantity) => self.units.extend([(name, quantity)]),
            Quantity::Absent => {}
            Quantity::Invalid => self.invalid = self.invalid.saturating_add(1),
        }
        Ok(())
    }
}
