# Sourced by what builds the program: `program FOLDER [FLAG…]` builds it in FOLDER and prints its path. It builds for the
# target of this machine, or for TAXIMETER_TARGET. A musl target needs cargo-zigbuild and zig: deploy/release installs them.

host=$(rustc -vV | sed -n 's/^host: //p')
target=${TAXIMETER_TARGET:-$host}

program() {
    # Static, because the root is empty. At a fixed address: nothing is relocated at start, so these pages stay the file's.
    # Without the names of this machine's folders the same source gives the same bytes, wherever it lies.
    local folder=$1 build=(build) flags="-C target-feature=+crt-static -C relocation-model=static \
--remap-path-prefix=$PWD=/src --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    shift
    case $target in
        # Zig compiles C. Rust's own linker links, since zig's refuses both flags: functions with the same code are one,
        # and what runs and what never runs lie apart, so that pages in memory are full of what runs.
        *-musl)
            build=(zigbuild --config "target.$target.linker='$(rustc --print sysroot)/lib/rustlib/$host/bin/rust-lld'")
            flags+=" -C linker-flavor=ld.lld -C link-self-contained=yes"
            flags+=" -C link-arg=--icf=all -C link-arg=-zkeep-text-section-prefix"
            ;;
        *) flags+=" -C link-arg=-Wl,-z,keep-text-section-prefix" ;;
    esac
    # Of zstd what its levels 1 (exports) and 6 (the journal) write with: without its strategy a level writes as a
    # lower one does. Nothing unwinds through C.
    local strategy c_flags="-fno-asynchronous-unwind-tables"
    for strategy in DFAST GREEDY LAZY2 BTLAZY2 BTOPT BTULTRA; do
        c_flags+=" -DZSTD_EXCLUDE_${strategy}_BLOCK_COMPRESSOR"
    done
    # Slower to link than the default, a megabyte less, and 2 % fewer instructions a chunk.
    # Naming the target keeps the flags from build scripts and macros, which cannot be static.
    env "CFLAGS_${target//-/_}=$c_flags" CARGO_TARGET_DIR="$folder" CARGO_PROFILE_RELEASE_LTO=fat \
        RUSTFLAGS="$flags $*" cargo "${build[@]}" --quiet --locked --release --package taximeter-proxy --bin taximeter \
        --target "$target" >&2 || return  # `set -e` does not hold in `$(program …)`
    echo "$folder/$target/release/taximeter"
}
