# Sourced by demo, test and format: finds the toolchain, and installs Debian packages that are missing.

# The oldest toolchain with Span and InlineArray in its standard library.
least_swift=6.2

fail() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

# Ends the script when there is no toolchain, or one that is too old.
require_swift() {
    local remedy="Install Swift $least_swift or newer from https://www.swift.org/install/linux/debian/12/ and put its usr/bin into PATH."
    command -v swift >/dev/null || fail "there is no swift in PATH. $remedy"
    # A toolchain that was unpacked on a bare system lacks libraries of its own.
    if ! swift build --version >/dev/null 2>&1; then
        require_packages libcurl4 libncurses6 libsqlite3-0 libxml2 zlib1g
    fi
    local found
    found=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9][0-9.]*\).*/\1/p' | head -n 1) || true
    [ -n "$found" ] || fail "$(command -v swift) does not run: $(swift --version 2>&1 | head -n 1). $remedy"
    [ "$(printf '%s\n' "$least_swift" "$found" | sort -V | head -n 1)" = "$least_swift" ] ||
        fail "$(command -v swift) is Swift $found, which is too old. $remedy"
    echo "Swift $found"
}

# require_packages NAME...: installs those that are missing, by apt-get, through sudo when not root.
require_packages() {
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        echo "This is no Debian: if something is missing below, install what your system calls $*." >&2
        return
    fi
    local name missing=()
    for name in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null ||
            fail "packages are missing. Install them as root: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    echo "Installing ${missing[*]}"
    "${as_root[@]}" apt-get update -qq ||
        fail "apt-get update failed. See above, or install by hand: apt-get install ${missing[*]}"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
        </dev/null >/dev/null ||
        fail "apt-get could not install ${missing[*]}. See above."
}

# What every build needs: g++ brings the C library's headers, the linker and the start-up files that Swift links with.
build_packages=(ca-certificates git g++ pkg-config libasound2-dev libopus-dev libspeexdsp-dev libsqlite3-dev libssl-dev
    libc-ares-dev libsystemd-dev zlib1g-dev)

# The files that swift format reads.
formatted=(Sources Plugins Tests Examples Benchmarks/Sources Fuzzing/Sources Package.swift)
