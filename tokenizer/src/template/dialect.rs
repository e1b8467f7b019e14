//! Gives a template's environment what `transformers` gives it, and the behaviour of Python.

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Output, State, Value};

use super::{filters, methods, python};

/// Gives an environment what `transformers` gives its own, and Python's ways.
pub(super) fn speak(environment: &mut Environment<'_>) {
    environment.add_function("raise_exception", |_: Value| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, "raised by the template"))
    });
    environment.add_test("sequence", |value: &Value| {
        matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Map)
    });
    environment.add_test("iterable", |value: &Value| {
        let kind = value.kind();
        matches!(
            kind,
            ValueKind::String
                | ValueKind::Seq
                | ValueKind::Map
                | ValueKind::Iterable
                | ValueKind::Undefined
        )
    });
    filters::add(environment);
    environment.set_unknown_method_callback(methods::call);
    environment.set_formatter(print);
}

fn print(out: &mut Output<'_>, _: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) => out.write_str(text)?,
        None => out.write_str(&python::text(value))?,
    }
    Ok(())
}
