# Sourced by the tests that install what they need into tests/.cache.

# Whether the folder $1 is complete: it carries the stamp $2 of what it was made from.
made_from() { [ -f "$1/.made-from" ] && [ "$(cat "$1/.made-from")" = "$2" ]; }

# Makes the folder $1 an environment of Python 3.11 with the packages that the file $2 names.
python_with() {
    local stamp
    stamp=$(sha256sum "$2")
    ! made_from "$1" "$stamp" || return 0
    rm -rf "$1"
    python3.11 -m venv "$1"
    "$1/bin/pip" install --quiet --disable-pip-version-check -r "$2"
    echo "$stamp" >"$1/.made-from"
}
