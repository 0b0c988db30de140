#!/usr/bin/env bash
# From nothing to a served model: installs what is missing, builds Release, gets the demo model, starts `fermata serve`
# and prints how to talk to it.
#
#   bash tools/demo.sh [serve options]     serve, until Ctrl-C
#   bash tools/demo.sh --chat [options]    a chat in this terminal instead
#   bash tools/demo.sh --once              one question, its answer, exit 0
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

mode=serve
options=()
for argument in "$@"; do
    case $argument in
        --chat) mode=chat ;;
        --once) mode=once ;;
        *) options+=("$argument") ;;
    esac
done

# shellcheck disable=SC2086
install_packages $debian_packages
configure "$build_dir" -DCMAKE_BUILD_TYPE=Release
build "$build_dir" fermata-program
model=$(bash "$source_dir/tools/model.sh")
program=$build_dir/fermata

if [ "$mode" = chat ]; then
    exec "$program" chat --model "$model" "${options[@]}"
fi

host=127.0.0.1
port=${FERMATA_PORT:-8080}
model_id=$(basename "$model" .gguf)
for ((i = 0; i < ${#options[@]}; i++)); do
    case ${options[i]} in
        --host) host=${options[i + 1]:-$host} ;;
        --host=*) host=${options[i]#*=} ;;
        --port) port=${options[i + 1]:-$port} ;;
        --port=*) port=${options[i]#*=} ;;
        --model-id) model_id=${options[i + 1]:-$model_id} ;;
        --model-id=*) model_id=${options[i]#*=} ;;
    esac
done

# fetch URL [JSON body]: prints the answer; fails quietly while nobody answers with 200.
fetch() {
    python3 - "$@" <<'PY'
import sys, urllib.request
request = urllib.request.Request(sys.argv[1])
if len(sys.argv) > 2:
    request.data = sys.argv[2].encode()
    request.add_header("Content-Type", "application/json")
try:
    print(urllib.request.urlopen(request, timeout=600).read().decode())
except Exception as problem:
    sys.exit(str(problem) if len(sys.argv) > 2 else 1)
PY
}

if [ "$mode" = once ] && [[ " ${options[*]-} " != *" --port"* ]]; then
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    options+=(--port "$port")
fi

"$program" serve --model "$model" "${options[@]}" &
server=$!
trap 'kill -TERM $server 2>/dev/null; wait $server 2>/dev/null' EXIT
trap 'signalled=1; kill -TERM $server 2>/dev/null' INT TERM
address=http://$host:$port
until fetch "$address/ready" >/dev/null 2>&1; do
    kill -0 $server 2>/dev/null || { trap - EXIT; wait $server; exit $?; }
    sleep 0.1
done

if [ "$mode" = once ]; then
    question='What is gravity?'
    say "Q: $question"
    fetch "$address/v1/chat/completions" \
        '{"model": "'"$model_id"'", "temperature": 0, "max_tokens": 64, "messages": [{"role": "user", "content": "'"$question"'"}]}' |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["choices"][0]["message"]["content"])'
    exit 0
fi

cat <<TEXT

Fermata serves $model_id at $address

  curl $address/v1/chat/completions -H 'Content-Type: application/json' -d '{"model": "$model_id", "messages": [{"role": "user", "content": "Hello!"}]}'

  from openai import OpenAI
  client = OpenAI(base_url="$address/v1", api_key="none")
  answer = client.chat.completions.create(model="$model_id", messages=[{"role": "user", "content": "Hello!"}])
  print(answer.choices[0].message.content)

Ctrl-C stops it.
TEXT
# A signal ends a wait early; the server's own status counts.
trap - EXIT
signalled=1
while [ $signalled = 1 ]; do
    signalled=0 status=0
    wait $server || status=$?
done
exit $status
