#!/bin/bash
# Installs the build into a scratch folder and builds and runs examples/embed_caf against it, outside of the tree: what an
# application that embeds a node does. Arguments: cmake, build folder, source folder, extra -D options for the consumer.
set -euo pipefail
cmake=$1 build=$2 source=$3
shift 3
stage=$build/out_of_tree
rm -rf "$stage"
mkdir -p "$stage"
"$cmake" --install "$build" --prefix "$stage/prefix" >"$stage/install.log"
"$cmake" -S "$source/examples/embed_caf" -B "$stage/build" -DCMAKE_PREFIX_PATH="$stage/prefix" -DCMAKE_BUILD_TYPE=Release "$@" \
  >"$stage/configure.log" || { cat "$stage/configure.log"; exit 1; }
"$cmake" --build "$stage/build" >"$stage/build.log" || { cat "$stage/build.log"; exit 1; }
grep -rq "$source" "$stage/prefix/lib"*/cmake "$stage/prefix/lib"/*/cmake 2>/dev/null && { echo "the installed package names the source folder"; exit 1; }
"$stage/build/embed_caf"
