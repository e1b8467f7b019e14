//! TLS of client connections and of the admin address.

use std::path::PathBuf;

use crate::json_schema::{required, without};
use crate::model::Tls;
use crate::reader::{Optional, Reader, Required, Spanned, keys};

keys! {
    /// TLS for client connections. Taximeter reads the files again when they change. Connections
    /// that are opened then use the new ones.
    RawTls {
        /// A PEM file with the certificate, and those between it and its authority.
        cert: Required<Spanned<PathBuf>> = required().example("tls.crt"),
        /// A PEM file with the key of `cert`.
        key: Required<Spanned<PathBuf>> = required().example("tls.key"),
        /// A PEM file with authorities. Clients must show a certificate that one of them has
        /// signed.
        client_ca: Optional<Spanned<PathBuf>> =
            without("clients need no certificate").example("clients.pem"),
    }
}

keys! {
    /// TLS for the admin address. Taximeter reads the files again when they change. Connections
    /// that are opened then use the new ones.
    RawAdminTls {
        /// A PEM file with the certificate, and those between it and its authority.
        cert: Required<Spanned<PathBuf>> = required().example("admin.crt"),
        /// A PEM file with the key of `cert`.
        key: Required<Spanned<PathBuf>> = required().example("admin.key"),
        /// A PEM file with authorities. A caller with a certificate that one of them has signed
        /// needs no `admin_token`. Without an `admin_token`, only such callers are answered;
        /// `/healthz` and `/readyz` answer everyone.
        client_ca: Optional<Spanned<PathBuf>> =
            without("certificates do not count").example("operators.pem"),
    }
}

impl RawTls {
    /// The paths of the files; `None` when a required key is missing, which is reported already.
    pub(crate) fn files(self, reader: &Reader<'_>) -> Option<Tls> {
        files(self.cert, self.key, self.client_ca, reader)
    }
}

impl RawAdminTls {
    /// The paths of the files; `None` when a required key is missing, which is reported already.
    pub(crate) fn files(self, reader: &Reader<'_>) -> Option<Tls> {
        files(self.cert, self.key, self.client_ca, reader)
    }

    /// Whether callers need a certificate. A wrong value may mean that they do.
    pub(crate) const fn asks_for_certificates(tls: &Optional<Self>) -> bool {
        match tls {
            Optional::Given(tls) => !matches!(tls.client_ca, Optional::Absent),
            Optional::Absent => false,
            Optional::Wrong => true,
        }
    }
}

fn files(
    cert: Required<Spanned<PathBuf>>,
    key: Required<Spanned<PathBuf>>,
    client_ca: Optional<Spanned<PathBuf>>,
    reader: &Reader<'_>,
) -> Option<Tls> {
    let file = |at: Spanned<PathBuf>| reader.resolve(&at.value);
    Some(Tls { cert: file(cert.0?), key: file(key.0?), client_ca: client_ca.given().map(file) })
}
