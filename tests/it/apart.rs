//! Gateways in namespaces of their own, where the machine is another one for them.

use std::process::Command;

use crate::gateway::{Gateway, Setup, binary};

/// Makes all read-only but the folder `$0`, `/tmp` too, and runs the rest as a user without powers and
/// with nothing in its environment.
const READ_ONLY: &str = r#"
set -e
mount --bind "$0" "$0"
cut -d " " -f 2 /proc/self/mounts | while read -r place; do
    [ "$place" = "$0" ] || mount -o remount,bind,ro "$place" || true
done
for place in / /tmp "${0%/*}"; do
    ! [ -w "$place" ] || { echo "$place can be written" >&2; exit 1; }
done
exec setpriv --ambient-caps=-all --inh-caps=-all --no-new-privs env -i "$@"
"#;

impl Setup {
    /// Starts the gateway where looking a name up never ends: the file of hosts, which is asked first,
    /// is a pipe that nobody writes to.
    pub(crate) fn start_without_names(self) -> Gateway {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pipe = folder.path().join("hosts");
        let made = Command::new("mkfifo").arg(&pipe).status().expect("run mkfifo");
        assert!(made.success(), "no pipe");
        let mut apart = Command::new("unshare");
        apart.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
        apart.arg(r#"mount --bind "$0" /etc/hosts && exec "$@""#).arg(&pipe).arg(binary());
        Gateway::run(self.serve(apart, folder.path()), folder)
    }

    /// Starts the gateway as a user whom nobody knows, without a home, where nothing can be written
    /// but its data directory.
    pub(crate) fn start_read_only(self) -> Gateway {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().join("data");
        std::fs::create_dir(&data).expect("the data directory");
        let mut apart = Command::new("unshare");
        apart.args(["--user", "--map-user=54321", "--map-group=54321", "--keep-caps", "--mount"]);
        apart.args(["sh", "-c", READ_ONLY]).arg(&data).arg(binary());
        Gateway::run(self.serve(apart, folder.path()), folder)
    }
}
