# shellcheck shell=bash
# An etcd of some members, on the loopback interface or on hosts. A part of lab.

etcd_is_on_hosts() { [ -e "$LAB/etcd/on-hosts" ]; }
# On the loopback interface each lab has addresses of its own, made from its folder's name.
member_address() {
  local sum
  if etcd_is_on_hosts; then
    address_of "h${1#m}"
    return 0
  fi
  sum=$(cksum <<< "$LAB")
  sum=${sum%% *}
  echo "127.$((sum % 200 + 50)).$((sum / 200 % 254 + 1)).${1#m}"
}
members() { seq -f 'm%g' "$(cat "$LAB/etcd/count")"; }
# on_member MEMBER COMMAND...: COMMAND runs where the member does.
on_member() { if etcd_is_on_hosts; then in_host "h${1#m}" "${@:2}"; else "${@:2}"; fi; }
endpoints() { for member in $(members); do echo "$(member_address "$member"):2379"; done | paste -sd,; }
ctl() { on_member m1 env ETCDCTL_API=3 etcdctl --endpoints "$(endpoints)" --command-timeout 2s "$@"; }

etcd_start() {
  local member=$1 address cluster each where=()
  address=$(member_address "$member")
  cluster=$(for each in $(members); do echo "$each=http://$(member_address "$each"):2380"; done | paste -sd,)
  ! etcd_is_on_hosts || where=("$0" exec "h${member#m}")
  [ ! -e "$LAB/pids/$member" ] || die "$member was not killed"
  # shellcheck disable=SC2016 # expanded where the member runs, with the process ids of there
  keep "$member" "${where[@]}" bash -c 'echo $$ > "$0"; exec etcd "$@"' "$LAB/pids/$member" \
    --name "$member" --data-dir "$LAB/$member" --logger zap --log-outputs stderr \
    --listen-client-urls "http://$address:2379" --advertise-client-urls "http://$address:2379" \
    --listen-peer-urls "http://$address:2380" --initial-advertise-peer-urls "http://$address:2380" \
    --initial-cluster "$cluster"
  wait_for 10 test -s "$LAB/pids/$member" || die "$member does not start: $(tail -n 1 "$LAB/log/$member")"
}

etcd_up() {
  local member
  has etcd
  [ ! -d "$LAB/etcd" ] || die "etcd is up"
  [ -z "${2:-}" ] || need_host "h$1"
  prepare
  mkdir "$LAB/etcd"
  echo "$1" > "$LAB/etcd/count"
  [ -z "${2:-}" ] || : > "$LAB/etcd/on-hosts"
  for member in $(members); do etcd_start "$member"; done
  wait_for 30 ctl endpoint health || die "etcd is not healthy: $(tail -qn 1 "$LAB"/log/m*)"
}

# leader: the member whose status says so. A member that is down makes etcdctl fail, after it has printed the others.
leader() {
  local address member
  address=$({ ctl endpoint status 2> /dev/null || true; } | awk -F ', ' '$5 == "true" { print $1 }')
  for member in $(members); do
    [ "$(member_address "$member"):2379" != "$address" ] || echo "$member"
  done
}

etcd_kill() {
  local member=$1
  [ "$member" != leader ] || member=$(leader)
  [ -n "$member" ] || die "no member leads"
  on_member "$member" "$0" end "$member" || die "$member is not up"
  echo "$member"
}

etcd_down() {
  local member
  [ -d "$LAB/etcd" ] && ! etcd_is_on_hosts || return 0  # hosts take their members along
  for member in $(members); do end "$member"; done
}

etcd_command() {
  case ${1:-}:$# in
    up:2 | up:3) [[ $2 =~ ^[1-9]$ && ${3:---hosts} = --hosts ]] || usage; etcd_up "${@:2}" ;;
    endpoints:1 | kill:2 | start:2)
      [ -d "$LAB/etcd" ] || die "etcd is not up"
      case $1 in
        endpoints) endpoints ;;
        kill) etcd_kill "$2" ;;
        start) etcd_start "$2" ;;
      esac
      ;;
    *) usage ;;
  esac
}
