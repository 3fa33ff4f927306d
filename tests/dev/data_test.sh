#!/usr/bin/env bash
# Tests ./dev data with a local HTTP server: a new download, a resumed one, a refused one, one from another mirror, and
# none.
source "$(dirname -- "$0")/expect.sh"
here=$(cd -- "$(dirname -- "$0")" && pwd)

python3 "$here/range_server.py" "$scratch" "$scratch/log" "$scratch/port" &
server=$!
trap 'kill $server; rm -rf "$scratch"' EXIT
for ((i = 0; i < 100; ++i)); do
  [ ! -s "$scratch/port" ] || break
  sleep 0.1
done
url=http://127.0.0.1:$(<"$scratch/port")

mkdir -p "$scratch"/{good,bad,plain,sources,archive/folder}
seq 1 20000 >"$scratch/good/numbers"
echo labels >"$scratch/good/labels"
echo pixels >"$scratch/archive/folder/batch.bin"
tar -czf "$scratch/good/pictures.tar.gz" -C "$scratch/archive" folder
cp "$scratch"/good/* "$scratch/plain"
seq 2 20001 >"$scratch/bad/numbers"
sum() { sha256sum <"$scratch/good/$1" | cut -d' ' -f1; }

# data_set MIRROR...: writes the set `toy` with these mirrors. Empties its folder and the server's log.
data_set() {
  printf 'mirror %s\n' "$@" >"$scratch/sources/toy.txt"
  echo "$(sum numbers) numbers" >>"$scratch/sources/toy.txt"
  rm -rf "$TERN_DATA"
  mkdir -p "$folder"
  : >"$scratch/log"
}
requests() { output=$(<"$scratch/log"); }
arrived() { cmp "$scratch/good/numbers" "$folder/numbers" && [ ! -e "$folder/numbers.part" ]; }
export TERN_DATA_SOURCES=$scratch/sources TERN_DATA="$scratch/the data"
folder=$TERN_DATA/toy

data_set "$url/good"
echo "$(sum labels) labels" >>"$scratch/sources/toy.txt"
run 0 "$dev" data toy
says "$folder"
arrived || fail "fresh: the file differs"
cmp "$scratch/good/labels" "$folder/labels" || fail "fresh: the labels differ"

: >"$scratch/log"
run 0 "$dev" data toy
says "numbers is here"
[ ! -s "$scratch/log" ] || fail "a second call asked the server for $(<"$scratch/log")"

data_set "$url/good"
head -c 50000 "$scratch/good/numbers" >"$folder/numbers.part"
run 0 "$dev" data toy
arrived || fail "resume: the file differs"
requests
says "bytes=50000-"

data_set "$url/good"
cp "$scratch/good/numbers" "$folder/numbers.part"
run 0 "$dev" data toy
arrived || fail "a whole part: the file differs"
[ ! -s "$scratch/log" ] || fail "a whole part was downloaded again"

data_set "$url/good"
head -c 50000 "$scratch/bad/numbers" >"$folder/numbers.part"
run 0 "$dev" data toy
says "refused $url/good/numbers"
arrived || fail "a bad part: the file differs"

data_set "$url/plain"
head -c 50000 "$scratch/good/numbers" >"$folder/numbers.part"
run 0 "$dev" data toy
arrived || fail "a server without ranges: the file differs"

data_set "$url/bad"
run 2 "$dev" data toy
says "refused $url/bad/numbers: SHA-256 is $(sha256sum <"$scratch/bad/numbers" | cut -d' ' -f1), expected $(sum numbers)"
says "numbers could not be downloaded from: $url/bad"
[ ! -e "$folder/numbers" ] || fail "a file with a wrong checksum was kept"

data_set "$url/nowhere" "$url/bad" "$url/good"
run 0 "$dev" data toy
arrived || fail "third mirror: the file differs"

data_set "$url/good"
echo "$(sum pictures.tar.gz) pictures.tar.gz" >>"$scratch/sources/toy.txt"
run 0 "$dev" data toy
cmp "$scratch/archive/folder/batch.bin" "$folder/folder/batch.bin" || fail "the archive was not unpacked"
run 0 "$dev" data toy
says_not unpacking

run 2 "$dev" data
says "data takes one of: toy"
run 2 "$dev" data ../good
says "data takes one of: toy"
