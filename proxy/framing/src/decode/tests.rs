use std::io::Write;

use proptest::prelude::*;

use super::*;

const CODINGS: [&str; 6] = ["gzip", "x-gzip", "deflate", "raw deflate", "br", "zstd"];

/// `parts`, encoded, with a flush behind each; and where in the encoded body each flush ended.
fn encoded(coding: &str, parts: &[&[u8]]) -> (Vec<u8>, Vec<usize>) {
    fn flushed<W: Write>(mut to: W, parts: &[&[u8]], len: impl Fn(&W) -> usize) -> (W, Vec<usize>) {
        let mut ends = Vec::new();
        for part in parts {
            to.write_all(part).unwrap();
            to.flush().unwrap();
            ends.push(len(&to));
        }
        (to, ends)
    }
    let level = flate2::Compression::default();
    match coding {
        "gzip" | "x-gzip" => {
            let to = flate2::write::GzEncoder::new(Vec::new(), level);
            let (to, ends) = flushed(to, parts, |to| to.get_ref().len());
            (to.finish().unwrap(), ends)
        }
        "deflate" => {
            let to = flate2::write::ZlibEncoder::new(Vec::new(), level);
            let (to, ends) = flushed(to, parts, |to| to.get_ref().len());
            (to.finish().unwrap(), ends)
        }
        "raw deflate" => {
            let to = flate2::write::DeflateEncoder::new(Vec::new(), level);
            let (to, ends) = flushed(to, parts, |to| to.get_ref().len());
            (to.finish().unwrap(), ends)
        }
        "br" => {
            let to = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
            let (to, ends) = flushed(to, parts, |to| to.get_ref().len());
            (to.into_inner(), ends)
        }
        "zstd" => {
            let to = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
            let (to, ends) = flushed(to, parts, |to| to.get_ref().len());
            (to.finish().unwrap(), ends)
        }
        other => panic!("no encoder for {other}"),
    }
}

fn whole(coding: &str, text: &[u8]) -> Vec<u8> {
    encoded(coding, &[text]).0
}

fn decoder(coding: &str) -> Decoder {
    let name = coding.strip_prefix("raw ").unwrap_or(coding);
    Decoder::new(name, RATIO_MAX).unwrap()
}

/// All that is decoded from these reads, and whether it ended without a fault.
fn decoded<'r>(
    decoder: &mut Decoder,
    reads: impl IntoIterator<Item = &'r [u8]>,
) -> (Vec<u8>, Result<(), DecodeFault>) {
    let mut text = Vec::new();
    for read in reads {
        let fed = decoder.feed(read, &mut |piece| {
            assert!(piece.len() <= PIECE_BYTES);
            text.extend_from_slice(piece);
            Ok(())
        });
        if fed.is_err() {
            return (text, fed);
        }
    }
    (text, Ok(()))
}

const EVENTS: [&[u8]; 4] = [
    b"data: {\"choices\":[{\"delta\":{\"content\":\"To the\"}}]}\n\n",
    b"data: {\"choices\":[{\"delta\":{\"content\":\" station\"}}]}\n\n",
    b": ping\n\n",
    b"data: [DONE]\n\n",
];

/// Text that no coding makes very small.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + u8::try_from(state >> 28).unwrap()
    };
    std::iter::repeat_with(&mut next).take(bytes).collect()
}

#[test]
fn every_coding_is_undone_however_its_bytes_arrive() {
    for coding in CODINGS {
        let (body, _) = encoded(coding, &EVENTS);
        for step in 1..=body.len() {
            let (text, fed) = decoded(&mut decoder(coding), body.chunks(step));
            assert_eq!((text, fed), (EVENTS.concat(), Ok(())), "{coding} in reads of {step}");
        }
    }
}

#[test]
fn what_was_flushed_is_decoded_at_once() {
    for coding in CODINGS {
        let (body, ends) = encoded(coding, &EVENTS);
        let mut decoder = decoder(coding);
        let mut from = 0;
        for (event, end) in EVENTS.iter().zip(ends) {
            let (text, _) = decoded(&mut decoder, [&body[from..end]]);
            assert_eq!(&text, event, "{coding}");
            from = end;
        }
    }
}

#[test]
fn long_bodies_are_handed_out_in_pieces() {
    let text = noise(1 << 20);
    for coding in CODINGS {
        let body = whole(coding, &text);
        let (came, fed) = decoded(&mut decoder(coding), [body.as_slice()]);
        assert!(came == text && fed.is_ok(), "{coding}");
    }
}

#[test]
fn two_codings_are_undone_last_first_and_a_third_is_refused() {
    let body = whole("br", &whole("gzip", &EVENTS.concat()));
    for name in ["gzip, br", " GZIP ,Br", "identity, x-gzip,,br"] {
        for step in [1, 7, body.len()] {
            let mut decoder = Decoder::new(name, RATIO_MAX).unwrap();
            let (text, fed) = decoded(&mut decoder, body.chunks(step));
            assert_eq!((text, fed), (EVENTS.concat(), Ok(())), "{name}");
        }
    }
    for name in ["gzip, br, zstd", "compress", "dcb", "gzip;q=1", "gzip, aes128gcm"] {
        assert!(Decoder::new(name, RATIO_MAX).is_err(), "{name}");
    }
}

