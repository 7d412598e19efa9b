# shellcheck shell=bash disable=SC2154 # out: set by who sources this
# Sourced by the tests that begin launchers by name in the background: each writes to $out/NAME.log, and its process is
# in launchers[NAME].

# shellcheck disable=SC2034 # used by who sources this
declare -A launchers
patience=60  # seconds, for anything to happen

fail() { echo "FAILED: $1"; tail -n 30 "$out"/*.log; exit 1; }

# said NAME TEXT [TIMES]: waits until a launcher, or one of its workers, has said so.
said() {
  local deadline=$((SECONDS + patience))
  until [ "$(grep -c -- "$2" "$out/$1.log")" -ge "${3:-1}" ]; do
    [ "$SECONDS" -lt "$deadline" ] || fail "$1 does not say '$2' ${3:-1} times"
    sleep 0.05
  done
}

# ends NAME STATUS [TEXT]: waits until it does, and has said TEXT.
ends() {
  local status=0 deadline=$((SECONDS + patience))
  while kill -0 "${launchers[$1]}" 2> /dev/null; do
    [ "$SECONDS" -lt "$deadline" ] || fail "$1 does not end"
    sleep 0.05
  done
  wait "${launchers[$1]}" || status=$?
  [ "$status" -eq "$2" ] || fail "$1 ended with $status, not $2"
  [ $# -lt 3 ] || grep -qF -- "$3" "$out/$1.log" || fail "$1 does not say '$3'"
}
