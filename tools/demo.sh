#!/usr/bin/env bash
# From nothing to a served model: installs what is missing, builds Release, gets the demo model, starts `fermata serve`
# and prints how to talk to it.
#
#   bash tools/demo.sh [serve options]     serve, until Ctrl-C; --model FILE serves that instead of the demo model
#   bash tools/demo.sh --chat [options]    a chat in this terminal instead
#   bash tools/demo.sh --once [options]    one question, its answer, exit 0
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

mode=serve
options=()
for argument in "$@"; do
    case $argument in
        --chat) mode=chat ;;
        --once) mode=once ;;
        -h | --help)
            sed -n 's/^#   //p' "${BASH_SOURCE[0]}"
            say "serve options: docs/cli.md"
            exit 0
            ;;
        *) options+=("$argument") ;;
    esac
done

# value_of NAME DEFAULT: what the last of `--NAME VALUE` and `--NAME=VALUE` among the options says.
value_of() {
    local value=$2 i
    for ((i = 0; i < ${#options[@]}; i++)); do
        case ${options[i]} in
            "--$1") value=${options[i + 1]:-$value} ;;
            "--$1="*) value=${options[i]#*=} ;;
        esac
    done
    printf '%s' "$value"
}

# shellcheck disable=SC2086
install_packages $debian_packages
configure "$build_dir" -DCMAKE_BUILD_TYPE=Release
build "$build_dir" fermata-program
program=$build_dir/fermata
model=$(value_of model '')
if [ -z "$model" ]; then
    model=$(bash "$source_dir/tools/model.sh")
    options+=(--model "$model")
fi

if [ "$mode" = chat ]; then
    exec "$program" chat "${options[@]}"
fi

host=$(value_of host 127.0.0.1)
model_id=$(value_of model-id "$(basename "$model" .gguf)")
key_file=$(value_of api-key-file '')
port=$(value_of port '')
if [ "$port" = 0 ] || { [ -z "$port" ] && [ "$mode" = once ]; }; then  # any free one
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    others=()
    for ((i = 0; i < ${#options[@]}; i++)); do
        case ${options[i]} in
            --port) i=$((i + 1)) ;;
            --port=*) ;;
            *) others+=("${options[i]}") ;;
        esac
    done
    options=("${others[@]}")
    options+=(--port "$port")
fi
port=${port:-8080}

# fetch URL [JSON body]: prints the answer; fails quietly while nobody answers with 200.
fetch() {
    KEY_FILE=$key_file python3 - "$@" <<'PY'
import os, sys, urllib.request
request = urllib.request.Request(sys.argv[1])
if os.environ["KEY_FILE"]:
    request.add_header("Authorization", "Bearer " + open(os.environ["KEY_FILE"]).readline().strip())
if len(sys.argv) > 2:
    request.data = sys.argv[2].encode()
    request.add_header("Content-Type", "application/json")
try:
    print(urllib.request.urlopen(request, timeout=600).read().decode())
except Exception as problem:
    sys.exit(str(problem) if len(sys.argv) > 2 else 1)
PY
}

"$program" serve "${options[@]}" &
server=$!
trap 'kill -TERM $server 2>/dev/null; wait $server 2>/dev/null' EXIT
trap 'signalled=1; kill -TERM $server 2>/dev/null' INT TERM
address=http://$host:$port
# Ready, and by our server: another one may have had the port.
until fetch "$address/ready" >/dev/null 2>&1 && sleep 0.1 && kill -0 $server 2>/dev/null; do
    kill -0 $server 2>/dev/null || { trap - EXIT; wait $server; exit $?; }
    sleep 0.1
done

if [ "$mode" = once ]; then
    question='What is gravity?'
    say "Q: $question"
    answer=$(fetch "$address/v1/chat/completions" \
        '{"model": "'"$model_id"'", "temperature": 0, "max_tokens": 64, "messages": [{"role": "user", "content": "'"$question"'"}]}')
    python3 -c 'import json, sys; print(json.loads(sys.argv[1])["choices"][0]["message"]["content"])' "$answer"
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
