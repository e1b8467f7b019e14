//! `limits!`: one line of the table becomes a field of `Limits` with its default, a key of the file
//! with its range, a line of the schema and of the reference, and a number of the status.

use std::time::Duration;

use serde_json::Number;

/// Declares the limits. A line of the table is
///
/// ```text
/// /// What it bounds, and what happens beyond it.
/// field ("key", where it differs): type = default, values of the file, effect;
/// ```
///
/// A limit without a fixed default ends with words that describe it, and an example.
macro_rules! limits {
    ($(
        $(#[doc = $about:literal])+
        $field:ident $(($name:literal))?: $kind:ty = $default:expr, $values:ty, $effect:ident
            $(, $words:literal, $example:literal)?;
    )+) => {
        /// Named limits. `Limits::default()` has the documented defaults.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Limits {
            $($(#[doc = $about])+ pub $field: $kind,)+
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        $crate::reader::keys! {
            /// Named limits. The end of a name is its unit.
            RawLimits {
                $($(#[doc = $about])+
                $field $(($name))?: $crate::reader::Optional<$crate::reader::Spanned<$values>> =
                    $crate::limits::declare::facts!(
                        $crate::limits::declare::Figure::figure(&Limits::default().$field)
                        $(, $words, $example)?
                    ),)+
            }
        }

        impl Limits {
            /// When a changed limit takes effect, by the path of its key.
            pub(crate) const EFFECTS: &'static [(&'static str, $crate::json_schema::Effect)] = &[
                $((
                    concat!("limits.", $crate::reader::key_name!($field $(($name))?)),
                    $crate::json_schema::Effect::$effect,
                ),)+
            ];

            /// Every limit by its name in the configuration: bytes, seconds or a count. `None`
            /// where there is no limit.
            #[must_use]
            pub fn values(&self) -> Vec<(&'static str, Option<serde_json::Number>)> {
                vec![$((
                    $crate::reader::key_name!($field $(($name))?),
                    $crate::limits::declare::Figure::figure(&self.$field),
                ),)+]
            }

            /// What the file says, and defaults.
            pub(crate) fn of(raw: RawLimits) -> Self {
                let default = Self::default();
                Self { $($field: raw.$field.or(default.$field),)+ }
            }

            /// Takes the limits that wait for a restart from `running`, and notes those that
            /// differ.
            pub(crate) fn keep(&mut self, running: &Self, waiting: &mut Vec<&'static str>) {
                let mut effects = Self::EFFECTS.iter();
                $(if let Some((path, $crate::json_schema::Effect::Restart)) = effects.next()
                    && self.$field != running.$field
                {
                    self.$field = running.$field;
                    waiting.push(path);
                })+
            }
        }
    };
}
pub(crate) use limits;

/// What the table says of one limit beside its name, type and meaning.
macro_rules! facts {
    ($default:expr) => {
        $crate::json_schema::limit($default.as_ref(), None)
    };
    ($default:expr, $words:literal, $example:literal) => {
        $crate::json_schema::limit($default.as_ref(), Some($words)).example($example)
    };
}
pub(crate) use facts;

/// A limit as a number.
pub(crate) trait Figure {
    /// Bytes, seconds or a count; `None` where there is no limit.
    fn figure(&self) -> Option<Number>;
}

impl Figure for usize {
    fn figure(&self) -> Option<Number> {
        Some(Number::from(*self))
    }
}

impl Figure for u32 {
    fn figure(&self) -> Option<Number> {
        Some(Number::from(*self))
    }
}

impl Figure for Option<usize> {
    fn figure(&self) -> Option<Number> {
        self.map(Number::from)
    }
}

/// In seconds, without a fraction where there is none.
impl Figure for Duration {
    fn figure(&self) -> Option<Number> {
        let whole = (self.subsec_nanos() == 0).then(|| Number::from(self.as_secs()));
        whole.or_else(|| Number::from_f64(self.as_secs_f64()))
    }
}
