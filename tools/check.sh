#!/usr/bin/env bash
# Checks beyond tools/test.sh, in stages.
#
#   bash tools/check.sh --ci                    what CI runs before tools/test.sh: asan of what links no CAF, 60 s of fuzzing
#   bash tools/check.sh --all                   every stage
#   bash tools/check.sh --only STAGE[,STAGE]    these alone
#
#   format   clang-format, in check mode (--fix: rewrites the files)
#   tidy     clang-tidy with .clang-tidy, over every source the clang build compiles
#   clang    release build by clang, without a warning, and every test
#   asan     ASan and UBSan by clang, every test (with --ci: of what links no CAF)
#   tsan     TSan by clang; only what links CAF gets the suppressions of tests/tsan.supp
#   neon     the kernels for AArch64 under an emulator
#   fuzz     all fuzzers, 600 s together (--fuzz SECONDS)
#   simulate 20,000 seeds of the simulator (--seeds A:B)
#   caf1     node, contract suite and examples on CAF 1.x; only with --caf1 ROOT, where that CAF is installed
#
# It can be cut and run again: builds go on where they were, finished seeds and the fuzzers' finds are kept, and a stage
# that passed on this very tree is skipped (--again: not). --keep-going: a failed stage doesn't end the run.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

checks_dir=${BUILD_DIR:-$source_dir}/build-checks
stages="" fuzz_seconds=600 seeds=0:20000 caf1="" fix="" again="" keep_going="" ci=""
all_stages="format tidy clang asan tsan neon fuzz simulate"
usage="usage: bash tools/check.sh --ci | --all | --only STAGE[,STAGE...] [--fuzz SECONDS] [--seeds A:B] [--caf1 ROOT] [--fix] [--again] [--keep-going]"

# -- builds --------------------------------------------------------------------------------------------------------

# clang_build DIR [cmake options...]: $build_targets or everything. The release build has gcc's opinion already.
clang_build() {
    local dir=$checks_dir/$1
    shift
    install_packages clang-14 libclang-rt-14-dev
    configure "$dir" -DCMAKE_CXX_COMPILER=clang++-14 "$@"
    # shellcheck disable=SC2086
    build "$dir" ${build_targets:-}
}
sanitised_build() {
    local dir=$1 sanitisers=$2
    shift 2
    clang_build "$dir" -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-O1" -DFERMATA_SANITIZE="$sanitisers" "$@"
}
# With --ci only what its stages run is built.
asan_build() {
    build_targets=${ci:+test_messages test_native test_frontend test_cores fuzzers} \
        sanitised_build asan address,undefined -DFERMATA_FUZZ=ON -DFERMATA_CORES_ONLY="${ci:-OFF}"
}

# What the tests of the built program need; the same as tools/test.sh has.
client_surroundings() {
    FERMATA_MODEL=$(bash "$source_dir/tools/model.sh")
    FERMATA_CLIENT_PYTHON=$(bash "$source_dir/tools/client_env.sh")
    export FERMATA_MODEL FERMATA_CLIENT_PYTHON
}
run_tests() {
    local dir=$checks_dir/$1
    shift
    (cd "$dir" && ctest --output-on-failure -j"$(nproc)" "$@") >&2
}

# -- stages --------------------------------------------------------------------------------------------------------

sources() { git -C "$source_dir" ls-files --full-name '*.cpp' '*.hpp' | sed "s|^|$source_dir/|"; }

stage_format() {
    install_packages clang-format-14
    if [ -n "$fix" ]; then
        sources | xargs clang-format-14 -i
    else
        sources | xargs clang-format-14 --dry-run --Werror --ferror-limit=1 >&2
    fi
}

stage_tidy() {
    install_packages clang-tidy-14
    FERMATA_UNITY=OFF configure "$checks_dir/clang" -DCMAKE_CXX_COMPILER=clang++-14 -DFERMATA_WERROR=ON -DCMAKE_BUILD_TYPE=Release
    # One line a source that is clean, with a digest of it and the headers of its folder: a run that was cut goes on.
    local done_file=$checks_dir/tidy.done
    touch "$done_file"
    sources | grep '\.cpp$' | grep -E '/(messages|native|frontend|actors|cli)/' | xargs -P "$(nproc)" -I{} bash -c '
        mark=$({ cat "$1" "$4/.clang-tidy"; cd "$4" && git ls-files -s "*.hpp" && git diff -- "*.hpp"; } | sha256sum | cut -c1-32)
        grep -q "^$mark $1\$" "$2" && exit 0
        clang-tidy-14 --quiet -p "$3" "$1" 2>/dev/null || { echo "clang-tidy: $1"; exit 1; }
        echo "$mark $1" >>"$2"
    ' _ {} "$done_file" "$checks_dir/clang" "$source_dir" >&2
}

# Each file alone here: CI compiles libraries several files at a time, where a missing #include doesn't show.
stage_clang() {
    FERMATA_UNITY=OFF clang_build clang -DCMAKE_BUILD_TYPE=Release -DFERMATA_WERROR=ON
    client_surroundings
    run_tests clang
}

# The agreement of 200,000 texts takes minutes under a sanitiser; the texts are those of the release run. The clients
# test the program from outside: the release run has them.
stage_asan() {
    asan_build
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        run_tests asan -LE "slow|parity|client|install${ci:+|simulation}" -E tokenizer_agreement
}

