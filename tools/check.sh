#!/usr/bin/env bash
# Checks beyond the release build. With --ci the short set that CI runs before tools/test.sh: ASan+UBSan of cores,
# readers and native by clang, and 60 s of fuzzing. With --all the same with 600 s of fuzzing.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

mode=${1:---ci}
checks_dir=${BUILD_DIR:-$source_dir}/build-checks

# One build for sanitised tests and fuzzers, by clang: the release build has gcc's opinion already.
sanitised_build() {
    install_packages clang-14 libclang-rt-14-dev
    configure "$checks_dir/asan" -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-O1" -DCMAKE_CXX_COMPILER=clang++-14 \
        -DFERMATA_SANITIZE=address,undefined -DFERMATA_FUZZ=ON -DFERMATA_CORES_ONLY=ON
    build "$checks_dir/asan"
}

# The agreement of 200,000 texts takes minutes under a sanitiser; the texts are those of the release run.
sanitised_tests() {
    say "== ASan and UBSan: messages, native, frontend, cores"
    (cd "$checks_dir/asan" && UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        ctest --output-on-failure -j"$(nproc)" -LE 'slow|parity|simulation' -E tokenizer_agreement) >&2
}

# fuzz SECONDS: all fuzzers together; what they find is kept beside the corpus as a crash file and fails the check.
fuzz() {
    local seconds=$1 targets share
    say "== fuzzing for $seconds s"
    targets=("$checks_dir"/asan/tests/fuzz/fuzz_*)
    mkdir -p "$checks_dir/fuzz"
    share=$(( (seconds * $(nproc) + ${#targets[@]} - 1) / ${#targets[@]} ))
    printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c '
        name=$(basename {} | sed s/^fuzz_//)
        mkdir -p "$3/found-$name"
        cp -n "$2/tests/fuzz/corpus/$name"/* "$3/found-$name/" 2>/dev/null
        cd "$3" && {} -max_total_time="$1" -rss_limit_mb=2048 -timeout=20 -print_final_stats=0 -verbosity=0 \
            -artifact_prefix="$3/crash-$name-" "$3/found-$name" >"$3/$name.log" 2>&1 ||
            { tail -n 40 "$3/$name.log"; echo "fuzz_$name failed; the input is $3/crash-$name-*"; exit 255; }
    ' _ "$share" "$source_dir" "$checks_dir/fuzz" >&2 || die "a fuzzer found something"
}

case $mode in
    --ci)
        # shellcheck disable=SC2086
        install_packages $debian_packages
        sanitised_build
        sanitised_tests
        fuzz 60
        ;;
    --all)
        # shellcheck disable=SC2086
        install_packages $debian_packages
        sanitised_build
        sanitised_tests
        fuzz 600
        ;;
    *) die "usage: bash tools/check.sh --ci|--all" ;;
esac
say "checks passed"
