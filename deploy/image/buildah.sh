# Sourced by what makes or runs images: buildah and skopeo, installed where missing, with a storage of their own.

if ! command -v buildah >/dev/null || ! command -v skopeo >/dev/null; then
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends buildah skopeo >/dev/null
fi
# Neither a daemon nor an overlay is needed: folders as layers, a chroot as container.
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
storage=$(mktemp -d)
trap 'command buildah --root "$storage/root" --runroot "$storage/run" rm --all >/dev/null; rm -rf "$storage"' EXIT
buildah() { command buildah --root "$storage/root" --runroot "$storage/run" "$@"; }
