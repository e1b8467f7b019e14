//! A tar archive as it is written, file by file (POSIX.1-1988, *ustar*).

use std::io::{self, Read, Write};
use std::time::{Duration, SystemTime};

/// Everything in an archive is whole blocks.
const BLOCK_BYTES: usize = 512;
const NAME_BYTES_MAX: usize = 100;
/// What eleven octal digits can say.
const OCTAL_MAX: u64 = (1 << 33) - 1;

/// An archive.
pub(super) struct Archive<W>(W);

impl<W: Write> Archive<W> {
    /// With nothing in it.
    pub(super) const fn new(out: W) -> Self {
        Self(out)
    }

    /// Adds a file of `length` bytes; how many there were, and fewer are a broken archive.
    ///
    /// Errors: reading and writing; a name that is too long.
    pub(super) fn add(
        &mut self,
        name: &str,
        length: u64,
        modified: SystemTime,
        bytes: &mut impl Read,
    ) -> io::Result<u64> {
        if name.len() > NAME_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "its name is too long"));
        }
        let modified = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        self.0.write_all(&head(name, length, modified.as_secs()))?;
        let copied = io::copy(bytes, &mut self.0)?;
        let behind = usize::try_from(copied).unwrap_or_default() % BLOCK_BYTES;
        if behind > 0 {
            self.0.write_all(&vec![0; BLOCK_BYTES - behind])?;
        }
        Ok(copied)
    }

    /// Ends it.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.0.write_all(&[0; 2 * BLOCK_BYTES])?;
        self.0.flush()
    }
}

/// The block before a file.
fn head(name: &str, length: u64, modified: u64) -> Vec<u8> {
    let (length, modified) = (number(length), number(modified.min(OCTAL_MAX)));
    let with = |sum: &[u8]| {
        let fields: [(&[u8], usize); 10] = [
            (name.as_bytes(), NAME_BYTES_MAX),
            (b"0000640", 8),
            // Nobody in particular: whoever unpacks it.
            (b"0000000", 8),
            (b"0000000", 8),
            (&length, 12),
            (&modified, 12),
            (sum, 8),
            (b"0", 1),
            (b"", 100),
            (b"ustar\x0000", 8),
        ];
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        for (field, width) in fields {
            let end = block.len() + width;
            block.extend_from_slice(field);
            block.resize(end, 0);
        }
        block.resize(BLOCK_BYTES, 0);
        block
    };
    // The sum is of a head in which blanks stand for it.
    let sum: u32 = with(b"        ").iter().map(|byte| u32::from(*byte)).sum();
    with(format!("{sum:06o}\0 ").as_bytes())
}

/// Octal digits; what these cannot say in binary, as GNU's tar does.
fn number(number: u64) -> Vec<u8> {
    if number <= OCTAL_MAX {
        format!("{number:011o}").into_bytes()
    } else {
        [&[0x80, 0, 0, 0], number.to_be_bytes().as_slice()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_a_block_whose_sum_is_right_and_says_any_length() {
        for (length, said) in [
            (0, &b"00000000000\0"[..]),
            (OCTAL_MAX, b"77777777777\0"),
            (OCTAL_MAX + 1, b"\x80\0\0\0\0\0\0\x02\0\0\0\0"),
        ] {
            let head = head("a/b.tlj", length, 0);
            assert_eq!(head.len(), BLOCK_BYTES);
            assert_eq!(&head[124..136], said);
            let sum = std::str::from_utf8(&head[148..154]).unwrap();
            let others = head.iter().enumerate().filter(|(at, _)| !(148..156).contains(at));
            let counted: u32 = others.map(|(_, byte)| u32::from(*byte)).sum();
            assert_eq!(u32::from_str_radix(sum, 8).unwrap(), counted + 8 * 32);
        }
    }

    #[test]
    fn files_are_followed_by_zeros_up_to_the_next_block() {
        let mut out = Vec::new();
        let mut archive = Archive::new(&mut out);
        let mut add = |bytes: &[u8]| {
            let (length, at) = (bytes.len() as u64, SystemTime::UNIX_EPOCH);
            archive.add("a", length, at, &mut &*bytes).unwrap()
        };
        assert_eq!([add(&[1; 512]), add(&[2; 3]), add(&[])], [512, 3, 0]);
        assert!(
            archive.add(&"n".repeat(101), 0, SystemTime::UNIX_EPOCH, &mut io::empty()).is_err()
        );
        archive.finish().unwrap();
        assert_eq!(out.len(), 7 * BLOCK_BYTES);
        assert_eq!(out[3 * 512 + 3..4 * 512], [0; 509]);
        assert_eq!(out[5 * 512..], [0; 1024]);
    }
}
