# shellcheck shell=bash
# Sourced by the tests on a lab: what each of them needs of it, or the reason why it is skipped (77).

skip() { echo "skipped: $1"; exit 77; }

# need_lab: sets `lab`; lrun knows no variable LRUN_LAB, so it goes.
need_lab() {
  lab=${LRUN_LAB:-}
  [ -n "$lab" ] || skip "LRUN_LAB names no lab"
  unset LRUN_LAB
}

need_root() { [ "$(id -u)" -eq 0 ] || skip "the lab needs root"; }

# need_part PART NAME: the lab can have it on this machine.
need_part() { "$lab" has "$1" > /dev/null 2>&1 || skip "the lab has no $2 here"; }

# open_lab NAME: a lab of this process's own, and the folder `out`; both go away with it. NAME: small letters, digits.
open_lab() {
  export LAB=$1$$
  out=$(mktemp -d)
  trap '"$lab" down > /dev/null 2>&1; rm -rf "$out"' EXIT
}

# allow_silence: a machine that starts daemons and compilers beside may keep a launcher from its loop for seconds; here
# that is no reason to lose its node.
allow_silence() { export LRUN_RDZV_CONF=heartbeat_timeout=20; }

# bring_up NAME COMMAND...: the part of the lab that COMMAND brings up.
bring_up() {
  local name=$1
  shift
  "$lab" "$@" > "$out/lab" 2>&1 || skip "no $name here: $(tail -n 1 "$out/lab")"
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
