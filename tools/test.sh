#!/usr/bin/env bash
# Installs what is missing, builds Release, gets the demo model and runs every test. Options go to ctest.
#
#   bash tools/test.sh [ctest options]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# shellcheck disable=SC2086
install_packages $debian_packages
configure "$build_dir" -DCMAKE_BUILD_TYPE=Release -DFERMATA_TESTS=ON
build "$build_dir"
FERMATA_MODEL=$(bash "$source_dir/tools/model.sh")
export FERMATA_MODEL
export FERMATA_BIN=$build_dir/fermata
if [ -f "$source_dir/tools/client_env.sh" ]; then
    FERMATA_CLIENT_PYTHON=$(bash "$source_dir/tools/client_env.sh")
    export FERMATA_CLIENT_PYTHON
fi
cd "$build_dir"
exec ctest --output-on-failure -j"$(nproc)" "$@"
