# Sourced by what builds the image's program: `program FOLDER [FLAG…]` builds it in FOLDER and says where it lies.

target=$(rustc -vV | sed -n 's/^host: //p')

program() {
    # Static: the root is empty. At a fixed place: nothing to relocate at start, so that these pages too stay the file's.
    # Without the names of this machine's folders the same source is the same bytes, wherever it lies.
    local folder=$1 flags="-C target-feature=+crt-static -C relocation-model=static \
--remap-path-prefix=$PWD=/src --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    shift
    # Slower to link than the default, a megabyte less, and 2 % fewer instructions a chunk.
    # Naming the target keeps the flags from build scripts and macros, which cannot be static.
    CARGO_TARGET_DIR=$folder CARGO_PROFILE_RELEASE_LTO=fat RUSTFLAGS="$flags $*" cargo build --quiet --locked \
        --release --package taximeter-proxy --bin taximeter --target "$target" >&2
    echo "$folder/$target/release/taximeter"
}
