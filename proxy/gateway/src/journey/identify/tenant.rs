//! Finds the tenant from the credential. It never trusts a name that a client can write.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::HeaderMap;
use http::header::COOKIE;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use taximeter_config::{Config, TrustedHeader, UnknownCaller, Upstream, is_tenant_name};
use taximeter_ledger::{Identity, TenantId};
use taximeter_net::fields::{KEY, RECEIPT, X_FORWARDED_FOR};

use super::credential::{
    KEY_HEADERS, Shown, has_form_of_ours, has_key_in, holds, strip_credential,
};
use crate::journey::refuse::Refusal;

/// Bytes of a key's hash that logs show.
const FINGERPRINT_BYTES: usize = 4;

/// Who pays for a request, and how we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The tenant.
    pub tenant: TenantId,
    /// The id of the API key, if one identified the caller.
    pub key_id: Option<String>,
    /// How the caller was identified.
    pub identity: Identity,
    /// The labels of the key.
    pub labels: BTreeMap<String, String>,
}

struct Key {
    sha256: [u8; 32],
    caller: Arc<Caller>,
}

/// All that identifies a caller.
pub struct Directory {
    /// By the first bytes of the hash; the whole hash is compared in constant time.
    keys: HashMap<[u8; 8], Vec<Key>>,
    header: Option<TrustedHeader>,
    unknown: Option<Arc<Caller>>,
    /// Whether the client's own credential may go on to an upstream.
    lets_credentials_go_on: bool,
    /// Requests that tenants may have at once, where that is agreed with them.
    concurrency: HashMap<String, usize>,
    /// The same of all others.
    requests_per_tenant_max: Option<usize>,
}

impl Directory {
    /// The directory of a configuration.
    pub fn new(config: &Config) -> Self {
        let mut keys: HashMap<[u8; 8], Vec<Key>> = HashMap::new();
        for key in &config.tenants.keys {
            let caller = Arc::new(Caller {
                tenant: TenantId(key.tenant.as_str().into()),
                key_id: Some(key.id.clone()),
                identity: Identity::ApiKey,
                labels: key.labels.clone(),
            });
            keys.entry(prefix(&key.sha256)).or_default().push(Key { sha256: key.sha256, caller });
        }
        let unknown = match &config.tenants.unknown {
            UnknownCaller::Refuse => None,
            UnknownCaller::Tenant(tenant) => {
                Some(plain(TenantId(tenant.as_str().into()), Identity::Unknown))
            }
        };
        let agreed = config.tenants.list.iter();
        Self {
            keys,
            header: config.tenants.header.clone(),
            unknown,
            lets_credentials_go_on: config.upstreams.iter().any(Upstream::takes_clients_credential),
            concurrency: agreed.filter_map(|of| Some((of.name.clone(), of.concurrency?))).collect(),
            requests_per_tenant_max: config.limits.requests_per_tenant_max,
        }
    }

    /// The caller behind a request's headers: by `x-taximeter-key`, which decides alone; by a credential
    /// that is one of ours; by the header of a trusted peer; or else as one who shows nothing.
    ///
    /// Errors: `CredentialsDiffer`, `WrongKey`, `InvalidKey`, `MissingKey`, `TenantName`,
    /// `UntrustedPeer`.
    pub fn identify(&self, peer: IpAddr, headers: &HeaderMap) -> Result<Arc<Caller>, Refusal> {
        let mut keys = headers.get_all(&KEY).iter();
        if let Some(key) = keys.next() {
            return match keys.next() {
                Some(_) => Err(Refusal::CredentialsDiffer),
                None => self.by_key(key.as_bytes().trim_ascii()).ok_or(Refusal::WrongKey),
            };
        }
        let shown = Shown::of(headers);
        if let Some(caller) = shown.all().find_map(|credential| self.by_key(credential)) {
            return if shown.differ() { Err(Refusal::CredentialsDiffer) } else { Ok(caller) };
        }
        if let Some(caller) = self.by_header(peer, headers)? {
            return Ok(caller);
        }
        let must_be_known = self.unknown.is_none() || !self.keys.is_empty();
        match &self.unknown {
            _ if shown.is_repeated() || must_be_known && shown.differ() => {
                Err(Refusal::CredentialsDiffer)
            }
            _ if must_be_known && !shown.is_none() => Err(Refusal::InvalidKey),
            Some(caller) => Ok(caller.clone()),
            None => match &self.header {
                Some(TrustedHeader { name, .. }) if headers.contains_key(name) => {
                    Err(Refusal::UntrustedPeer { header: name.clone() })
                }
                _ => Err(Refusal::MissingKey),
            },
        }
    }

    /// Whether a request has a header that says who asks: a credential, or the tenant's name.
    pub(crate) fn is_signed(&self, headers: &HeaderMap) -> bool {
        let named = self.header.as_ref().is_some_and(|header| headers.contains_key(&header.name));
        let shown = || KEY_HEADERS.iter().any(|name| headers.contains_key(*name));
        named || headers.contains_key(&KEY) || shown()
    }

    /// Whether nobody at `peer` is served without a credential.
    pub(crate) fn asks_for_key(&self, peer: IpAddr) -> bool {
        self.unknown.is_none() && !self.trusts(&peer)
    }

    /// Whether a credential is a key of ours, or has its form.
    pub(super) fn is_ours(&self, credential: &[u8]) -> bool {
        has_form_of_ours(credential) || self.by_key(credential).is_some()
    }

