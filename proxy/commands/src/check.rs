//! `taximeter check FILE`: prints every mistake in a configuration. It starts nothing.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use jiff::Timestamp;
use taximeter_collections::Gather as _;
use taximeter_config::{Config, UnknownCaller, Upstream};
use taximeter_control::{Annotations, AnnotationsFile};
use taximeter_pricing::PriceBook;

use super::load;
use crate::exit::Exit;

/// Checks a configuration without starting anything
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  taximeter check taximeter.yaml
  POD_NAME=a POD_NAMESPACE=b taximeter check deploy/examples/vllm-sidecar.yaml

Exit code: 0 if the configuration is valid, else 64. Each mistake is on stderr, with its line.")]
pub(crate) struct CheckArgs {
    /// The configuration file
    file: PathBuf,
}

/// Prints every mistake to `err`, or a summary of the configuration to `out`.
///
/// Errors: only those of writing.
pub(crate) fn run(
    args: &CheckArgs,
    now: Timestamp,
    out: &mut impl Write,
    err: &mut impl Write,
) -> io::Result<ExitCode> {
    match load::config(&args.file).and_then(whole) {
        Ok((config, book)) => {
            writeln!(out, "{}: valid; {}", args.file.display(), summary(&config))?;
            for currency in book.without_exchange(now) {
                let bills_in = book.currency();
                writeln!(
                    out,
                    "the cost of models with prices in {currency} alone is unknown: \
                     `prices.exchange` has no rate from {currency} to {bills_in} today"
                )?;
            }
            for line in annotations(&config) {
                writeln!(out, "{line}")?;
            }
            for upstream in config.upstreams.iter().filter(|up| up.shows_credential_to_everyone()) {
                writeln!(
                    out,
                    "credentials go to {} (upstream {}) without encryption, over networks of others: \
                     use https",
                    upstream.url.authority(),
                    upstream.name
                )?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            writeln!(err, "{error}")?;
            Ok(Exit::Configuration.into())
        }
    }
}

/// What is wrong with the annotations of the pod. It is no mistake of the configuration, and another
/// machine does not have them.
fn annotations(config: &Config) -> Vec<String> {
    let mut file = AnnotationsFile::default();
    file.refresh(config.fleet.as_ref().and_then(|fleet| fleet.annotations.as_deref()));
    let Some((path, said)) = file.said() else { return Vec::new() };
    let wrong = match said {
        Ok(Annotations { wrong, .. }) => wrong.clone(),
        Err(why) => {
            vec![format!("{why}; only the pod has it, and /api/v1/fleet says what is wrong there")]
        }
    };
    wrong.iter().map(|why| format!("fleet.annotations, {}: {why}", path.display())).collect()
}

/// Also reads the files that the configuration names.
fn whole(config: Config) -> Result<(Config, PriceBook), load::LoadError> {
    let book = load::tariffs(&config)?.book;
    load::tokenizers(&config)?;
    load::tls(&config)?;
    load::admin_tls(&config)?;
    Ok((config, book))
}

/// A summary of the configuration in one line.
fn summary(config: &Config) -> String {
    let upstreams: Vec<_> = config.upstreams.iter().map(shown).collect();
    let tenants: BTreeSet<&str> =
        config.tenants.keys.iter().map(|key| key.tenant.as_str()).gather_set();
    let others = match &config.tenants.unknown {
        UnknownCaller::Refuse => "other callers are refused".to_owned(),
        UnknownCaller::Tenant(tenant) => format!("other callers are tenant {tenant}"),
    };
    format!(
        "{} ({}), {} of {}, {others}; clients connect to {}, the admin address is {}, data is in {}",
        counted(upstreams.len(), "upstream"),
        upstreams.join(", "),
        counted(config.tenants.keys.len(), "key"),
        counted(tenants.len(), "tenant"),
        config.listen,
        config.admin,
        config.data_dir.display(),
    )
}

/// The name of an upstream, and the dialect that its key or the host of its URL names.
fn shown(upstream: &Upstream) -> String {
    format!("{}: {}", upstream.name, upstream.dialect.as_str())
}

fn counted(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exit code, standard output and standard error for a file with `text`.
    fn check(text: &str) -> (String, String, String) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("taximeter.yaml");
        std::fs::write(&file, text).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = run(&CheckArgs { file }, now(), &mut out, &mut err).unwrap();
        let tell = |bytes| String::from_utf8(bytes).unwrap();
        (format!("{code:?}"), tell(out), tell(err))
    }

    fn now() -> Timestamp {
        "2026-11-20T12:00:00Z".parse().unwrap()
    }

    fn exit(code: u8) -> String {
        format!("{:?}", ExitCode::from(code))
    }

    #[test]
    fn a_good_file_says_in_one_line_what_would_run() {
        let (code, out, err) = check("upstreams: [{name: local, url: 'http://127.0.0.1:8000'}]");
        assert_eq!((code, err.as_str()), (exit(0), ""));
        assert!(out.ends_with(
            "valid; 1 upstream (local: auto), 0 keys of 0 tenants, other callers are tenant default; \
             clients connect to 127.0.0.1:8080, the admin address is 127.0.0.1:9464, data is in \
             ./taximeter-data\n"
        ));
        assert_eq!(out.lines().count(), 1);
    }

    #[test]
    fn credentials_that_cross_a_network_of_others_without_encryption_are_told() {
        for (upstream, told) in [
            ("url: 'http://api.example.com'", true),
            ("url: 'http://api.example.com:8080/v1', credential: sk-1", true),
            ("url: 'http://8.8.8.8', forward_credential: on", true),
            ("url: 'http://api.example.com', forward_credential: off", false),
            ("url: 'https://api.example.com', credential: sk-1", false),
            ("url: 'http://10.1.2.3', credential: sk-1", false),
            ("url: 'http://vllm.models.svc.cluster.local'", false),
            ("url: 'http://localhost:8000'", false),
        ] {
            let (code, out, _) = check(&format!("upstreams: [{{name: far, {upstream}}}]"));
            assert_eq!((code, out.contains("(upstream far) without encryption")), (exit(0), told));
        }
    }

    #[test]
    fn prices_in_a_currency_without_an_exchange_rate_are_told() {
        let upstreams = "upstreams: [{name: local, url: 'http://127.0.0.1:8000'}]";
        let (code, out, _) = check(&format!("{upstreams}\nprices: {{currency: EUR}}"));
        assert_eq!(code, exit(0));
        assert!(
            out.ends_with(
                "the cost of models with prices in USD alone is unknown: `prices.exchange` has no \
                 rate from USD to EUR today\n"
            ),
            "{out}"
        );
        let exchange = "exchange: [{from: USD, rate: 0.92}]";
        let (_, out, _) = check(&format!("{upstreams}\nprices: {{currency: EUR, {exchange}}}"));
        assert_eq!(out.lines().count(), 1, "{out}");
    }

    #[test]
    fn the_price_files_of_a_folder_stand_side_by_side() {
        let folder = tempfile::tempdir().unwrap();
        let row =
            |from: &str| format!("{from}models: [{{model: m, rates: {{input: 1, output: 2}}}}]");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).unwrap();
        };
        write("2026.yaml", &row(""));
        write("2027.yml", &row("from: 2027-01-01\n"));
        write("notes.txt", "no prices");
        let paths = [folder.path().to_owned()];
        let book = load::laid_over(PriceBook::builtin().unwrap(), &paths).unwrap();
        assert_eq!(book.rows().filter(|row| row.model == "m").count(), 2);
        write("2028.yaml", &row(""));
        let error = load::laid_over(PriceBook::builtin().unwrap(), &paths).unwrap_err().to_string();
        assert!(error.contains("2028.yaml:1:18: \"m\" is named twice"), "{error}");
    }

    #[test]
    fn a_bad_file_exits_64_with_every_mistake_on_stderr() {
        let (code, out, err) = check("listen: 1\nupstreams: []\n");
        assert_eq!((code, out.as_str()), (exit(64), ""));
        assert!(err.ends_with("2 problems; nothing was started\n"), "{err}");
    }

    #[test]
    fn a_file_that_is_not_there_exits_64() {
        let mut err = Vec::new();
        let args = CheckArgs { file: PathBuf::from("/nowhere/taximeter.yaml") };
        let code = run(&args, now(), &mut Vec::new(), &mut err).unwrap();
        assert_eq!(format!("{code:?}"), exit(64));
        let err = String::from_utf8(err).unwrap();
        assert!(err.starts_with("/nowhere/taximeter.yaml: cannot be read: No such file"), "{err}");
    }
}
