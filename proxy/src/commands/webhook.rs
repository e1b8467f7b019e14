//! `taximeter webhook`: sidecars for pods as they are created, asked by the API server.

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

/// The system's own pods must start whatever becomes of us.
const SYSTEM_NAMESPACE: &str = "kube-system";
/// Threads for reading the files of certificates.
const BLOCKING_THREADS_MAX: usize = 2;

const EXAMPLES: &str = "\
Example:
  taximeter webhook --listen 0.0.0.0:8443 --cert /tls/tls.crt --key /tls/tls.key \\
    --image registry.example/taximeter:0.1.0

Answers admission reviews (admission.k8s.io/v1) at POST /inject, and GET /healthz. A pod gets a
sidecar when it asks for one by `taximeter.io/inject: \"true\"`, an annotation or a label; where both
are there, the annotation holds. Pods of kube-system and of the webhook's own namespace never do.

No pod is held up: one that cannot have a sidecar is let through without, with a warning that says
why. What is no review is answered 400. Certificate, key and client CA are read again when their
files change; SIGTERM lets running reviews end.";

/// Adds the sidecar to pods that ask for it, as an admission webhook
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WebhookArgs {
    /// Where the API server connects.
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:8443")]
    listen: SocketAddr,
    /// Certificate in PEM, ours first, for the name of the Service.
    #[arg(long, value_name = "FILE")]
    cert: PathBuf,
    /// Private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Authorities, in PEM, one of which must have signed the caller's certificate [default: nobody
    /// is asked for one].
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// The webhook's own namespace.
    #[arg(long, value_name = "NAME", env = "K8S_NAMESPACE_NAME")]
    namespace: Option<String>,
    /// How log lines look on stderr.
    #[arg(long, value_enum, default_value_t, env = "TAXIMETER_LOG_FORMAT")]
    log_format: LogFormat,
    #[command(flatten)]
    sidecar: SidecarArgs,
}

/// Answers until told to stop.
///
/// Errors: the address cannot be had; files of certificates that do not do end with 64.
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
        let told = log.clone();
        tokio::spawn(watch.run(move |reload| CertificateReloaded(reload).line(&told)));
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