#[test]
fn members_and_frames_may_follow_each_other_and_garbage_behind_them_means_nothing() {
    for coding in ["gzip", "zstd"] {
        let both = [whole(coding, b"To the"), whole(coding, b" station")].concat();
        for step in 1..=both.len() {
            let (text, fed) = decoded(&mut decoder(coding), both.chunks(step));
            assert_eq!((text.as_slice(), fed), (&b"To the station"[..], Ok(())), "{coding}");
        }
    }
    for coding in ["gzip", "deflate", "raw deflate", "br"] {
        let body = [whole(coding, b"To the"), b"\0\0garbage".to_vec()].concat();
        for step in [1, 3, body.len()] {
            let (text, fed) = decoded(&mut decoder(coding), body.chunks(step));
            assert_eq!((text.as_slice(), fed), (&b"To the"[..], Ok(())), "{coding}");
        }
    }
}

#[test]
fn a_body_is_whole_at_its_end_and_neither_before_nor_behind() {
    for coding in CODINGS {
        let body = whole(coding, &EVENTS.concat());
        for step in [1, 7, body.len()] {
            let mut decoder = decoder(coding);
            for (at, read) in body.chunks(step).enumerate() {
                assert!(!decoder.is_whole(), "{coding} before byte {}", at * step);
                assert_eq!(decoded(&mut decoder, [read]).1, Ok(()), "{coding}");
            }
            assert!(decoder.is_whole(), "{coding}");
            let (_, more) = decoded(&mut decoder, [b"\0".as_slice()]);
            assert!(more.is_err() || !decoder.is_whole(), "{coding}");
        }
    }
    let inner = whole("gzip", b"To the");
    let cut = whole("br", &inner[..inner.len() - 1]);
    let mut decoder = Decoder::new("gzip, br", RATIO_MAX).unwrap();
    assert_eq!(decoded(&mut decoder, [cut.as_slice()]).1, Ok(()));
    assert!(!decoder.is_whole(), "the inner coding has not ended");
}

#[test]
fn a_body_that_is_not_encoded_as_it_says_is_not_followed() {
    for coding in ["gzip", "zstd", "br"] {
        let (text, fed) = decoded(&mut decoder(coding), [b"data: {\"plain\":1}\n\n".as_slice()]);
        assert_eq!((text.as_slice(), fed), (&b""[..], Err(DecodeFault::Damaged)), "{coding}");
    }
}

#[test]
fn a_body_that_swells_beyond_the_ratio_is_not_followed() {
    let bomb = vec![0; 8 << 20];
    for coding in ["gzip", "deflate", "br", "zstd"] {
        let body = whole(coding, &bomb);
        for step in [100, body.len()] {
            let mut came = 0;
            let mut decoder = decoder(coding);
            let fed = body.chunks(step).try_for_each(|read| {
                decoder.feed(read, &mut |piece| {
                    came += piece.len();
                    Ok(())
                })
            });
            let most = (body.len() * 200).max(1 << 20);
            assert_eq!(fed, Err(DecodeFault::TooLarge), "{coding}");
            assert!(came <= most, "{coding}: {came} from {}", body.len());
        }
    }
}

#[test]
fn as_much_as_the_ratio_allows_is_decoded_and_not_a_byte_more() {
    let budget = |encoded| Budget { encoded, decoded: 0, ratio_max: 200 };
    for (encoded, most) in [(1, 1 << 20), (10_000, 2_000_000)] {
        let mut budget = budget(encoded);
        assert_eq!(budget.spend(most), Ok(()));
        assert_eq!(budget.spend(1), Err(DecodeFault::TooLarge), "{encoded}");
    }
}

#[test]
fn a_window_larger_than_senders_may_use_is_not_followed() {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(24).unwrap();
    encoder.write_all(b"To the").unwrap();
    let body = encoder.finish().unwrap();
    assert_eq!(decoded(&mut decoder("zstd"), [body.as_slice()]).1, Err(DecodeFault::Damaged));
}

#[test]
fn damage_anywhere_is_an_end_and_not_a_panic() {
    let text = [EVENTS.concat(), noise(300)].concat();
    for coding in CODINGS {
        let body = whole(coding, &text);
        for at in 0..body.len() {
            for bit in 0..8 {
                let mut damaged = body.clone();
                damaged[at] ^= 1 << bit;
                let (came, _) = decoded(&mut decoder(coding), [damaged.as_slice()]);
                assert!(came.len() <= 1 << 20);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused_alike_in_any_reads(
        body in prop::collection::vec(any::<u8>(), 0..300),
        step in 1_usize..40,
        coding in prop::sample::select(CODINGS.to_vec()),
        cut in any::<prop::sample::Index>(),
    ) {
        let real = whole(coding, &EVENTS.concat());
        let body = [&real[..cut.index(real.len())], &body].concat();
        let at_once = decoded(&mut decoder(coding), [body.as_slice()]);
        let in_reads = decoded(&mut decoder(coding), body.chunks(step));
        prop_assert_eq!(at_once.1, in_reads.1);
        if at_once.1.is_ok() {
            prop_assert_eq!(at_once.0, in_reads.0);
        }
    }
}
