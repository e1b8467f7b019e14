//! The files of a journal in either form, and what is in them.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use taximeter_ledger::{
    EncodedEntry, Entry, FramedEntry, Framer, LedgerId, Position, Reader, SegmentHeader,
};

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

/// Makes all that the journal has earlier, and removes the store, which had it as it was.
pub(crate) fn age(data_dir: &Path, by: SignedDuration) {
    let earlier = |at: &mut Timestamp| *at -= by;
    let mut before = None;
    for path in segments(data_dir) {
        let bytes = plain(&path);
        let mut reader = Reader::new(None, 1);
        reader.feed(&bytes);
        let (mut aged, mut payload) = (Vec::new(), Vec::new());
        let mut framer = None;
        while let Some(framed) = reader.next_entry().expect("an entry") {
            let framer = framer.get_or_insert_with(|| {
                let mut header = reader.header().expect("a header").clone();
                (header.has_sync_marks, header.follows) = (false, None);
                header.before = before.unwrap_or(header.before);
                earlier(&mut header.created);
                header.encode(&mut aged);
                Framer::new(header.ledger, header.before)
            });
            let mut entry = framed.entry().expect("an entry");
            match &mut entry {
                Entry::Reserve(reserve) => earlier(&mut reserve.started_at),
                Entry::Post(record) => {
                    earlier(&mut record.started_at);
                    earlier(&mut record.ended_at);
                }
                Entry::Checkpoint(checkpoint) => {
                    earlier(&mut checkpoint.at);
                    // The next one says it anew, ten minutes later. Without one, the last entry does.
                    checkpoint.settled = None;
                }
                Entry::Refusals(refusals) => earlier(&mut refusals.at),
                _ => {}
            }
            framer.append(&EncodedEntry::new(&entry, &mut payload).expect("an entry"), &mut aged);
        }
        before = framer.map(|framer| framer.last());
        fs::remove_file(&path).expect("remove the segment");
        fs::write(plain_path(&path), aged).expect("write the segment");
    }
    for name in ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm"] {
        let _ = fs::remove_file(data_dir.join(name));
    }
}

/// Writes the journal of a gateway that has written these entries.
pub(crate) fn write_journal(dir: &Path, ledger: u8, entries: &[Entry]) {
    fs::create_dir_all(dir).expect("make the directory");
    let ledger = format!("5f3f0c3a-4c1e-4d55-9a6b-0d4a5e3c2b{ledger:02x}");
    let ledger = LedgerId(ledger.parse().expect("a UUID"));
    let header = SegmentHeader {
        gateway: "gw".to_owned(),
        ledger,
        before: Position::START,
        lost: 0,
        has_sync_marks: false,
        follows: None,
        created: entries[0].at(),
    };
    let (mut bytes, mut payload) = (Vec::new(), Vec::new());
    header.encode(&mut bytes);
    let mut framer = Framer::new(ledger, Position::START);
    for entry in entries {
        framer.append(&EncodedEntry::new(entry, &mut payload).expect("an entry"), &mut bytes);
    }
    fs::write(dir.join("journal-00000000000000000001.tlj"), bytes).expect("write a segment");
}
