# Sourced by the tests that install what they need into tests/.cache.

# Whether the folder $1 is complete: it carries the stamp $2 of what it was made from.
made_from() { [ -f "$1/.made-from" ] && [ "$(cat "$1/.made-from")" = "$2" ]; }

UV=uv==0.13.8

# The program uv: it installs packages of Python in a tenth of the time that pip takes.
uv() {
    local folder=$PWD/tests/.cache/uv
    if ! made_from "$folder/python" "$UV"; then
        rm -rf "$folder/python"
        python3.11 -m venv "$folder/python"
        "$folder/python/bin/pip" install --quiet --disable-pip-version-check "$UV"
        echo "$UV" >"$folder/python/.made-from"
    fi
    "$folder/python/bin/uv" --quiet --cache-dir "$folder/cache" "$@"
}

# Makes the folder $1 an environment of Python 3.11 with the packages that the file $2 names.
python_with() {
    local stamp
    # Its programs name the folder: by the path that stays where a link to it is gone.
    set -- "$(realpath -m "$1")" "$2"
    stamp=$(sha256sum "$2")
    ! made_from "$1" "$stamp" || return 0
    rm -rf "$1"
    python3.11 -m venv --without-pip "$1"
    uv pip install --python "$1/bin/python" -r "$2"
    echo "$stamp" >"$1/.made-from"
}

# What Python compiles when it is first used is kept here: neither beside our files nor in the packages.
export PYTHONPYCACHEPREFIX=$PWD/tests/.cache/pyc

# Unpacks a package of a Debian suite into the folder $1: the suite $2, the package $3. Installs nothing.
debian_into() {
    local lists archive
    ! made_from "$1" "$2 $3" || return 0
    rm -rf "$1"
    mkdir -p "$1"
    lists=$(mktemp -d)
    mkdir -p "$lists/parts" "$lists/state/partial" "$lists/cache/archives/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $2 main" \
        >"$lists/parts/suite.list"
    archive=(-o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$lists/parts" -o "Dir::Cache=$lists/cache"
        -o "Dir::State::Lists=$lists/state" -o "APT::Sandbox::User=$(id -un)")
    (cd "$lists" && apt-get "${archive[@]}" update -qq && apt-get "${archive[@]}" download -qq "$3")
    dpkg -x "$lists"/*.deb "$1"
    rm -rf "$lists"
    echo "$2 $3" >"$1/.made-from"
}
