//! The files of a journal in either form, and what is in them.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use taximeter_ledger::{FramedEntry, Reader};

/// Files of the journal, the oldest first.
pub(crate) fn segments(data_dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(data_dir).expect("the data directory");
    let paths = files.map(|file| file.expect("a file").path());
    let mut segments: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "tlj" || it == "zst"))
        .collect();
    segments.sort();
    // The gateway compresses closed ones. For a moment both forms are there.
    segments.dedup_by(|compressed, plain| compressed.file_stem() == plain.file_name());
    segments
}

/// The name that a file has or had before it was compressed.
pub(crate) fn plain_path(segment: &Path) -> PathBuf {
    if segment.extension().is_some_and(|it| it == "zst") {
        segment.with_extension("")
    } else {
        segment.to_owned()
    }
}

/// The bytes of one file, as they are when they are not compressed.
pub(crate) fn plain(segment: &Path) -> Vec<u8> {
    let bytes = match fs::read(segment) {
        // It was compressed since its name was read.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return plain(&segment.with_extension("tlj.zst"));
        }
        read => read.expect("a segment"),
    };
    if segment.extension().is_none_or(|extension| extension != "zst") {
        return bytes;
    }
    zstd::decode_all(bytes.as_slice()).expect("a compressed segment")
}

/// The whole entries of one file.
pub(crate) fn read(segment: &Path) -> Vec<FramedEntry> {
    let mut reader = Reader::new(None, 1);
    reader.feed(&plain(segment));
    std::iter::from_fn(|| reader.next_entry().ok().flatten()).collect()
}
