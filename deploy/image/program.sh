# Sourced by what builds the image's program: `program FOLDER [FLAG…]` builds it in FOLDER and says where it lies.

target=$(rustc -vV | sed -n 's/^host: //p')

program() {
    # Static: the root is empty. At a fixed place: nothing to relocate at start, so that these pages too stay the file's.
    # What runs and what never does apart from each other, so that pages that are in memory are full of what runs.
    # Without the names of this machine's folders the same source is the same bytes, wherever it lies.
    local folder=$1 flags="-C target-feature=+crt-static -C relocation-model=static \
-C link-arg=-Wl,-z,keep-text-section-prefix \
--remap-path-prefix=$PWD=/src --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    # zstd by its first level, the only one that is written with; nothing unwinds through C.
    local strategy c_flags="-fno-asynchronous-unwind-tables"
    for strategy in DFAST GREEDY LAZY LAZY2 BTLAZY2 BTOPT BTULTRA; do
        c_flags+=" -DZSTD_EXCLUDE_${strategy}_BLOCK_COMPRESSOR"
    done
    shift
    # Slower to link than the default, a megabyte less, and 2 % fewer instructions a chunk.
    # Naming the target keeps the flags from build scripts and macros, which cannot be static.
    env "CFLAGS_${target//-/_}=$c_flags" CARGO_TARGET_DIR="$folder" CARGO_PROFILE_RELEASE_LTO=fat \
        RUSTFLAGS="$flags $*" cargo build --quiet --locked --release --package taximeter-proxy --bin taximeter \
        --target "$target" >&2
    echo "$folder/$target/release/taximeter"
}
