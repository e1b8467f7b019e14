//! `taximeter healthy`: asks a gateway on this machine how it is. An image FROM scratch has nothing
//! else that a probe of the kind `exec` could run.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use http::StatusCode;
use taximeter_config::{ADMIN_DEFAULT, UpstreamUrl};
use taximeter_net::ask::{AskFault, ask_by};
use taximeter_net::upstream::Dialer;
use taximeter_top::address;

use super::load;
use crate::exit::{self, Exit};

/// Time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
Examples:
  taximeter healthy                                  it answers: exit 0, else 1 and why on stderr
  taximeter healthy --ready                          it serves: ledger open, not draining
  taximeter healthy --config taximeter.yaml --ready  where that file's gateway has its admin address

As a probe of Kubernetes: exec: {command: [/taximeter, healthy, --ready]}, timeoutSeconds: 5.";

/// Whether the gateway on this machine answers, or is ready
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HealthyArgs {
    /// Configuration file of the gateway, which says where its admin address is
    #[arg(long, value_name = "FILE", env = "TAXIMETER_CONFIG")]
    config: Option<PathBuf>,
    /// Admin address of the gateway, whatever a file says [default: 127.0.0.1:9464]; without a scheme
    /// it may be http or https
    #[arg(long, value_name = "ADDR", env = "TAXIMETER_ADMIN", value_parser = address)]
    admin: Option<UpstreamUrl>,
    /// Whether it serves requests, and not only answers
    #[arg(long)]
    ready: bool,
    /// Seconds to wait for an answer
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=60))]
    timeout: u64,
}

/// Asks once: success where all is well, 1 where not, 64 for a bad configuration.
///
/// Errors: this program cannot do what it needs to ask.
pub(crate) fn run(args: &HealthyArgs) -> anyhow::Result<ExitCode> {
    let url = match (&args.admin, &args.config) {
        (Some(url), _) => url.clone(),
        (None, Some(file)) => match load::config(file) {
            Ok(config) => here(config.admin, config.admin_tls.is_some())?,
            Err(fault) => {
                exit::complain(&fault.to_string());
                return Ok(Exit::Configuration.into());
            }
        },
        (None, None) => here(ADMIN_DEFAULT, false)?,
    };
    let path = if args.ready { "/readyz" } else { "/healthz" };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    let limit = Duration::from_secs(args.timeout);
    let answer = runtime.block_on(async { tokio::time::timeout(limit, answer(&url, path)).await });
    let why = match answer {
        Ok(Ok((StatusCode::OK, _))) => return Ok(ExitCode::SUCCESS),
        Ok(Ok((status, body))) => {
            format!("{path} answers {status}: {}", String::from_utf8_lossy(&body).trim())
        }
        Ok(Err(fault)) => fault.to_string(),
        Err(_) => format!("{}{path} does not answer within {}s", url.authority(), args.timeout),
    };
    exit::complain(&why);
    Ok(ExitCode::FAILURE)
}

/// What the gateway says. Nothing is told to it, so it may be whoever shows any certificate; one that
/// says nothing is asked by TLS, which an address without a scheme does not tell.
async fn answer(url: &UpstreamUrl, path: &str) -> Result<(StatusCode, Bytes), AskFault> {
    let dialer = Dialer::of_anyone(CONNECT_TIMEOUT);
    let fault = match ask_by(&dialer, url, path, None).await {
        Err(fault) if !url.tls => fault,
        answer => return answer,
    };
    let private = UpstreamUrl { tls: true, ..url.clone() };
    ask_by(&dialer, &private, path, None).await.map_err(|_| fault)
}

/// Where this machine reaches what listens at `admin`.
fn here(admin: SocketAddr, tls: bool) -> anyhow::Result<UpstreamUrl> {
    let ip = match admin.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let address = SocketAddr::new(ip, admin.port());
    let scheme = if tls { "https" } else { "http" };
    let url = UpstreamUrl::parse(&format!("{scheme}://{address}"));
    url.map_err(|why| anyhow::anyhow!("cannot ask {address}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_listens_everywhere_is_asked_on_loopback() {
        for (admin, asked) in [
            ("0.0.0.0:9464", "127.0.0.1:9464"),
            ("[::]:1", "[::1]:1"),
            ("127.0.0.1:9464", "127.0.0.1:9464"),
            ("10.0.0.7:80", "10.0.0.7:80"),
        ] {
            let url = here(admin.parse().unwrap(), false).unwrap();
            assert_eq!(url, UpstreamUrl::parse(&format!("http://{asked}")).unwrap(), "{admin}");
        }
    }
}
