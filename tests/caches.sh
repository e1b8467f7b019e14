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

# Makes the folder $1 an environment of Python 3.11 with what uv installs by the arguments behind $2, with the stamp $2.
environment() {
    local folder stamp=$2
    # Its programs name the folder: by the path that stays where a link to it is gone.
    folder=$(realpath -m "$1")
    shift 2
    ! made_from "$folder" "$stamp" || return 0
    rm -rf "$folder"
    python3.11 -m venv --without-pip "$folder"
    uv pip install --python "$folder/bin/python" "$@"
    echo "$stamp" >"$folder/.made-from"
}

# The same with the packages that the file $2 names.
python_with() {
    local stamp
    stamp=$(sha256sum "$2")
    environment "$1" "$stamp" -r "$2"
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
