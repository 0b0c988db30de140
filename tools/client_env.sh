#!/usr/bin/env bash
# Makes the Python environment of the client tests and load scripts: a virtual environment with the current OpenAI SDK.
# Prints its python. Kept beside the build, never in the source tree; quick when it is there already.
#
#   python=$(bash tools/client_env.sh [DIR])
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dir=${1:-${BUILD_DIR:-$source_dir/build}/client-env}
if ! [ -f "$dir/complete" ]; then
    mkdir -p "$(dirname "$dir")"
    exec 9>"$dir.lock"
    flock 9  # tests run in parallel
    if ! [ -f "$dir/complete" ]; then
        rm -rf "$dir"
        python3 -m venv "$dir" >&2
        "$dir/bin/pip" install --quiet --disable-pip-version-check 'openai>=2' >&2
        touch "$dir/complete"
    fi
fi
printf '%s\n' "$dir/bin/python"
