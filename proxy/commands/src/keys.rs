//! `taximeter keys`: makes API keys and signing keys. An API key is shown once; the configuration has
//! only its hash. A signing key signs statements.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use sha2::{Digest, Sha256};
use taximeter_config::{AdminRight, is_tenant_name};
use taximeter_store::signing::SigningKey;

use super::hex::hex;
use crate::exit::Exit;

/// Random bytes in a key. Nobody can guess them, so a plain hash protects the key.
const KEY_BYTES: usize = 32;
/// The start of every key. Scanners for leaked secrets can recognise it.
const KEY_PREFIX: &str = "tax-";
/// Hexadecimal digits of the hash in a default id.
const ID_DIGITS: usize = 8;

/// Makes API keys for tenants, and keys to sign statements
#[derive(Debug, clap::Args)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, clap::Subcommand)]
enum KeysCommand {
    New(NewArgs),
    Admin(AdminArgs),
    Signing(SigningArgs),
}

/// Makes a key to sign statements. Prints the public key, with which tenants check them
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  taximeter keys signing -o signing.pem > public.pem

Keep the private key secret: anyone who has it can sign statements in your name. See
`taximeter verify --help`.")]
struct SigningArgs {
    /// New file for the private key
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Makes an API key. Prints the key once, and its entry for the configuration
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  taximeter keys new --tenant acme
  taximeter keys new --tenant acme --id acme-prod

Taximeter does not store the key. Give it to the tenant. The configuration entry has only its hash.")]
struct NewArgs {
    /// Tenant that pays for requests with the key
    #[arg(long, value_parser = name)]
    tenant: String,
    /// Name of the key on records [default: the tenant and the first digits of the hash]
    #[arg(long, value_parser = name)]
    id: Option<String>,
}

/// Makes a token of the admin address. Prints it once, and its entry for the configuration
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  taximeter keys admin --id prometheus
  taximeter keys admin --id deploy --may read,change

Taximeter does not store the token. The configuration entry has only its hash.")]
struct AdminArgs {
    /// Name of the token
    #[arg(long, value_parser = name)]
    id: String,
    /// What the token may do: read, ingest, change
    #[arg(long, value_name = "RIGHTS", value_delimiter = ',', default_value = "read")]
    may: Vec<Right>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Right {
    Read,
    Ingest,
    Change,
}

impl From<Right> for AdminRight {
    fn from(right: Right) -> Self {
        match right {
            Right::Read => Self::Read,
            Right::Ingest => Self::Ingest,
            Right::Change => Self::Change,
        }
    }
}

/// Prints the key to `out`, or the reason why there is none to `err`.
///
/// Errors: those of writing.
pub(crate) fn run(
    args: &KeysArgs,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let mut random = [0; KEY_BYTES];
    if let Err(error) = getrandom::fill(&mut random) {
        writeln!(err, "cannot make a key: the system has no random numbers: {error}")?;
        return Ok(Exit::Failed.into());
    }
    let key = format!("{KEY_PREFIX}{}", hex(&random));
    let sha256 = hex(&Sha256::digest(&key));
    // A JSON string is valid YAML.
    let (kind, place, entry) = match &args.command {
        KeysCommand::New(args) => {
            let digits: String = sha256.chars().take(ID_DIGITS).collect();
            let id = args.id.clone().unwrap_or_else(|| format!("{}-{digits}", args.tenant));
            if !is_tenant_name(&id) {
                let why = "is too long; use --id for a shorter one";
                writeln!(err, "cannot make a key: the id {id:?} {why}")?;
                return Ok(Exit::Usage.into());
            }
            let (id, tenant) = (serde_json::to_string(&id)?, serde_json::to_string(&args.tenant)?);
            let entry = format!("    - {{id: {id}, tenant: {tenant}, sha256: \"{sha256}\"}}");
            ("key", "tenants: keys:", entry)
        }
        KeysCommand::Admin(args) => {
            let may: Vec<_> = args.may.iter().map(|may| AdminRight::from(*may).as_str()).collect();
            let (id, may) = (serde_json::to_string(&args.id)?, may.join(", "));
            let entry = format!("  - {{id: {id}, sha256: \"{sha256}\", may: [{may}]}}");
            ("token", "admin_tokens:", entry)
        }
        KeysCommand::Signing(args) => {
            write!(out, "{}", SigningKey::create(&args.output)?.public().pem())?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    writeln!(out, "{key}\n")?;
    writeln!(out, "# Save the {kind} above: it is shown only once. Add this under `{place}`:")?;
    writeln!(out, "{entry}")?;
    Ok(ExitCode::SUCCESS)
}

fn name(text: &str) -> Result<String, String> {
    if is_tenant_name(text) {
        return Ok(text.to_owned());
    }
    Err("must have 1 to 128 bytes, no control or invisible character, no / \\ or .., no space at \
         its ends, and must not start with one of = + - @"
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use taximeter_config::Config;

    /// The first line, and the rest.
    fn new_key(tenant: &str, id: Option<&str>) -> (String, String) {
        let args = NewArgs { tenant: tenant.to_owned(), id: id.map(str::to_owned) };
        let mut out = Vec::new();
        run(&KeysArgs { command: KeysCommand::New(args) }, &mut out, &mut Vec::new()).unwrap();
        let out = String::from_utf8(out).unwrap();
        let (key, entry) = out.split_once('\n').unwrap();
        (key.to_owned(), entry.to_owned())
    }

    #[test]
    fn the_entry_is_valid_and_holds_the_hash_of_the_key() {
        for tenant in ["acme", "team \"7\" & \'co\'", "Ünï-{a: b}"] {
            let (key, entry) = new_key(tenant, Some("prod"));
            let file =
                format!("upstreams: [{{name: a, url: 'http://a'}}]\ntenants:\n  keys:\n{entry}");
            let none = |_: &str| None;
            let no_file = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
            let config = Config::from_yaml(&file, "f", &none, &no_file)
                .unwrap_or_else(|mistakes| panic!("{mistakes}"));
            let entry = &config.tenants.keys[0];
            assert_eq!((entry.id.as_str(), entry.tenant.as_str()), ("prod", tenant));
            assert_eq!(entry.sha256[..], Sha256::digest(&key)[..]);
        }
    }

    #[test]
    fn the_entry_of_a_token_is_valid_and_holds_its_hash_and_its_rights() {
        let may = vec![Right::Read, Right::Change];
        let args = AdminArgs { id: "deploy".to_owned(), may };
        let mut out = Vec::new();
        run(&KeysArgs { command: KeysCommand::Admin(args) }, &mut out, &mut Vec::new()).unwrap();
        let out = String::from_utf8(out).unwrap();
        let (token, entry) = out.split_once('\n').unwrap();
        let file = format!("upstreams: [{{name: a, url: 'http://a'}}]\nadmin_tokens:\n{entry}");
        let none = |_: &str| None;
        let no_file = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
        let config = Config::from_yaml(&file, "f", &none, &no_file)
            .unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let entry = &config.admin_tokens[0];
        assert!(token.starts_with("tax-") && entry.matches(token.as_bytes()));
        assert!(entry.may(AdminRight::Change) && !entry.may(AdminRight::Ingest));
    }

    #[test]
    fn a_key_is_shown_once_and_never_twice_the_same() {
        let (key, entry) = new_key("acme", None);
        assert!(key.starts_with("tax-") && key.len() == 4 + 64, "{key}");
        assert!(!entry.contains(&key), "{entry}");
        assert_ne!(key, new_key("acme", None).0);
    }

    #[test]
    fn a_name_that_the_configuration_would_refuse_makes_no_key() {
        assert!(name("a/b").is_err() && name("").is_err() && name("acme").is_ok());
        assert_eq!(new_key_exit(&"a".repeat(125)), format!("{:?}", ExitCode::from(Exit::Usage)));
    }

    fn new_key_exit(tenant: &str) -> String {
        let args = NewArgs { tenant: tenant.to_owned(), id: None };
        let args = KeysArgs { command: KeysCommand::New(args) };
        format!("{:?}", run(&args, &mut Vec::new(), &mut Vec::new()).unwrap())
    }
}
