//! The schemas of values, lists and maps, whatever they hold.

use taximeter_pricing::MeterName;

use crate::json_schema::{Described, Schema};
use crate::reader::{ByMeter, List, OneOrMore, Optional, Required, Spanned, Table};
use crate::value::Value;

impl<T: Value> Described for Spanned<T> {
    fn described() -> Schema {
        Schema::Scalar { expected: T::expected(), allowed: T::allowed() }
    }
}

impl<T: Described> Described for List<T> {
    fn described() -> Schema {
        Schema::List(Box::new(T::described()))
    }
}

impl<T: Described> Described for OneOrMore<T> {
    fn described() -> Schema {
        T::described().one_or_more()
    }
}

impl<T: Value> Described for Table<T> {
    fn described() -> Schema {
        Schema::Table(Box::new(Spanned::<T>::described()))
    }
}

impl<T: Value> Described for ByMeter<T> {
    fn described() -> Schema {
        let meters = MeterName::ALL.into_iter().filter(|meter| meter.counts_tokens());
        let names = meters.map(MeterName::as_str).collect();
        Schema::Named { names, values: Box::new(Spanned::<T>::described()) }
    }
}

impl<T: Described> Described for Optional<T> {
    fn described() -> Schema {
        T::described()
    }
}

impl<T: Described> Described for Required<T> {
    fn described() -> Schema {
        T::described()
    }
}
