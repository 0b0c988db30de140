#!/usr/bin/env bash
# run.sh SUITE PROGRAM ENVIRONMENT: one suite of this folder against the program. Fails when something it needs is missing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
suite=$1 program=$2 environment=$3
if [ -z "${FERMATA_MODEL:-}" ]; then
    FERMATA_MODEL=$(bash "$here/../../tools/model.sh" 2>/dev/null) || { echo "no demo model"; exit 1; }
fi
python=$(bash "$here/../../tools/client_env.sh" "$environment" 2>/dev/null) || { echo "no Python environment with the OpenAI SDK"; exit 1; }
export FERMATA_MODEL FERMATA_BIN=$program PYTHONDONTWRITEBYTECODE=1
cd "$here"
exec "$python" -m unittest -v "test_$suite"
