//! Pages and parts of pages in `docs/` that tests make from the code.

use std::path::Path;
use std::{env, fs};

/// Compares the file at `path`, from the root of the repository, with what it should be.
///
/// `made` gets the text of the file and returns the right one, so that a test may make a part of a
/// page and keep the rest. With `INSTA_UPDATE=always` the file is written.
///
/// Errors: the file cannot be written, or it is old; the text names the first line that differs.
pub fn is_fresh(path: &str, made: impl FnOnce(&str) -> String) -> Result<(), String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    let stands = fs::read_to_string(&file).unwrap_or_default();
    let made = made(&stands);
    if stands == made {
        return Ok(());
    }
    if env::var_os("INSTA_UPDATE").is_some_and(|how| how == "always") {
        return fs::write(&file, made).map_err(|fault| format!("{path}: {fault}"));
    }
    let same = stands.lines().zip(made.lines()).take_while(|(old, new)| old == new).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("the end of the file").to_owned();
    Err(format!(
        "{path} is old; INSTA_UPDATE=always writes it. Line {} is\n{}\nand should be\n{}",
        same + 1,
        line(&stands),
        line(&made),
    ))
}
