# Sourced by what makes or runs images: buildah and skopeo, installed where missing, with a storage of their own.

source deploy/image/need.sh
need buildah buildah
need skopeo skopeo
# Neither a daemon nor an overlay is needed: folders as layers, a chroot as container.
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
storage=$(mktemp -d)
trap 'command buildah --root "$storage/root" --runroot "$storage/run" rm --all >/dev/null; rm -rf "$storage"' EXIT
buildah() { command buildah --root "$storage/root" --runroot "$storage/run" "$@"; }
