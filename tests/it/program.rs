//! The program that the tests run, made from what is there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Set by who has built the programs together with the tests, as `tests/run` does. Without the
/// tests they get other features of what they depend on, so that most of it is built once more.
const BUILT_VARIABLE: &str = "TAXIMETER_TEST_BUILT";

/// The binary of this build, made if it is missing or stale.
pub(crate) fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let this = std::env::current_exe().expect("this test's own path");
        let profile = this.ancestors().nth(2).expect("target/PROFILE/deps/it");
        if std::env::var_os(BUILT_VARIABLE).is_some() {
            return profile.join("taximeter");
        }
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        build.args(["build", "--quiet", "--locked", "--workspace", "--bins"]);
        build.arg("--manifest-path").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"));
        build.arg("--target-dir").arg(profile.parent().expect("target"));
        if profile.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().expect("run cargo").success(), "the gateway does not build");
        profile.join("taximeter")
    })
}
