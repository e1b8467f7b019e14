# Sourced by what makes images: `fill FOLDER PROGRAM TARGET` makes what an image holds from a program of that target.
# FOLDER/root becomes /, FOLDER/data is copied into /var/lib as user 65532.

fill() {
    local folder=$1 program=$2 target=$3 host sysroot
    host=$(rustc -vV | sed -n 's/^host: //p')
    sysroot=$(rustc --print sysroot)
    rm -rf "$folder/root" "$folder/data"
    mkdir -p "$folder/root/etc" "$folder/root/licenses" "$folder/data/taximeter"
    # A static program comes out of cargo with its table of symbols. The compiler's own tool reads every architecture. It
    # finds its library only when it is told where that is.
    LD_LIBRARY_PATH=$sysroot/lib "$sysroot/lib/rustlib/$host/bin/rust-objcopy" --strip-all "$program" "$folder/root/taximeter"
    chmod 0755 "$folder/root/taximeter"
    # Without it glibc asks DNS before /etc/hosts, and does not look up there a name that DNS denies. musl needs none.
    echo 'hosts: files dns' >"$folder/root/etc/nsswitch.conf"
    cp LICENSE "$folder/root/licenses/"
    python3 deploy/image/sbom.py "$target" "$folder/root/licenses" >&2
    chmod -R a+rX,go-w "$folder/root"
    # An orchestrator may give any user; all of those are of group 0.
    chmod 0770 "$folder/data/taximeter"
}
