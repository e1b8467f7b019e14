//! What connections are secured with: those of clients, and those to the admin address, which is not
//! open to strangers.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::mistake::Invalid;
use crate::model::Tls;
use crate::reader::{At, Optional, Reader, Required, keys};

keys! {
    /// What clients' connections are secured with. The files are read again when they change, and
    /// connections that are made then have what is new.
    RawTls {
        /// Our certificate and those between it and its authority, in PEM.
        cert: Required<At<PathBuf>>,
        /// Its key, in PEM.
        key: Required<At<PathBuf>>,
        /// Authorities, in PEM: clients must show a certificate of one of them. Default: clients need
        /// none.
        client_ca: Optional<At<PathBuf>>,
    }
}

keys! {
    /// What connections to the admin address are secured with. The files are read again when they
    /// change, and connections that are made then have what is new.
    RawAdminTls {
        /// Our certificate and those between it and its authority, in PEM.
        cert: Required<At<PathBuf>>,
        /// Its key, in PEM.
        key: Required<At<PathBuf>>,
        /// Authorities, in PEM: who shows a certificate of one of them needs no `admin_token`, and
        /// where there is no token, nobody else is answered, but for `/healthz` and `/readyz`.
        /// Default: certificates do not count.
        client_ca: Optional<At<PathBuf>>,
    }
}

impl RawTls {
    /// Where the files are; `None` where one is missing, which is reported.
    pub(crate) fn files(self, reader: &Reader<'_>) -> Option<Tls> {
        files(self.cert, self.key, self.client_ca, reader)
    }
}

impl RawAdminTls {
    /// The same.
    pub(crate) fn files(self, reader: &Reader<'_>) -> Option<Tls> {
        files(self.cert, self.key, self.client_ca, reader)
    }

    /// Whether they name authorities of callers; of what is there but wrong nobody knows.
    pub(crate) const fn asks_for_certificates(tls: &Optional<Self>) -> bool {
        match tls {
            Optional::Given(tls) => !matches!(tls.client_ca, Optional::Absent),
            Optional::Absent => false,
            Optional::Wrong => true,
        }
    }
}

fn files(
    cert: Required<At<PathBuf>>,
    key: Required<At<PathBuf>>,
    client_ca: Optional<At<PathBuf>>,
    reader: &Reader<'_>,
) -> Option<Tls> {
    let file = |at: At<PathBuf>| reader.resolve(&at.value);
    Some(Tls { cert: file(cert.0?), key: file(key.0?), client_ca: client_ca.given().map(file) })
}

/// Why the two addresses cannot be served together, or the admin address not to everybody.
pub(crate) fn admin_problem(
    listen: SocketAddr,
    admin: SocketAddr,
    is_guarded: bool,
) -> Option<Invalid> {
    let (ours, theirs) = (admin.ip().to_canonical(), listen.ip().to_canonical());
    let overlap = ours == theirs || ours.is_unspecified() || theirs.is_unspecified();
    if admin.port() == listen.port() && admin.port() != 0 && overlap {
        return Some(Invalid::new(
            "is where clients connect",
            "another port than that of `listen`",
        ));
    }
    if !ours.is_loopback() && !is_guarded {
        return Some(Invalid::new(
            "can be reached from other machines",
            "a loopback address, or `admin_token` or `admin_tls` with `client_ca` in the file",
        ));
    }
    None
}
