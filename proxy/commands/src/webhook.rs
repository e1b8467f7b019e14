//! `taximeter webhook`: an admission webhook that adds sidecars to new pods in Kubernetes.

mod server;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use taximeter_net::serving::PROTOCOLS;
use taximeter_net::tls::{Files, Tls};
use taximeter_sidecar::Reviewer;
use taximeter_system::signals::Stop;
use taximeter_telemetry::events::CertificateReloaded;
use taximeter_telemetry::log::{Log, LogFormat};
use taximeter_telemetry::{Event as _, LogEvent};

use super::sidecar::SidecarArgs;
use crate::exit::{self, Exit};

/// Pods of Kubernetes itself never get a sidecar, so they always start.
const SYSTEM_NAMESPACE: &str = "kube-system";
/// Threads that read certificate files.
const BLOCKING_THREADS_MAX: usize = 2;

const EXAMPLES: &str = "\
Example:
  taximeter webhook --listen 0.0.0.0:8443 --cert /tls/tls.crt --key /tls/tls.key \\
    --image registry.example/taximeter:0.1.0

The webhook answers admission reviews (admission.k8s.io/v1) at POST /inject, and GET /healthz. A pod
gets a sidecar if it has the annotation or label `taximeter.io/inject: \"true\"`. If it has both, the
annotation decides. Pods in kube-system and in the webhook's own namespace never get one.

The webhook blocks no pod. If a pod cannot have a sidecar, it starts without one, and the answer has a
warning with the reason. A request that is no review gets status 400. Certificate, key and client CA
are reloaded when their files change. SIGTERM lets running reviews end.";

/// Runs an admission webhook that adds the sidecar to pods that ask for it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WebhookArgs {
    /// Address for the API server
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:8443")]
    listen: SocketAddr,
    /// PEM file with the certificate for the name of the Service, and its chain after it
    #[arg(long, value_name = "FILE")]
    cert: PathBuf,
    /// PEM file with the private key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// PEM file with authorities, one of which must have signed the client certificate of the API
    /// server [default: no client certificate is needed]
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// The webhook's own namespace
    #[arg(long, value_name = "NAME", env = "K8S_NAMESPACE_NAME")]
    namespace: Option<String>,
    /// Format of log lines on stderr
    #[arg(long, value_enum, default_value_t, env = "TAXIMETER_LOG_FORMAT")]
    log_format: LogFormat,
    #[command(flatten)]
    sidecar: SidecarArgs,
}

/// Runs the webhook until a signal ends it. With bad certificate files, the exit code is 64.
///
/// Errors: it cannot listen on the address.
pub(crate) fn run(args: &WebhookArgs) -> anyhow::Result<ExitCode> {
    let files = Files {
        certificate: args.cert.clone(),
        key: args.key.clone(),
        client_ca: args.client_ca.clone(),
        is_client_optional: false,
    };
    let (tls, watch) = match Tls::open(files, PROTOCOLS) {
        Ok(opened) => opened,
        Err(fault) => {
            exit::complain(&format!("{fault}; nothing was started"));
            return Ok(Exit::Configuration.into());
        }
    };
    let listener = TcpListener::bind(args.listen)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    let address = listener.local_addr().context("cannot listen")?;
    let log = Arc::new(Log::new(args.log_format).context("cannot start the log")?);
    let left_alone = args.namespace.iter().cloned().chain([SYSTEM_NAMESPACE.to_owned()]).collect();
    let reviewer = Reviewer { sidecar: args.sidecar.sidecar(), left_alone };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .thread_name("webhook")
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    runtime.block_on(async {
        let stop = Stop::new().context("cannot listen for signals")?;
        let listener = tokio::net::TcpListener::from_std(listener).context("cannot listen")?;
        let reload_log = log.clone();
        tokio::spawn(watch.run(move |reload| CertificateReloaded(reload).line(&reload_log)));
        log.tell(
            LogEvent::Listening,
            [("listen", address.to_string().into()), ("version", env!("CARGO_PKG_VERSION").into())],
        );
        server::serve(listener, tls, reviewer, log.clone(), stop).await;
        anyhow::Ok(())
    })?;
    log.tell(LogEvent::Stopped, []);
    log.flush();
    Ok(ExitCode::SUCCESS)
}