stage_tsan() {
    sanitised_build tsan thread
    TSAN_OPTIONS=halt_on_error=1 run_tests tsan -L 'messages|native|frontend|cores' -E tokenizer_agreement
    TSAN_OPTIONS="halt_on_error=1 suppressions=$source_dir/tests/tsan.supp" run_tests tsan -L 'actors|examples'
}

stage_neon() {
    install_packages g++-aarch64-linux-gnu qemu-user doctest-dev
    bash "$source_dir/tools/check_neon.sh" "$checks_dir/neon" >&2
}

# All fuzzers together; what they find is kept beside the corpus as a crash file and fails the stage.
stage_fuzz() {
    local targets share
    asan_build
    targets=("$checks_dir"/asan/tests/fuzz/fuzz_*)
    mkdir -p "$checks_dir/fuzz"
    share=$(( (fuzz_seconds * $(nproc) + ${#targets[@]} - 1) / ${#targets[@]} ))
    printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c '
        name=$(basename {} | sed s/^fuzz_//)
        mkdir -p "$3/found-$name"
        cp -n "$2/tests/fuzz/corpus/$name"/* "$3/found-$name/" 2>/dev/null
        cd "$3" && {} -max_total_time="$1" -rss_limit_mb=2048 -timeout=20 -print_final_stats=0 -verbosity=0 \
            -artifact_prefix="$3/crash-$name-" "$3/found-$name" >"$3/$name.log" 2>&1 ||
            { tail -n 40 "$3/$name.log"; echo "fuzz_$name failed; the input is $3/crash-$name-*"; exit 255; }
    ' _ "$share" "$source_dir" "$checks_dir/fuzz" >&2
}

stage_simulate() {
    configure "$build_dir" -DCMAKE_BUILD_TYPE=Release -DFERMATA_TESTS=ON
    build "$build_dir" simulate
    mkdir -p "$checks_dir/seeds"
    # Finished seeds of this very tree are not run again.
    "$build_dir/tests/simulation/simulate" --seeds "$seeds" --jobs "$(nproc)" --resume "$checks_dir/seeds/$(tree)" >&2
}

stage_caf1() {
    [ -n "$caf1" ] || die "caf1 needs --caf1 ROOT: where CAF 1.x is installed (docs/contributors/actors.md)"
    configure "$checks_dir/caf1" -DCMAKE_BUILD_TYPE=Release -DFERMATA_CAF_ROOT="$caf1"
    grep -q 'CAF 1\.[0-9.]* (package)' "$checks_dir/caf1/configure.log" || die "no CAF 1.x in $caf1"
    build "$checks_dir/caf1" fermata-program test_actors embed_caf message_race coordinator_race
    run_tests caf1 -L 'actors|examples'
}

# -- the run -------------------------------------------------------------------------------------------------------

# A name for the very state of the sources; empty where they aren't a git checkout.
tree() {
    git -C "$source_dir" rev-parse HEAD >/dev/null 2>&1 || return 0
    { git -C "$source_dir" rev-parse 'HEAD^{tree}'; git -C "$source_dir" diff HEAD; } | sha256sum | cut -c1-16
}

run_stage() {
    local name=$1 begun=$SECONDS mark
    mark=$checks_dir/passed/$name-$(tree)${ci:+-ci}
    mkdir -p "$checks_dir/passed"
    if [ -z "$again" ] && [ -n "$(tree)" ] && [ -e "$mark" ]; then
        say "== $name: passed before on this tree"
        return 0
    fi
    say "== $name"
    # A subshell outside of any condition: there the first failing command ends the stage.
    local status=0
    set +e
    (set -e; "stage_$name")
    status=$?
    set -e
    if [ $status != 0 ]; then
        say "== $name: FAILED after $((SECONDS - begun)) s"
        return 1
    fi
    [ -z "$(tree)" ] || touch "$mark"
    say "== $name: passed in $((SECONDS - begun)) s"
}

while [ $# -gt 0 ]; do
    case $1 in
        --ci) ci=ON fuzz_seconds=60 stages="asan fuzz" ;;
        --all) stages=$all_stages ;;
        --only) stages=${2//,/ } && shift ;;
        --fuzz) fuzz_seconds=$2 && shift ;;
        --seeds) seeds=$2 && shift ;;
        --caf1) caf1=$2 && shift ;;
        --fix) fix=ON ;;
        --again) again=ON ;;
        --keep-going) keep_going=ON ;;
        *) die "$usage" ;;
    esac
    shift
done
[ -n "$stages$caf1" ] || stages="asan fuzz" ci=ON fuzz_seconds=60
[ -z "$caf1" ] || [[ " $stages " == *" caf1 "* ]] || stages="$stages caf1"
for name in $stages; do
    [[ " $all_stages caf1 " == *" $name "* ]] || die "there is no stage $name; the stages are: $all_stages caf1"
done

# shellcheck disable=SC2086
install_packages $debian_packages
failed=""
for name in $stages; do
    run_stage "$name" || failed="$failed $name"
    [ -z "$failed" ] || [ -n "$keep_going" ] || break
done
[ -z "$failed" ] || die "failed:$failed"
say "checks passed"
