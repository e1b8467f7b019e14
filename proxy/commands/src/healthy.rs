//! `taximeter healthy`: a health check of a gateway on this machine. An image FROM scratch has no
//! other program for an `exec` probe.

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

/// Longest time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
Examples:
  taximeter healthy                                  check that the gateway is alive (/healthz)
  taximeter healthy --ready                          check that it serves requests (/readyz)
  taximeter healthy --config taximeter.yaml --ready  use the admin address of that configuration

Exit code: 0 if the gateway is healthy, else 1, with the reason on stderr.
A probe in Kubernetes: exec: {command: [/taximeter, healthy, --ready]}, timeoutSeconds: 5.";

/// Checks whether the gateway on this machine is alive, or ready for requests
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HealthyArgs {
    /// Configuration file of the gateway, which has the admin address
    #[arg(long, value_name = "FILE", env = "TAXIMETER_CONFIG")]
    config: Option<PathBuf>,
    /// Admin address of the gateway. It overrides the configuration. Without a scheme, http and https
    /// are tried [default: 127.0.0.1:9464]
    #[arg(long, value_name = "ADDR", env = "TAXIMETER_ADMIN", value_parser = address)]
    admin: Option<UpstreamUrl>,
    /// Check that the gateway serves requests, and not only that it is alive
    #[arg(long)]
    ready: bool,
    /// Longest wait for an answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=60))]
    timeout: u64,
}

/// Checks once. The exit code is 0 if the gateway is healthy, 64 if the configuration has mistakes,
/// else 1.
///
/// Errors: this program cannot start a check.
pub(crate) fn run(args: &HealthyArgs) -> anyhow::Result<ExitCode> {
    let url = match (&args.admin, &args.config) {
        (Some(url), _) => url.clone(),
        (None, Some(file)) => match load::config(file) {
            Ok(config) => here(config.admin.first(), config.admin_tls.is_some())?,
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
        Err(_) => format!("{}{path} does not answer within {} s", url.authority(), args.timeout),
    };
    exit::complain(&why);
    Ok(Exit::Failed.into())
}

/// Sends the request. It has no secrets, so any certificate of the gateway is accepted. If plain HTTP
/// fails, TLS is tried, because an address without a scheme does not say which one it is.
async fn answer(url: &UpstreamUrl, path: &str) -> Result<(StatusCode, Bytes), AskFault> {
    let dialer = Dialer::of_anyone(CONNECT_TIMEOUT);
    let fault = match ask_by(&dialer, url, path, None).await {
        Err(fault) if !url.tls => fault,
        answer => return answer,
    };
    let private = UpstreamUrl { tls: true, ..url.clone() };
    ask_by(&dialer, &private, path, None).await.map_err(|_| fault)
}

/// The URL on this machine for a gateway that listens on `admin`.
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
