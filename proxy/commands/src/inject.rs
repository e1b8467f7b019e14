//! `taximeter inject`: adds the gateway as a sidecar to Kubernetes manifests.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use taximeter_sidecar::manifest::{self, ManifestFault, Written};

use super::sidecar::SidecarArgs;
use crate::exit::Exit;

/// Most bytes to read: one more than the longest valid input.
const INPUT_BYTES_MAX: u64 = (16 << 20) + 1;

const STANDARD_INPUT: &str = "standard input";

const EXAMPLES: &str = "\
Examples:
  kubectl get deployment vllm -o yaml | taximeter inject | kubectl apply -f -
  taximeter inject --beside application --tenant label:team app.yaml > metered.yaml
  helm template vllm ./chart | taximeter inject --image registry.example/taximeter:0.1.0
  taximeter inject --memory 1Gi --cpu 200m --drain-seconds 20 --journal-size 4Gi vllm.yaml
  taximeter inject --fleet vllm.yaml                    read metrics of the engine, the host and the pod's exporters
  taximeter inject --allow-unknown everything.yaml      leave what has pods of another kind alone
  diff vllm.yaml <(taximeter inject vllm.yaml)          show what would change

The input is YAML or JSON, with one or more documents: Pod, Deployment, StatefulSet, DaemonSet,
ReplicaSet, ReplicationController, Job, CronJob, PodTemplate, Rollout (Argo), LeaderWorkerSet,
RayService, InferenceService (KServe), and lists of them. Documents without containers stay as they
are. Comments, order and quotes stay, except comments on removed lines. New keys come last in their
map. A second run changes nothing, but a new --image replaces the old one. A pod with the annotation
or label `taximeter.io/inject: \"false\"` gets no sidecar.

Exit code: 0; 1 if an object of another kind has containers; 64 if a document cannot be read or a pod
cannot have a sidecar. With 1 and 64 the reasons are on stderr, with file and line, and there is no
output.";

/// Adds the gateway as a sidecar to Kubernetes manifests
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InjectArgs {
    #[command(flatten)]
    sidecar: SidecarArgs,
    /// Leave objects of other kinds that have containers as they are
    #[arg(long)]
    allow_unknown: bool,
    /// File with manifests [default: standard input]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Writes the manifests to `out`, and notes or faults to `err`.
///
/// Errors: only those of writing.
pub(crate) fn run(
    args: &InjectArgs,
    input: &mut impl Read,
    out: &mut impl Write,
    err: &mut impl Write,
) -> io::Result<ExitCode> {
    let path = args.file.as_deref().filter(|path| *path != Path::new("-"));
    let text = match read(path, input) {
        Ok(text) => text,
        Err(fault) => {
            let path = path.unwrap_or(Path::new(STANDARD_INPUT));
            writeln!(err, "{}: cannot be read: {fault}; nothing was written", path.display())?;
            return Ok(Exit::Configuration.into());
        }
    };
    match manifest::written(&text, &args.sidecar.sidecar(), args.allow_unknown) {
        Ok(Written { text, injected, notes }) => {
            out.write_all(text.as_bytes())?;
            for note in notes {
                writeln!(err, "{note}")?;
            }
            if injected == 0 {
                writeln!(err, "no sidecar was added: no pod in the input needs one")?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(faults) => {
            let path = path.unwrap_or(Path::new(STANDARD_INPUT)).display();
            for fault in &faults {
                match fault.line() {
                    Some(line) => writeln!(err, "{path}:{line}: {fault}")?,
                    None => writeln!(err, "{path}: {fault}")?,
                }
            }
            let problems = if faults.len() == 1 { "problem" } else { "problems" };
            writeln!(err, "{} {problems}; nothing was written", faults.len())?;
            let is_unknown = |fault: &ManifestFault| matches!(fault, ManifestFault::Unknown { .. });
            Ok(match faults.iter().all(is_unknown) {
                true => Exit::Failed.into(),
                false => Exit::Configuration.into(),
            })
        }
    }
}

fn read(file: Option<&Path>, input: &mut impl Read) -> io::Result<String> {
    let mut text = String::new();
    match file {
        Some(path) => File::open(path)?.take(INPUT_BYTES_MAX).read_to_string(&mut text)?,
        None => input.take(INPUT_BYTES_MAX).read_to_string(&mut text)?,
    };
    Ok(text)
}