    /// Who asks: whoever is connected, or behind peers whom we trust with the tenant's header the last
    /// address in `x-forwarded-for` that is none of theirs. It is told, and decides nothing.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let lines = headers.get_all(&X_FORWARDED_FOR).iter().rev();
        let mut addresses = lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(','));
        let mut client = peer.to_canonical();
        while self.trusts(&client)
            && let Some(Some(address)) = addresses.next().map(address)
        {
            client = address;
        }
        client
    }

    /// Requests that a tenant may have at once; `None` is as many as it likes.
    pub(crate) fn concurrency(&self, tenant: &TenantId) -> Option<usize> {
        self.concurrency.get(tenant.as_str()).copied().or(self.requests_per_tenant_max)
    }

    fn by_key(&self, credential: &[u8]) -> Option<Arc<Caller>> {
        if self.keys.is_empty() {
            return None;
        }
        let sha256: [u8; 32] = Sha256::digest(credential).into();
        let mut found = None;
        for key in self.keys.get(&prefix(&sha256))? {
            if bool::from(key.sha256.ct_eq(&sha256)) {
                found = Some(key.caller.clone());
            }
        }
        found
    }

    fn trusts(&self, peer: &IpAddr) -> bool {
        let trusted = self.header.as_ref().map(|header| &header.trusted_peers);
        trusted.is_some_and(|trusted| trusted.iter().any(|network| network.contains(peer)))
    }

    /// The tenant that a trusted peer names.
    ///
    /// Errors: the name is none. An empty one is nobody's, where nobody needs to be named.
    fn by_header(&self, peer: IpAddr, headers: &HeaderMap) -> Result<Option<Arc<Caller>>, Refusal> {
        let Some(trusted) = self.header.as_ref().filter(|_| self.trusts(&peer)) else {
            return Ok(None);
        };
        let mut values = headers.get_all(&trusted.name).iter();
        let Some(value) = values.next() else { return Ok(None) };
        let only = values.next().is_none();
        if only && value.is_empty() && self.unknown.is_some() {
            return Ok(None);
        }
        let name = std::str::from_utf8(value.as_bytes()).ok().filter(|_| only);
        let tenant =
            name.filter(|name| is_tenant_name(name)).and_then(|name| TenantId::new(name).ok());
        match tenant {
            Some(tenant) => Ok(Some(plain(tenant, Identity::Header))),
            None => Err(Refusal::TenantName { header: trusted.name.clone() }),
        }
    }

    /// Takes away what must not reach an engine: our identity headers in any spelling, cookies, keys of
    /// ours wherever they stand, and the client's credential unless an upstream takes it (the relay
    /// decides which). `caller` is who it was found to be from. Says whether the client wrote what was
    /// not for it to write.
    pub(crate) fn strip(&self, caller: Option<&Caller>, headers: &mut HeaderMap) -> bool {
        headers.remove(COOKIE);
        let key_is_credential = caller.is_some_and(|caller| caller.identity == Identity::ApiKey)
            && !headers.contains_key(&KEY);
        if caller.is_none() || key_is_credential || !self.lets_credentials_go_on {
            strip_credential(headers);
        } else {
            for name in KEY_HEADERS {
                let mut values = headers.get_all(name).iter();
                if values.any(|value| holds(value.as_bytes(), |word| self.is_ours(word))) {
                    headers.remove(name);
                }
            }
        }
        let believed = caller.filter(|caller| caller.identity == Identity::Header);
        let believed = believed.and(self.header.as_ref()).map(|header| header.name.as_str());
        let mut spoofed = false;
        let mut leaving = Vec::new();
        for (name, value) in &*headers {
            if self.is_identity(name.as_str()) {
                let is_clients = name == RECEIPT || name == KEY || believed == Some(name.as_str());
                spoofed |= !is_clients;
                leaving.push(name.clone());
            } else if has_key_in(value.as_bytes()) {
                leaving.push(name.clone());
            }
        }
        for name in leaving {
            headers.remove(name);
        }
        spoofed
    }

    /// Whether a header, in any spelling, says for whom a request is, or is ours to give.
    fn is_identity(&self, name: &str) -> bool {
        self.header.as_ref().is_some_and(|header| same(name, &header.name))
            || same(name, "x-tenant-id")
            || name.get(..12).is_some_and(|head| same(head, "x-taximeter-"))
    }

    /// Whether a header must not be dropped because a client names it in `connection`: what shows who
    /// asks, and what we set.
    pub(super) fn is_reserved(&self, name: &str) -> bool {
        const SET: [&str; 5] =
            ["x-request-id", "host", "content-length", "traceparent", "tracestate"];
        SET.iter().any(|other| name.eq_ignore_ascii_case(other))
            || KEY_HEADERS.iter().any(|header| *header == name)
            || self.is_identity(name)
    }

    /// What may be told of the credential that was shown: the first characters of its hash.
    pub(crate) fn fingerprint(headers: &HeaderMap) -> Option<String> {
        let key = headers.get(&KEY).map(|key| key.as_bytes().trim_ascii());
        let sha256 = Sha256::digest(key.or_else(|| Shown::of(headers).all().next())?);
        Some(sha256.iter().take(FINGERPRINT_BYTES).map(|byte| format!("{byte:02x}")).collect())
    }
}

fn plain(tenant: TenantId, identity: Identity) -> Arc<Caller> {
    Arc::new(Caller { tenant, key_id: None, identity, labels: BTreeMap::new() })
}

fn prefix(sha256: &[u8; 32]) -> [u8; 8] {
    let mut prefix = [0; 8];
    for (to, from) in prefix.iter_mut().zip(sha256) {
        *to = *from;
    }
    prefix
}

/// Equal, where some servers would take `_` for `-`.
fn same(name: &str, other: &str) -> bool {
    let plain = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    name.len() == other.len() && name.bytes().zip(other.bytes()).all(|(a, b)| plain(a) == plain(b))
}

/// An address as proxies write it, with a port or without.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let with_port = || text.parse().map(|address: SocketAddr| address.ip());
    text.parse().or_else(|_| with_port()).ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests;
