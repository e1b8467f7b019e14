# Sourced: `need COMMAND PACKAGE` installs Debian's package where the command is missing.

need() {
    ! command -v "$1" >/dev/null || return 0
    local sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}
