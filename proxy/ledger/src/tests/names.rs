//! A million names in one segment: what writer and reader keep of them.

use super::*;

/// Requests of a segment. Each has four names of its own.
const REQUESTS: u128 = 1_000_000 / 4;
/// Between two looks at what is kept.
const PERIOD: u128 = 5_000;
/// Most bytes of strings that are kept: those of the frames since strings began anew.
const KEPT_BYTES_MAX: usize = 1 << 20;

#[test]
fn a_million_names_in_one_segment_take_no_more_memory_than_those_of_one_block() {
    let (header, _, before) = segment(&[], Position::default());
    let mut framer = Framer::new(LEDGER, before);
    let mut reader = Reader::new(None, 1);
    reader.feed(&header);
    let (mut frames, mut buffer, mut bytes) = (Vec::new(), Vec::new(), 0);
    let mut entry = Entry::Reserve(Box::new(reserve(0, None)));
    for number in 1..=REQUESTS {
        let name = format!("tenant-{number}");
        if let Entry::Reserve(reserve) = &mut entry {
            reserve.id = id(number);
            reserve.tenant = tenant(&name);
            reserve.key_id = Some(format!("key-{number}"));
            reserve.request_model = Some(format!("model-{number}"));
            let session = Some(format!("session-{number}"));
            reserve.dimensions = Dimensions { session, ..Dimensions::default() }.if_any();
        }
        frames.clear();
        framer.append(&EncodedEntry::new(&entry, &mut buffer).unwrap(), &mut frames);
        bytes += frames.len();
        reader.feed(&frames);
        let framed = reader.next_entry().unwrap().expect("an entry");
        assert_eq!(framed.seq, u64::try_from(number).unwrap());
        if number % PERIOD == 0 {
            let Entry::Reserve(read) = framed.entry().unwrap() else { panic!("{framed:?}") };
            assert_eq!(read.tenant, tenant(&name));
            let kept = [framer.strings().to_table().len(), reader.table().len()];
            assert!(kept.iter().all(|kept| *kept < KEPT_BYTES_MAX), "{kept:?}");
        }
    }
    assert!(bytes > 32 * KEPT_BYTES_MAX, "{bytes} bytes are too few to learn anything");
}
