# Sourced by what makes or runs images: buildah and skopeo, installed where missing, with a storage of their own.

source deploy/image/need.sh
need buildah buildah
need skopeo skopeo
# Neither a daemon nor an overlay is needed: folders as layers, a chroot as container.
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
storage=$(mktemp -d)
trap 'command buildah --root "$storage/root" --runroot "$storage/run" rm --all >/dev/null; rm -rf "$storage"' EXIT
buildah() { command buildah --root "$storage/root" --runroot "$storage/run" "$@"; }

# The image from what `fill` made in a folder: image FOLDER NAME [OPTION…]. It is the last stage of the Dockerfile, with the
# folder in place of the stage before it. The same commit and folder give the same digest.
image() {
    local folder=$1 name=$2 revision
    shift 2
    revision=$(git rev-parse HEAD)
    [ -z "$(git status --porcelain)" ] || revision+=-changed
    sed -n '/^FROM scratch/,$p' deploy/image/Dockerfile | sed 's# --from=build##; s#/image/##' |
        buildah bud --quiet --format oci --timestamp "$(git log -1 --format=%ct)" \
            --build-arg VERSION="${name##*:}" --build-arg REVISION="$revision" "$@" --file - "$folder" >/dev/null
}
