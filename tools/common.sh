# Sourced by the scripts beside it: where things are, and how to get what is missing. Idempotent and quick the
# second time; needs neither root nor the network when everything is there.
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build_dir=${BUILD_DIR:-$source_dir/build}
if [ -n "${MODEL_DIR:-}" ]; then
    model_dir=$MODEL_DIR
elif [ -n "${BUILD_DIR:-}" ] && [ ! -w "$source_dir" ]; then
    model_dir=$BUILD_DIR/models
else
    model_dir=$source_dir/models
fi

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

debian_packages="g++ cmake ninja-build git ca-certificates python3 python3-venv
    libcaf-dev libmsgpack-cxx-dev libspdlog-dev doctest-dev libhwy-dev nlohmann-json3-dev libpcre2-dev
    libutf8proc-dev libxxhash-dev libboost-dev libcli11-dev libtomlplusplus-dev prometheus-cpp-dev
    librapidcheck-dev libbenchmark-dev"

missing_packages() {
    local name
    for name in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || printf '%s ' "$name"
    done
}

# install_packages NAME...: installs those that are missing, as root or with sudo.
install_packages() {
    local missing as_root=""
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    command -v apt-get >/dev/null || die "these packages are missing and there is no apt-get: $missing"
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "run as root or install sudo; these packages are missing: $missing"
        as_root="sudo"
    fi
    say "installing: $missing"
    # The index may be stale or absent on a new machine; a failed update matters only if the install fails too.
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 || true
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2 ||
        die "apt-get could not install: $missing"
}

# configure DIR [cmake options...]: for clean builds; FERMATA_UNITY=OFF where single files change often.
configure() {
    local dir=$1
    shift
    mkdir -p "$dir"
    cmake -S "$source_dir" -B "$dir" -G Ninja -DFERMATA_UNITY="${FERMATA_UNITY:-ON}" "$@" >"$dir/configure.log" 2>&1 ||
        { cat "$dir/configure.log" >&2; die "cmake failed; its output is above"; }
}

# build DIR [targets...]: progress on a terminal, quiet in a pipe.
build() {
    local dir=$1
    shift
    if [ -t 2 ]; then
        cmake --build "$dir" ${1:+--target "$@"} >&2
    else
        cmake --build "$dir" ${1:+--target "$@"} >"$dir/build.log" 2>&1 ||
            { tail -n 60 "$dir/build.log" >&2; die "the build failed; its end is above, all of it in $dir/build.log"; }
    fi
}
