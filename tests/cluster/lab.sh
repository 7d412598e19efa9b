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

# bring_up NAME COMMAND...: the part of the lab that COMMAND brings up.
bring_up() {
  local name=$1
  shift
  "$lab" "$@" > "$out/lab" 2>&1 || skip "no $name here: $(tail -n 1 "$out/lab")"
}
