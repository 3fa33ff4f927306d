# shellcheck shell=bash disable=SC2034
# For the tests of ./dev: a scratch folder that is removed at the end, and expectations whose messages show the output.
set -euo pipefail
dev=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)/dev
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# run STATUS COMMAND...: expects that the command ends with this status. Its output is in $output.
run() {
  local expected=$1 status=0
  output=$("${@:2}" 2>&1) || status=$?
  [ "$status" = "$expected" ] || fail "'${*:2}' ended with $status, expected $expected"
}
says() { [[ $output == *"$1"* ]] || fail "expected the words '$1'"; }
says_not() { [[ $output != *"$1"* ]] || fail "did not expect the words '$1'"; }
fail() {
  printf '%s, line %s: %s; it said:\n%s\n' "$0" "${BASH_LINENO[1]}" "$1" "${output:-}"
  exit 1
}
