//! The keys under `ledger` and `export`.

use crate::json_schema::{default, required, without};
use crate::ledger::{Durability, OnDamage, OnUnavailable};
use crate::model::Store;
use crate::numbers::{AtLeast, Whole};
use crate::reader::{Optional, Required, Spanned, keys};
use crate::secret::Secret;
use crate::values::EndpointUrl;

keys! {
    /// How Taximeter writes and keeps the ledger.
    RawLedger {
        /// When an entry counts as written: `os` when the kernel has it, `group` when the kernel
        /// has it and the disk within 10 ms, `sync` when the disk has it.
        durability: Optional<Spanned<Durability>> = default("group").example("sync"),
        /// What a start does with a journal that is damaged before its end: `strict` starts nothing
        /// and says where, `salvage` leaves out what it cannot read, keeps the damaged file and
        /// says what is missing. With `os`, entries that a power cut took count as damage.
        recovery: Optional<Spanned<OnDamage>> = default("strict").example("salvage"),
        /// What happens while entries cannot be written or have no room: `refuse` answers 503
        /// `ledger_unavailable`, `serve` serves on while half of `limits.ledger_queue_bytes_max` is
        /// free. Taximeter writes the queued entries later, in order; they are lost if the process
        /// dies before.
        unavailable: Optional<Spanned<OnUnavailable>> = default("refuse").example("serve"),
        /// The days for which Taximeter keeps the records of requests; bills need none of them. While
        /// the clock is more than a day ahead of the newest entry, it removes none because of this,
        /// until the clock was steady for a day.
        records_keep_days: Optional<Spanned<Whole<1, 36_500>>> = default("400").example("90"),
        /// The most bytes that the data directory may take, if the volume does not leave less. From
        /// 80 % of the room on, Taximeter deletes the oldest journal files that the store has, and
        /// then the oldest records before their days are over. From 95 % on it refuses requests with
        /// 503 `ledger_unavailable`; with `unavailable: serve` it writes on.
        dir_bytes_max: Optional<Spanned<AtLeast<1>>> = without("what the volume leaves").example("9663676416"),
        /// The database for questions and bills: `sqlite` in the data directory, or a PostgreSQL
        /// database that several gateways share. Its URL may end with `?sslmode=` disable, prefer,
        /// require or verify-full, and `&sslrootcert=FILE`.
        store: Optional<Spanned<Store>> =
            default("sqlite").example("postgres://taximeter:${env:PGPASSWORD}@db.example/bills"),
    }
}

keys! {
    /// Where Taximeter sends the records of ended requests.
    RawExport {
        /// A receiver of CloudEvents.
        push: Optional<RawPush> = without("no receiver"),
    }
}

keys! {
    /// A receiver of CloudEvents, such as OpenMeter. Taximeter sends each request that has ended,
    /// in order and at least once.
    RawPush {
        /// The URL to which Taximeter posts batches of events.
        url: Required<Spanned<EndpointUrl>> =
            required().example("https://openmeter.example/api/v1/events"),
        /// The token that Taximeter sends as `authorization: Bearer …`.
        token: Optional<Spanned<Secret>> = without("no token").example("${env:OPENMETER_TOKEN}"),
        /// The most events in one batch.
        batch_max: Optional<Spanned<AtLeast<1>>> = default("100").example("500"),
    }
}
