//! CRC-64/NVME, the checksum that S3 may be asked to compare uploads by.
//!
//! `object_store` names the crate `crc-fast` for it, whose tables of every known checksum are 0.7 MB
//! of the program. This crate takes its place (`[patch.crates-io]`), with the part of its face that
//! `object_store` uses.

/// What can be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CrcAlgorithm {
    /// 64 bits, reflected, as NVMe and S3 have it.
    Crc64Nvme,
}

/// A checksum of what came so far.
#[derive(Debug, Clone)]
pub struct Digest {
    state: u64,
}

/// Of the polynomial 0xAD93D23594C93659, bits reversed: the checksum of each byte.
static TABLE: [u64; 256] = table();

impl Digest {
    /// The checksum of nothing.
    #[must_use]
    pub const fn new(algorithm: CrcAlgorithm) -> Self {
        let CrcAlgorithm::Crc64Nvme = algorithm;
        Self { state: u64::MAX }
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let [low, ..] = self.state.to_le_bytes();
            let of_byte = TABLE.get(usize::from(low ^ byte)).copied().unwrap_or_default();
            self.state = self.state >> 8 ^ of_byte;
        }
    }

    /// The checksum of all bytes so far.
    #[must_use]
    pub const fn finalize(&self) -> u64 {
        !self.state
    }
}

const fn table() -> [u64; 256] {
    const POLYNOMIAL: u64 = 0xAD93_D235_94C9_3659_u64.reverse_bits();
    let mut table = [0; 256];
    let mut rest: &mut [u64] = &mut table;
    let mut byte = 0;
    while let Some((entry, after)) = rest.split_first_mut() {
        let (mut value, mut bit) = (byte, 0);
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ POLYNOMIAL } else { value >> 1 };
            bit += 1;
        }
        *entry = value;
        byte += 1;
        rest = after;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum(pieces: &[&[u8]]) -> u64 {
        let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
        pieces.iter().for_each(|piece| digest.update(piece));
        digest.finalize()
    }

    #[test]
    fn the_checksum_is_the_one_that_its_catalogue_says() {
        assert_eq!(checksum(&[b"123456789"]), 0xAE8B_1486_0A79_9888);
    }

    #[test]
    fn pieces_have_the_checksum_of_the_whole() {
        let bytes: Vec<u8> = (0..=255).cycle().take(4_096).collect();
        // As the NVMe specification gives it for a page of zeros.
        assert_eq!(checksum(&[&[0; 4_096]]), 0x6482_D367_EB22_B64E);
        for at in [0, 1, 255, 4_096] {
            let (left, right) = bytes.split_at(at);
            assert_eq!(checksum(&[left, right]), checksum(&[&bytes]));
        }
    }
}
