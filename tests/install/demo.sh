#!/usr/bin/env bash
# tools/demo.sh on a tree that is built already: one answer, one answer at a port given, and a server that a signal stops.
#
#   demo.sh BUILD_DIR SOURCE_DIR
set -euo pipefail
export BUILD_DIR=$1
demo=$2/tools/demo.sh
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
fail() { echo "demo: $*"; exit 1; }

answer=$(bash "$demo" --once)
[[ $answer == *[a-z]* ]] || fail "--once printed no answer: '$answer'"
again=$(bash "$demo" --once --port "$(free_port)")
[ "$answer" = "$again" ] || fail "the same question at temperature 0 got '$answer' and '$again'"

port=$(free_port)
bash "$demo" --port "$port" --model-id demo-test >"$BUILD_DIR/demo_test.log" 2>&1 &
server=$!
python3 - "$port" "$BUILD_DIR/demo_test.log" <<'PY' || { cat "$BUILD_DIR/demo_test.log"; fail "nobody serves demo-test at the port given"; }
import json, pathlib, sys, threading, urllib.request
pause = threading.Event()
for _ in range(600):  # a minute for a model that loads in a second or two
    if "Ctrl-C stops it" in pathlib.Path(sys.argv[2]).read_text():
        break
    pause.wait(0.1)
models = json.load(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/v1/models"))
assert [model["id"] for model in models["data"]] == ["demo-test"], models
PY
kill -TERM $server
wait $server || fail "SIGTERM ended it with status $?"
grep -q "http://127.0.0.1:$port/v1/chat/completions" "$BUILD_DIR/demo_test.log" || fail "it doesn't say how to talk to it"
