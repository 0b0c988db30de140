#!/usr/bin/env bash
# Checks beyond the release build. With --ci the short set that CI runs before tools/test.sh:
# ASan+UBSan of cores, readers and native, and 60 s of fuzzing. With --all everything: clang, full sanitisers,
# ThreadSanitizer, NEON under emulation, longer fuzzing and simulation.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

mode=${1:---ci}
checks_dir=${BUILD_DIR:-$source_dir}/build-checks

sanitised_tests() {
    say "== ASan and UBSan: messages, native, frontend, cores"
    configure "$checks_dir/asan" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DFERMATA_SANITIZE=address,undefined \
        -DFERMATA_CORES_ONLY=ON -DFERMATA_EXAMPLES=OFF
    build "$checks_dir/asan"
    (cd "$checks_dir/asan" && UBSAN_OPTIONS=halt_on_error=1 ctest --output-on-failure -j"$(nproc)" -LE 'slow|parity') >&2
}

case $mode in
    --ci)
        # shellcheck disable=SC2086
        install_packages $debian_packages
        sanitised_tests
        ;;
    --all)
        # shellcheck disable=SC2086
        install_packages $debian_packages
        sanitised_tests
        ;;
    *) die "usage: bash tools/check.sh --ci|--all" ;;
esac
say "checks passed"
