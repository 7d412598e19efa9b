# shellcheck shell=bash
# Sourced by the tests on a lab: what each of them needs of it, or the reason why it is skipped (77).

skip() { echo "skipped: $1"; exit 77; }

lab=$(cd "$(dirname "${BASH_SOURCE[0]}")/../lab" && pwd)/lab

# need_lab PART: the lab can have its hosts, slurm or etcd on this machine.
need_lab() {
  local why
  why=$("$lab" has "$1" 2>&1) || skip "${why#lab: }"
}

# open_lab: a lab of this process's own, whose folder is $LAB, and the folder `out`; both go away with it.
open_lab() {
  LAB=$(mktemp -d)
  export LAB
  out=$(mktemp -d)
  trap '"$lab" down > /dev/null 2>&1; rm -rf "$out"' EXIT
}

# allow_silence: a machine that starts daemons and compilers beside may keep a launcher from its loop for seconds; here
# that is no reason to lose its node.
allow_silence() { export LRUN_RDZV_CONF=heartbeat_timeout=20; }

# bring_up PART WORDS...: the part of the lab, as 'lab PART up WORDS' does it.
bring_up() {
  "$lab" "$1" up "${@:2}" || { echo "FAILED: the lab has no $1"; exit 1; }
}

# wait_for WHAT COMMAND...: until COMMAND succeeds, for `patience` seconds (60).
wait_for() {
  local what=$1 deadline=$((SECONDS + ${patience:-60}))
  shift
  until "$@" > /dev/null 2>&1; do
    [ "$SECONDS" -lt "$deadline" ] || fail "$what did not come"
    sleep 0.1
  done
}

# ssh_to HOST: the process ids of the ssh clients that lrun has started for it.
ssh_to() {
  local file words
  for file in /proc/[0-9]*/cmdline; do
    words=$(tr '\0' ' ' 2> /dev/null < "$file") || continue
    [[ $words != "ssh -o BatchMode=yes "*" $1 exec "* ]] || basename "${file%/cmdline}"
  done
}

# nothing_runs SECONDS GREP-OPTION...: waits until no process of any host has a command line like that. The pattern must
# not match itself. lrun promises the SECONDS of a machine that does nothing else: the time is told, and no verdict.
nothing_runs() {
  local promised=$1 begun=$SECONDS left
  shift
  while left=$({ grep -lsz "$@" /proc/[0-9]*/cmdline || true; } | { grep -v "/$$/" || true; }) && [ -n "$left" ]; do
    [ $((SECONDS - begun)) -lt $((promised + 60)) ] || fail "after $((SECONDS - begun)) s there still run: $left"
    sleep 0.2
  done
  echo "nothing like '${!#}' after $((SECONDS - begun)) s of $promised"
}

# named NODE SECONDS: waits until lrun says that it is lost; the SECONDS as above.
named() {
  local begun=$SECONDS
  until grep -q "node $1 is lost" "$out/err"; do
    [ $((SECONDS - begun)) -lt 60 ] || fail "$1 is not named after $((SECONDS - begun)) s"
    sleep 0.1
  done
  echo "$1 is named after $((SECONDS - begun)) s of $2"
}
