#!/usr/bin/env bash
# Tests ./dev cluster. It tests what the command refuses. If this is root, it also tests that ranks reach each other,
# their exit code, and that no namespace is left.
source "$(dirname -- "$0")/expect.sh"

run 2 "$dev" cluster
says "a number of ranks from 1 to 64, not ''"
run 2 "$dev" cluster 65 -- true
says "not '65'"
run 2 "$dev" cluster 2 --rate quick -- true
says "not 'quick'"
run 2 "$dev" cluster 2 --rate 1gbit true
says "its command after '--'"
run 2 "$dev" cluster 2 --
says "its command after '--'"

if [ "$(id -u)" != 0 ] || ! ip netns add tern-probe 2>/dev/null; then
  echo "no network namespaces here: the rest is left out"
  exit 0
fi
ip netns delete tern-probe

# gone: expects that the namespaces, which the ranks of the last command printed, no longer exist.
gone() {
  local names
  names=$(grep -o 'tern-[0-9]*-[0-9]*' <<<"$output" | sed 's/-[0-9]*$//' | sort -u)
  [ -n "$names" ] || fail "no rank named its namespace"
  ! ip netns list | grep -q "^$names-" || fail "a namespace is left"
}

# shellcheck disable=SC2016
run 0 "$dev" cluster 3 --rate 100mbit -- bash -c 'ip netns identify
echo "$TERN_RANK of $TERN_WORLD_SIZE at $(ip -br -4 addr show eth0 | cut -d/ -f1)"'
says "0 of 3 at eth0"
says "10.77.0.10"
says "[rank 2] 2 of 3 at"
says "10.77.0.12"
gone
# If a rank fails by itself, its exit code counts more than those of the ranks that lost it.
# shellcheck disable=SC2016
run 7 "$dev" cluster 2 -- bash -c '[ "$TERN_RANK" = 1 ] && exit 7; exit 3'
says "dev: rank 1 ended with 7"
# shellcheck disable=SC2016
run 3 "$dev" cluster 2 -- bash -c 'ip netns identify; [ "$TERN_RANK" = 1 ] && kill -KILL $$; exit 0'
gone
# A rank that is stopped does not make the others wait.
# shellcheck disable=SC2016
run 3 "$dev" cluster 2 -- bash -c '[ "$TERN_RANK" = 0 ] && kill -STOP $$; exit 3'
# The command ends what a rank leaves behind, and does not wait for it.
run 0 timeout 40 "$dev" cluster 2 -- bash -c 'ip netns identify; sleep 60 & exit 0'
gone

# Two processes send data at the rate of the link. 2 MB at 100 Mbit/s take 0.16 s; without a limit they take some
# milliseconds.
cat >"$scratch/talk.py" <<'END'
import os, socket, time
size = 2_000_000
if os.environ["TERN_RANK"] == "0":
    with socket.create_server(("10.77.0.10", 29400)) as server:
        other, _ = server.accept()
        got, begin = 0, time.monotonic()
        while got < size:
            got += len(other.recv(65536))
        print("seconds", time.monotonic() - begin, flush=True)
else:
    for _ in range(200):
        try:
            with socket.create_connection(("10.77.0.10", 29400)) as s:
                s.sendall(bytes(size))
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
END
run 0 "$dev" cluster 2 --rate 100mbit -- python3 "$scratch/talk.py"
awk '/^seconds/ { found = $2 > 0.15 && $2 < 0.4 } END { exit !found }' <<<"$output" || fail "the link does not carry 100 Mbit/s: $output"

