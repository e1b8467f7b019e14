//! Finds the tenant from the credential. It never trusts a name that a client can write.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, HeaderName};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use taximeter_config::{Config, TrustedHeader, UnknownCaller};
use taximeter_ledger::{Identity, TenantId};
use taximeter_net::fields::{API_KEY, RECEIPT, X_API_KEY, X_FORWARDED_FOR, X_GOOG_API_KEY};

use crate::journey::refuse::Refusal;

/// Headers in which clients of OpenAI, Anthropic, Azure and Google send their key.
static KEY_HEADERS: [&HeaderName; 4] = [&AUTHORIZATION, &X_API_KEY, &API_KEY, &X_GOOG_API_KEY];

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
    forward_credential: bool,
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
            UnknownCaller::Tenant(tenant) => Some(plain(tenant, Identity::Unknown)),
        };
        let agreed = config.tenants.list.iter();
        Self {
            keys,
            header: config.tenants.header.clone(),
            unknown,
            forward_credential: config.upstreams.iter().any(|up| up.forward_credential),
            concurrency: agreed.filter_map(|of| Some((of.name.clone(), of.concurrency?))).collect(),
            requests_per_tenant_max: config.limits.requests_per_tenant_max,
        }
    }

    /// The caller behind a request's headers.
    ///
    /// Errors: `CredentialsDiffer`, `InvalidKey`, `MissingKey`.
    pub fn identify(&self, peer: IpAddr, headers: &HeaderMap) -> Result<Arc<Caller>, Refusal> {
        let credential = credential(headers)?;
        if !self.keys.is_empty()
            && let Some(credential) = credential
        {
            return self.by_key(credential).ok_or(Refusal::InvalidKey);
        }
        if let Some(caller) = self.by_header(peer, headers) {
            return Ok(caller);
        }
        match &self.unknown {
            Some(caller) => Ok(caller.clone()),
            None if credential.is_some() => Err(Refusal::InvalidKey),
            None => Err(Refusal::MissingKey),
        }
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

    fn by_header(&self, peer: IpAddr, headers: &HeaderMap) -> Option<Arc<Caller>> {
        let trusted = self.header.as_ref()?;
        if !self.trusts(&peer) {
            return None;
        }
        let mut values = headers.get_all(&trusted.name).iter();
        let tenant = values.next()?.to_str().ok()?;
        if values.next().is_some() {
            return None;
        }
        TenantId::new(tenant).ok().map(|tenant| {
            Arc::new(Caller {
                tenant,
                key_id: None,
                identity: Identity::Header,
                labels: BTreeMap::new(),
            })
        })
    }

    /// Takes away what must not reach an engine: our identity headers in any spelling, cookies, and
    /// the client's credential unless an upstream wants it (the relay decides which). Says whether
    /// the client wrote what was not for it to write.
    pub(crate) fn strip(&self, caller: &Caller, headers: &mut HeaderMap) -> bool {
        headers.remove(COOKIE);
        if !self.forward_credential {
            for name in KEY_HEADERS {
                headers.remove(name);
            }
        }
        let ours: Vec<HeaderName> =
            headers.keys().filter(|name| self.is_identity(name.as_str())).cloned().collect();
        let header = self.header.as_ref().map(|header| header.name.as_str());
        let believed = header.filter(|_| caller.identity == Identity::Header);
        let mut spoofed = false;
        for name in ours {
            spoofed |= name != RECEIPT && believed != Some(name.as_str());
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
        let sha256 = Sha256::digest(credential(headers).ok()??);
        Some(sha256.iter().take(FINGERPRINT_BYTES).map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Takes the client's credential off a request.
pub(crate) fn strip_credential(headers: &mut HeaderMap) {
    for name in KEY_HEADERS {
        headers.remove(name);
    }
}

fn plain(tenant: &str, identity: Identity) -> Arc<Caller> {
    Arc::new(Caller {
        tenant: TenantId(tenant.into()),
        key_id: None,
        identity,
        labels: BTreeMap::new(),
    })
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

/// The one credential of a request; the same key under two names is one.
fn credential(headers: &HeaderMap) -> Result<Option<&[u8]>, Refusal> {
    let mut found: Option<&[u8]> = None;
    for name in KEY_HEADERS {
        let mut values = headers.get_all(name).iter();
        let Some(value) = values.next() else { continue };
        if values.next().is_some() {
            return Err(Refusal::CredentialsDiffer);
        }
        let value = value.as_bytes();
        let key = if *name == AUTHORIZATION { bearer(value) } else { value.trim_ascii() };
        if key.is_empty() {
            continue;
        }
        match found {
            Some(other) if other != key => return Err(Refusal::CredentialsDiffer),
            _ => found = Some(key),
        }
    }
    Ok(found)
}

/// The key of `Bearer KEY`; of anything else the whole value, which no key will match.
fn bearer(value: &[u8]) -> &[u8] {
    match value.split_at_checked(7) {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case(b"bearer ") => key.trim_ascii(),
        _ => value.trim_ascii(),
    }
}

/// An address as proxies write it, with a port or without.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let with_port = || text.parse().map(|address: SocketAddr| address.ip());
    text.parse().or_else(|_| with_port()).ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests;
