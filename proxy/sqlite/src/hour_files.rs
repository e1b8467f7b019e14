//! Sums per hour that have left the table `hours` for files in the folder `hours` of the data directory.
//!
//! A file has the hours of one UTC day, or those of all days of a month: the files of its days become
//! one when all are old. The table `hour_files` says which files count. Rows leave `hours` in the
//! transaction that names the file which has them. What comes later for such a day stays in `hours`
//! beside the file, and who asks adds both.
//!
//! A file tells of each day which requests and corrections are in it (`HoursCover`). So none is added
//! again when a store is built anew.

mod adopt;
mod check;
mod covers;
mod folder;
mod list;
mod merge;
mod open;
mod seal;
mod tidy;
mod visit;

pub(super) use self::adopt::adopt;
pub(super) use self::check::check;
pub(super) use self::covers::Covers;
pub(super) use self::folder::{FOLDER, file_names};
pub(super) use self::list::{all, names_of};
pub(super) use self::merge::{due, merge, replace};
pub(super) use self::open::HourFiles;
pub(super) use self::seal::{HourSealing, are_left, has_day, leave, old_days, seal};
pub(super) use self::tidy::leftovers;
pub(super) use self::visit::visit;
