#!/bin/bash
# A campaign is cut in the middle and goes on: what was done isn't run again, and the totals are those of one run.
# Usage: cut_and_resume.sh SIMULATE
set -u
simulate=$1
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
fail() { echo "$1"; cat "$folder"/*.txt; exit 1; }
totals() { sed -n 's/; ms a seed.*//; / seeds, /p' "$1"; }

"$simulate" --seeds 0:400 --jobs 2 > "$folder/whole.txt" || fail "the whole range failed"
"$simulate" --seeds 0:400 --jobs 2 --resume "$folder/state" --cut-after 230 > "$folder/first.txt"
[ $? -eq 130 ] || fail "a cut run must exit with 130"
grep -q "the same command goes on" "$folder/first.txt" || fail "a cut run must say so"
"$simulate" --seeds 0:400 --jobs 2 --resume "$folder/state" > "$folder/second.txt" || fail "the rest failed"
before=$(sed -n 's/ seeds were done before//p' "$folder/second.txt")
[ "${before:-0}" -ge 100 ] && [ "$before" -lt 400 ] || fail "done before: ${before:-nothing}"
[ "$(totals "$folder/whole.txt")" = "$(totals "$folder/second.txt")" ] || fail "the totals differ"
"$simulate" --seeds 0:400 --jobs 2 --resume "$folder/state" > "$folder/third.txt" || fail "a finished range failed"
grep -q "^400 seeds were done before" "$folder/third.txt" || fail "a finished range must not be run again"

# A line that was cut half way counts for nothing; a file of another build is refused.
truncate -s -3 "$folder/state"
"$simulate" --seeds 0:400 --jobs 2 --resume "$folder/state" > "$folder/fourth.txt" || fail "a half line"
grep -q "^350 seeds were done before" "$folder/fourth.txt" || fail "a half line must be run again"
sed -i '1s/.*/simulate 0123/' "$folder/state"
"$simulate" --seeds 0:400 --resume "$folder/state" > "$folder/fifth.txt" 2>&1
[ $? -eq 2 ] && grep -q "another build" "$folder/fifth.txt" || fail "a file of another build must be refused"
echo ok
