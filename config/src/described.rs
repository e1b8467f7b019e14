//! What editors are told of values, lists and maps, whatever is in them.

use serde_json::{Map, Value as Json, json};
use taximeter_pricing::MeterName;

use crate::reader::{At, ByMeter, List, OneOrMore, Optional, Required, Table};
use crate::shape::{Described, told};
use crate::values::Value;

impl<T: Value> Described for At<T> {
    fn described() -> Json {
        told(&[T::EXPECTED], T::shape().described())
    }
}

impl<T: Described> Described for List<T> {
    fn described() -> Json {
        json!({ "type": "array", "items": T::described() })
    }
}

impl<T: Described> Described for OneOrMore<T> {
    fn described() -> Json {
        json!({ "anyOf": [T::described(), List::<T>::described()] })
    }
}

impl<T: Value> Described for Table<T> {
    fn described() -> Json {
        json!({ "type": "object", "additionalProperties": At::<T>::described() })
    }
}

impl<T: Value> Described for ByMeter<T> {
    fn described() -> Json {
        let meters = MeterName::ALL.into_iter().filter(|meter| meter.counts_tokens());
        let properties: Map<String, Json> =
            meters.map(|meter| (meter.as_str().to_owned(), At::<T>::described())).collect();
        json!({ "type": "object", "properties": properties, "additionalProperties": false })
    }
}

impl<T: Described> Described for Optional<T> {
    fn described() -> Json {
        T::described()
    }
}

impl<T: Described> Described for Required<T> {
    fn described() -> Json {
        T::described()
    }
}
