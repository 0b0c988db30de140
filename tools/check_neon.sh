#!/bin/bash
# Builds the kernels for AArch64, runs their tests under qemu-user, and compares digests of all results with those of
# this machine's scalar level. Needs g++-aarch64-linux-gnu, qemu-user, doctest. Usage: tools/check_neon.sh [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-build-neon}
mkdir -p "$out/include"
ln -sfn /usr/include/doctest "$out/include/doctest"
cross=${CROSS_CXX:-aarch64-linux-gnu-g++}
emulate=${EMULATE:-qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu}
flags=(-std=c++20 -O2 -ffp-contract=off -Wall -Wextra -Wconversion -I. -I"$out/include")

plain=(native/cpu/packed.cpp native/cpu/rotary.cpp native/cpu/cpu_features.cpp native/cpu/levels/scalar.cpp
       native/cpu/levels/neon.cpp native/backend.cpp native/weights/dequantise.cpp tests/support/random_blocks.cpp)
tests=(tests/doctest_main.cpp tests/native/cpu_elementwise.cpp tests/native/cpu_linear.cpp tests/native/cpu_attention.cpp)

object() {  # SOURCE [FLAGS...]: compiles unless up to date, prints the object's name
    local source=$1
    shift
    local name="$out/${source//\//_}.o"
    if [ ! -f "$name" ] || [ -n "$(find native tests -newer "$name" \( -name '*.cpp' -o -name '*.hpp' \) -print -quit)" ]; then
        "$cross" "${flags[@]}" "$@" -c "$source" -o "$name"
    fi
    echo "$name"
}

objects=()
for source in "${plain[@]}"; do objects+=("$(object "$source")"); done
objects+=("$(object native/cpu/levels/neon_dot.cpp -march=armv8.2-a+dotprod)")
test_objects=()
for source in "${tests[@]}"; do test_objects+=("$(object "$source")"); done
"$cross" -static "${objects[@]}" "${test_objects[@]}" -o "$out/test_kernels"
"$cross" -static "${objects[@]}" "$(object tests/support/kernel_digest.cpp)" -o "$out/kernel_digest_aarch64"
$emulate "$out/test_kernels" --no-intro

# The same digest here, from the scalar level alone: an independent compiler target.
g++ "${flags[@]}" tests/support/kernel_digest.cpp native/cpu/packed.cpp native/cpu/rotary.cpp native/backend.cpp \
    native/weights/dequantise.cpp tests/support/random_blocks.cpp native/cpu/levels/scalar.cpp \
    -x c++ - -o "$out/kernel_digest_here" <<'CPP'
#include "native/cpu/levels.hpp"
namespace fermata::cpu {
std::vector<level> levels_here() { return {{"scalar", "scalar", &scalar_table()}}; }
}
CPP
"$out/kernel_digest_here" | tee "$out/here.txt"
$emulate "$out/kernel_digest_aarch64" | tee "$out/there.txt"
if [ "$(cut -d' ' -f1-3 "$out/here.txt" "$out/there.txt" | sort -u | wc -l)" != 1 ]; then
    echo "check_neon: the digests differ" >&2
    exit 1
fi
echo "check_neon: AArch64 and this machine agree to the bit"
