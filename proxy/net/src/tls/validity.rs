//! Reads from certificates when they are valid.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::time::{Time, Validity as Times};

use super::contents::FILE_BYTES_MAX;

/// When a certificate is valid, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// Its first second.
    pub not_before: i64,
    /// Its last one.
    pub not_after: i64,
}

impl Validity {
    /// Of the certificate in a PEM file, or of the one in its chain that ends first. `None` if there is
    /// none that can be read.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_file(path: &Path) -> io::Result<Option<Self>> {
        let mut pem = Vec::new();
        File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut pem)?;
        let chain = CertificateDer::pem_slice_iter(&pem);
        let times = chain.filter_map(|certificate| Self::of(certificate.ok()?.as_ref()));
        Ok(times.min_by_key(|validity| validity.not_after))
    }

    /// Of a certificate in DER.
    fn of(der: &[u8]) -> Option<Self> {
        let certificate = Certificate::from_der(der).ok()?;
        let Times { not_before, not_after, .. } = certificate.tbs_certificate().validity();
        let seconds = |time: &Time| i64::try_from(time.to_unix_duration().as_secs()).ok();
        Some(Self { not_before: seconds(not_before)?, not_after: seconds(not_after)? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn pem(until: i32) -> String {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        (params.not_before, params.not_after) =
            (date_time_ymd(2026, 2, 28), date_time_ymd(until, 3, 1));
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    #[test]
    fn the_certificate_of_a_chain_counts_that_ends_first() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let of = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            Validity::of_file(file.path()).unwrap()
        };
        let not_before = 1_772_236_800;
        // The second is beyond the years that have two digits.
        let (soon, late) = (1_803_859_200, 2_687_472_000);
        assert_eq!(of(&pem(2027)), Some(Validity { not_before, not_after: soon }));
        assert_eq!(of(&pem(2055)), Some(Validity { not_before, not_after: late }));
        let chain = pem(2055) + &pem(2027);
        assert_eq!(of(&chain), Some(Validity { not_before, not_after: soon }));
        assert_eq!(of("nothing"), None);
        assert!(Validity::of_file(&file.path().join("nowhere")).is_err());
    }

    proptest! {
        #[test]
        fn whatever_is_read_nothing_panics(der in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Validity::of(&der);
        }
    }
}
