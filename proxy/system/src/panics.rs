//! Panics: each is told of, wherever it is caught. What it says is left out, since that may be a part
//! of what a client has sent.

use std::panic::{self, PanicHookInfo};

/// From now on `tell` hears where each panic of this process was.
pub fn told_to(tell: impl Fn(String) + Send + Sync + 'static) {
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        tell(info.location().map(ToString::to_string).unwrap_or_default());
    }));
}
