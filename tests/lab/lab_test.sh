#!/usr/bin/env bash
# The lab's hosts are lost and come back as others expect it of hosts, and nothing of them is left.
set -euo pipefail
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/../cluster/lab.sh"
need_lab hosts
open_lab
fail() { echo "FAILED: $1"; tail -n 5 "$LAB"/log/*; exit 1; }
bring_up hosts 2

# connects HOST: 'yes MILLISECONDS', 'refused', or 'silence' of two seconds, from h0 to the port of sshd.
connects() {
  # shellcheck disable=SC2016 # expanded on the host
  "$lab" exec h0 bash -c 'begin=${EPOCHREALTIME/[.,]/} status=0
    timeout 2 bash -c ": < /dev/tcp/$0/22" 2> "$1" || status=$?
    case $status in
      0) echo "yes $(((${EPOCHREALTIME/[.,]/} - begin) / 1000))" ;;
      124) echo silence ;;
      *) grep -o refused "$1" || cat "$1" ;;
    esac' "$1" "$out/said"
}
# sees WANTED HOST WHEN
sees() {
  local said
  said=$(connects "$2")
  [[ $said = $1* ]] || fail "$3, a connection to $2 ends with '$said', not with '$1'"
}
sees yes h1 "after the start"

"$lab" hosts cut h1
sees silence h1 "with its cable cut"
sees yes h2 "with another one's cable cut"
"$lab" hosts heal h1
"$lab" hosts cut h0 h2
sees silence h2 "with the path to it cut"
sees yes h1 "with the path to another one cut"
"$lab" hosts heal h0 h2
sees yes h2 "healed"

"$lab" hosts delay h1 200
read -r _ took <<< "$(connects h1)"
[ "${took:-0}" -ge 400 ] || fail "with a delay of 200 ms each way a connection took '$took' ms"
"$lab" hosts heal h1

boot_of() { "$lab" exec h0 ssh "$1" cat /proc/sys/kernel/random/boot_id; }
boot=$(boot_of h1)
[ "$boot" != "$(boot_of h2)" ] || fail "two hosts have one boot id"
touch "$LAB/own/h1/file"
"$lab" exec h1 test -e "$LAB/local/file" || fail "h1 does not see its own folder"
! "$lab" exec h2 test -e "$LAB/local/file" || fail "h2 sees the folder of h1"
"$lab" hosts kill h1
sees refused h1 "killed"
"$lab" hosts on h1
[ "$boot" != "$(boot_of h1)" ] || fail "h1 has the boot id of its first life"
! "$lab" exec h1 test -e "$LAB/local/file" || fail "h1 has a file of its first life"
"$lab" hosts off h1
sees silence h1 "without power"
"$lab" hosts on h1
sees yes h1 "with power again"

# A command has the status that it ends with, and gets TERM when the one that waits for it is killed.
status=0
"$lab" exec h2 sh -c 'exit 9' || status=$?
[ $status -eq 9 ] || fail "a command that ends with 9 is told to have ended with $status"
"$lab" exec h2 sh -c "trap 'echo TERM > \"$out/got\"; exit' TERM; touch '$out/runs'; while :; do sleep 0.1; done" &
wait_for "a command on h2" test -e "$out/runs"
kill -KILL $!
wait $! 2> /dev/null || true
wait_for "TERM for the command on h2" test -s "$out/got"

# left: processes and cgroups that belong to this lab.
words="${LAB%?}[${LAB: -1}]/"  # a pattern that does not match itself
left() {
  grep -ls -- "$words" /proc/[0-9]*/cmdline || true
  find /sys/fs/cgroup -maxdepth 2 -name "lab${LAB//\//-}-*"
}
[ -n "$(left)" ] || fail "the test does not see what belongs to the lab"
"$lab" down
[ -z "$(left)" ] || fail "after the end of the lab there is left: $(left)"
[ ! -e "$LAB" ] || fail "the folder of the lab is left"

# The lab of a caller that was killed ends by itself.
{ bash -c '"$0" hosts up 1; kill -KILL $$' "$lab" || true; } 2> /dev/null
nothing_runs 2 -e "$words"
echo "the lab's hosts: well"
