//! The keys under `admin_tokens`.

use crate::admin_tokens::AdminRight;
use crate::json_schema::required;
use crate::reader::{List, Required, Spanned, keys};
use crate::values::{Name, Sha256};

keys! {
    /// A token of the admin address. `taximeter keys admin` makes it.
    RawAdminToken {
        /// The name of the token. No two tokens have the same.
        id: Required<Spanned<Name>> = required().example("prometheus"),
        /// The SHA-256 of the token, in 64 hexadecimal digits.
        sha256: Required<Spanned<Sha256>> = required()
            .example("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
        /// What the token may do, at least one of `read`, `ingest` (send what others have measured)
        /// and `change` (change how the gateway works).
        may: Required<List<Spanned<AdminRight>>> = required().example(r#"["read"]"#),
    }
}
