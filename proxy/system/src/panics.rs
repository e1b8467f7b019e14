//! Reports every panic by its place in the source, even if it is caught. The panic's message is
//! left out, because it may contain a part of a request.

use std::panic::{self, PanicHookInfo};

/// Calls `tell` with the place of each panic of this process from now on.
pub fn on_panic(tell: impl Fn(String) + Send + Sync + 'static) {
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        tell(info.location().map(ToString::to_string).unwrap_or_default());
    }));
}
