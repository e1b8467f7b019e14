//! Writes the exports of `taximeter bill`.

use std::io::{self, IsTerminal as _, Write};
use std::path::Path;

use clap::{Args, ValueEnum};
use jiff::SignedDuration;
use taximeter_billing::export::{ExportError, ExportTotals, FocusVersion, Window};
use taximeter_export::format::{self, Rendering};
use taximeter_export::{
    Content, Destination, DestinationFault, ExportFault, Job, Objects, export, stream,
};
use taximeter_store::Store;

use super::failure::Failure;
use super::ledger;
use super::progress::Progress;
use crate::exit::complain;

/// The arguments of exports.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExportArgs {
    /// Version of FOCUS, for focus and focus-parquet [default: 1.2]
    #[arg(long, value_name = "VERSION", value_enum)]
    focus_version: Option<Version>,

    /// Invoice issuer, for focus and focus-parquet
    #[arg(long, value_name = "NAME", env = "TAXIMETER_ISSUER", default_value = Content::ISSUER)]
    issuer: String,

    /// How old an event may be for your account: days or hours, such as 34d or 12h. For stripe,
    /// lago, orb and cloudevents [default: 35d for stripe, 12h for orb, else no limit]
    #[arg(long, value_name = "AGE", value_parser = age)]
    max_age: Option<SignedDuration>,

    /// Write nothing, and exit with 65, if the receiver takes some of the events no more
    #[arg(long)]
    strict: bool,
}

/// Days or hours.
fn age(text: &str) -> Result<SignedDuration, String> {
    Window::age(text).ok_or_else(|| format!("write it like {}", Window::AGE))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Version {
    /// FOCUS 1.2
    #[value(name = "1.2")]
    V1_2,
    /// FOCUS 1.3
    #[value(name = "1.3")]
    V1_3,
}

impl ExportArgs {
    /// What `format` writes.
    ///
    /// Errors: `FocusVersion` if the format is not one of FOCUS.
    pub(super) fn written(&self, format: format::Format) -> Result<Rendering, Failure> {
        let version = match self.focus_version {
            Some(_) if !format.is_focus() => return Err(Failure::FocusVersion),
            Some(Version::V1_3) => FocusVersion::V1_3,
            Some(Version::V1_2) | None => FocusVersion::V1_2,
        };
        Ok(format.written(version, &self.issuer))
    }

    /// Whether something is said about the events that the receiver takes.
    pub(super) const fn has_window(&self) -> bool {
        self.strict || self.max_age.is_some()
    }

    /// The highest age of events, and whether older ones are an error.
    ///
    /// Errors: `Window` if the content is not events.
    pub(super) const fn window(
        &self,
        content: &Content,
    ) -> Result<(Option<SignedDuration>, bool), Failure> {
        if self.has_window() && !content.has_events() {
            return Err(Failure::Window);
        }
        Ok((self.max_age, self.strict))
    }
}

/// Writes an export to `output`, or to `out` if there is no `output`.
pub(super) fn run(
    store: &mut Store,
    job: &Job,
    output: Option<&Path>,
    out: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    let Some(output) = output else {
        return to_output(store, job, out);
    };
    let (destination, file) = destination(output)?;
    let mut progress = Progress::new("rows exported");
    let outcome = export(store, job, &destination, file.as_deref(), &mut || progress.advance());
    progress.end();
    warn(&outcome?.totals);
    Ok(())
}

/// Says which events the receiver does not take.
fn warn(totals: &ExportTotals) {
    if let Some(outside) = &totals.outside_window {
        complain(&format!("warning: {outside}"));
    }
}

/// Replaces a file in one step. Readers see the old file or the new one.
pub(super) fn file(path: &Path, text: &str) -> Result<(), Failure> {
    let (destination, name) = local(path);
    let fault = |fault: DestinationFault| Failure::Export(fault.into());
    let mut draft = destination.draft().map_err(fault)?;
    let source = |source| Failure::File { path: path.to_owned(), source };
    draft.write_all(text.as_bytes()).map_err(source)?;
    destination.publish(draft, &name).map_err(fault)?;
    Ok(())
}

fn to_output(store: &mut Store, job: &Job, out: &mut (dyn Write + Send)) -> Result<(), Failure> {
    let binary = matches!(job.content, Content::Parquet | Content::Focus { parquet: true, .. });
    if binary && io::stdout().is_terminal() {
        return Err(Failure::Terminal);
    }
    let outcome = stream(store, job, out, &mut || {});
    if let Ok(totals) = &outcome {
        warn(totals);
    }
    ledger::unless_reader_left(outcome.map(drop).map_err(|fault| match fault {
        ExportFault::Write(ExportError::Write(error)) => Failure::Output(error),
        fault => fault.into(),
    }))
}

/// The place of the files, and the name of the file if the argument has one.
fn destination(output: &Path) -> Result<(Destination, Option<String>), Failure> {
    let url = output.to_str().filter(|text| text.contains("://"));
    if let Some(url) = url {
        let fault = |fault| Failure::Export(DestinationFault::Objects(fault).into());
        return Ok((Destination::Objects(Objects::open(url).map_err(fault)?), None));
    }
    if output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Ok((Destination::Folder(output.to_owned()), None));
    }
    let (destination, name) = local(output);
    Ok((destination, Some(name)))
}

/// The folder of a file, and its name.
fn local(path: &Path) -> (Destination, String) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    (Destination::Folder(folder.unwrap_or(Path::new(".")).to_owned()), name)
}
