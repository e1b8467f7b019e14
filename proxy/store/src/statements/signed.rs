//! Signed statements: JSON that whoever has the public key can check.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use taximeter_billing::Statement;

use crate::signing::{PublicKey, SigningKey};

/// The algorithm of all signatures.
const ALGORITHM: &str = "Ed25519";

/// A signed statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signed {
    /// The statement.
    pub statement: Statement,
    signature: Signature,
}

/// The signature of the statement's canonical JSON (RFC 8785).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signature {
    algorithm: String,
    /// The public key in base64. It only tells keys apart: a check uses the tenant's own copy.
    public_key: String,
    /// The signature in base64.
    value: String,
}

impl Signed {
    /// Signs `statement` with `key`.
    pub fn new(statement: Statement, key: &SigningKey) -> Self {
        let signature = Signature {
            algorithm: ALGORITHM.to_owned(),
            public_key: key.public().base64(),
            value: BASE64.encode(key.sign(statement.canonical().as_bytes())),
        };
        Self { statement, signature }
    }

    /// Reads a signed statement. Nothing of it is checked.
    ///
    /// Errors: the text is no signed statement.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text.as_bytes())
    }

    /// The text of its file.
    ///
    /// Errors: none in practice, because its members are texts and numbers.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// What is wrong in it by the key that it names itself: that shows accidents, not forgery.
    pub(crate) fn own_faults(&self) -> Vec<String> {
        match PublicKey::from_base64(&self.signature.public_key) {
            Some(key) => self.faults(&key),
            None => vec!["it names no public key".to_owned()],
        }
    }

    /// What is wrong in it: it was changed, or signed with another key than `key`, or its lines and
    /// totals do not add up.
    pub fn faults(&self, key: &PublicKey) -> Vec<String> {
        let Self { statement, signature } = self;
        let mut faults = Vec::new();
        let value = BASE64.decode(&signature.value).unwrap_or_default();
        if signature.algorithm != ALGORITHM {
            faults.push(format!(
                "the signature uses {:?} instead of {ALGORITHM}",
                signature.algorithm
            ));
        } else if !key.verifies(statement.canonical().as_bytes(), &value) {
            faults.push(if signature.public_key == key.base64() {
                "the signature is wrong: the statement was changed after it was signed".to_owned()
            } else {
                "the statement was signed with another key".to_owned()
            });
        }
        faults.extend(statement.check().err().map(|fault| fault.to_string()));
        faults
    }
}
