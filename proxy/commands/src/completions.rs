//! `taximeter completions` and `taximeter man`: what shells and `man` read about the commands.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

/// Prints completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  taximeter completions bash > ~/.local/share/bash-completion/completions/taximeter
  taximeter completions zsh > ~/.zfunc/_taximeter
  taximeter completions fish > ~/.config/fish/completions/taximeter.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Writes man pages
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  taximeter man | man -l -                           read the first page
  taximeter man ~/.local/share/man/man1              a page of each command, for `man taximeter-bill`")]
pub(crate) struct ManArgs {
    /// Folder for a page of each command [default: the first page, to standard output]
    dir: Option<PathBuf>,
}

/// Writes the completions of `program`.
///
/// Errors: those of writing.
pub(crate) fn completions(
    args: &CompletionsArgs,
    mut program: Command,
    out: &mut impl Write,
) -> io::Result<()> {
    let name = program.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut program, name, &mut text);
    out.write_all(&text)
}

/// Writes the man pages of `program`.
///
/// Errors: those of writing.
pub(crate) fn man(args: &ManArgs, mut program: Command, out: &mut impl Write) -> io::Result<()> {
    let Some(dir) = &args.dir else { return Man::new(program).render(out) };
    fs::create_dir_all(dir)?;
    // Gives each command the whole name that its page has.
    program.build();
    clap_mangen::generate_to(program, dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Command {
        let bill = Command::new("bill").about("Shows what tenants owe");
        Command::new("taximeter").version("1").subcommand(bill)
    }

    #[test]
    fn completions_name_the_commands_in_each_shell() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let mut out = Vec::new();
            completions(&CompletionsArgs { shell }, program(), &mut out).unwrap();
            assert!(String::from_utf8(out).unwrap().contains("bill"), "{shell}");
        }
    }

    #[test]
    fn each_command_has_a_page() {
        let mut out = Vec::new();
        man(&ManArgs { dir: None }, program(), &mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().contains("taximeter\\-bill(1)"));
        let folder = tempfile::tempdir().unwrap();
        let dir = Some(folder.path().join("man1"));
        man(&ManArgs { dir }, program(), &mut Vec::new()).unwrap();
        let page = fs::read_to_string(folder.path().join("man1/taximeter-bill.1")).unwrap();
        assert!(page.contains("Shows what tenants owe"), "{page}");
    }
}
