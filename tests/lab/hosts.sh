# shellcheck shell=bash disable=SC2154 # here: set by lab, which sources this
# Hosts, and the switch between them. A part of lab.
#
# The switch has a network and a PID namespace of its own, and the hosts' PID namespaces lie in that one: when the
# switch's first process (init.sh) ends, the kernel ends all of a lab. A host's cable is a pair of interfaces: eth0 on
# the host, and one with the host's name at the switch's bridge. The names of network namespaces (ip netns) are mounts
# that only the switch has, and end with it.

address_of() { echo "198.18.0.$((10 + ${1#h}))"; }
# on_switch COMMAND...: COMMAND sees the interfaces of the switch and the names of the hosts' networks.
on_switch() { nsenter --target "$(pid_of switch)" --mount --net --pid "$@"; }
need_host() { [[ ${1:-} =~ ^h[0-9]+$ && -d $LAB/own/$1 ]] || die "there is no host '${1:-}'"; }

# cgroup_of HOST: where the machine has cgroups of version 2, each host has one.
cgroup_of() {
  local root
  root=$(findmnt --noheadings --types cgroup2 --output TARGET | head -n 1)
  [ -z "$root" ] || echo "$root/lab${LAB//\//-}-$1"
}
# join_cgroup HOST: this shell, and what it becomes.
join_cgroup() {
  local cgroup
  cgroup=$(cgroup_of "$1")
  [ ! -d "$cgroup" ] || echo "$BASHPID" > "$cgroup/cgroup.procs"
}
remove_cgroup() {
  local cgroup
  cgroup=$(cgroup_of "$1")
  # A killed process leaves its cgroup a moment after its end.
  [ -z "$cgroup" ] || wait_for 3 remove_folders "$cgroup" || true
}
remove_folders() {
  find "$1" -depth -type d -exec rmdir {} +
  [ ! -d "$1" ]
}

# host_exec HOST COMMAND...: this process becomes nsenter, which waits for COMMAND. COMMAND gets TERM when nsenter is
# killed.
host_exec() {
  local host=${1:-} pid
  need_host "$host"
  pid=$(pid_of "$host") || die "$host is off"
  join_cgroup "$host"
  exec nsenter --target "$pid" --net --uts --ipc --mount --pid --cgroup \
    setpriv --pdeathsig TERM env --chdir "$PWD" TMPDIR="$LAB/local" "${@:2}"
}
in_host() { (host_exec "$@"); }

hosts_up() {
  local i
  has hosts
  [ ! -d "$LAB/own" ] || die "the hosts are up"
  prepare
  mkdir -p "$LAB"/{own,local,ssh}
  {
    echo "127.0.0.1 localhost"
    for i in $(seq 0 "$1"); do echo "$(address_of "h$i") h$i"; done
  } > "$LAB/etc-hosts"
  write_ssh_files
  keep switch unshare --net --mount --pid --fork --kill-child=KILL "$here/init.sh" "$LAB/switch"
  wait_for 10 is_up switch || die "there is no switch: $(tail -n 1 "$LAB/log/switch")"
  for i in $(seq 0 "$1"); do host_on "h$i"; done
  for i in $(seq 0 "$1"); do wait_for_host "h$i"; done
}

# All hosts have the same key, and all users another.
write_ssh_files() {
  local key
  for key in id host; do ssh-keygen -q -t ed25519 -N '' -C lab -f "$LAB/ssh/$key"; done
  cat > "$LAB/ssh/sshd_config" <<TEXT
HostKey $LAB/ssh/host
AuthorizedKeysFile $LAB/ssh/id.pub
StrictModes no
PidFile none
SetEnv HOME=$LAB/local/home TMPDIR=$LAB/local
TEXT
  cat > "$LAB/ssh/ssh_config" <<TEXT
IdentityFile $LAB/ssh/id
IdentitiesOnly yes
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
BatchMode yes
ConnectTimeout 5
TEXT
}

host_on() {
  local host=$1 cgroup init=("$here/init.sh" "$LAB/$1")
  rm -rf "${LAB:?}/own/$host"
  mkdir -p "$LAB/own/$host/home"
  # The hardware's address stays: others remember it when the host is booted again.
  on_switch ip -batch - <<TEXT
netns add $host
link add $host type veth peer name eth0 address $(printf '02:00:00:00:00:%02x' $((10 + ${host#h}))) netns $host
link set $host master br0 up
TEXT
  on_switch ip -netns "$host" -batch - <<TEXT
link set lo up
address add $(address_of "$host")/24 dev eth0
link set eth0 up
TEXT
  cgroup=$(cgroup_of "$host")
  if [ -n "$cgroup" ] && mkdir -p "$cgroup" 2> /dev/null; then init+=("$cgroup"); fi
  (
    join_cgroup "$host"
    exec setsid nsenter --target "$(pid_of switch)" --mount --net --pid ip netns exec "$host" \
      unshare --uts --ipc --mount --cgroup --pid --fork --kill-child=KILL "${init[@]}" \
      < /dev/null >> "$LAB/log/$host" 2>&1
  ) &
}
wait_for_host() { wait_for 20 is_up "$1" || die "$1 did not come up: $(tail -n 1 "$LAB/log/$1")"; }

host_kill() {
  end "$1"
  remove_cgroup "$1"
}
# The cable first: then nobody hears of the end of the host's processes.
host_off() {
  on_switch ip link set "$1" down 2> /dev/null || true
  host_kill "$1"
  end_delay "$1"
  on_switch ip link delete "$1" 2> /dev/null || true
  on_switch ip netns delete "$1" 2> /dev/null || true
}

hosts_down() {
  local host
  end switch
  for host in "$LAB"/own/*; do [ ! -d "$host" ] || remove_cgroup "${host##*/}"; done
}

# set_path cut|heal A B: a wrong hardware address of the other one leads what each of them sends to nobody.
set_path() {
  local from to way
  for from in "$2" "$3"; do
    to=$3
    [ "$from" = "$2" ] || to=$2
    way=("$(address_of "$to")" dev eth0)
    case $1 in
      cut) on_switch ip -netns "$from" neigh replace "${way[@]}" lladdr 02:00:00:00:00:fe nud permanent ;;
      heal) on_switch ip -netns "$from" neigh delete "${way[@]}" ;;
    esac
  done
}

# delay HOST MS JITTER-MS: unplugs the host's cable from the switch, and lets delay_link.py pass frames between both.
delay() {
  echo "$2 $3" > "$LAB/$1.delay"
  if is_up "$1.delay"; then
    kill -HUP "$(pid_of "$1.delay")"
    return 0
  fi
  on_switch ip -batch - <<TEXT
link set $1 nomaster
link add $1-delay type veth peer name $1-port
link set $1-delay up
link set $1-port master br0 up
TEXT
  setsid nsenter --target "$(pid_of switch)" --net --pid \
    "$here/delay_link.py" "$LAB/$1.delay" "$LAB/pids/$1.delay" "$1" "$1-delay" < /dev/null >> "$LAB/log/$1.delay" 2>&1 &
  wait_for 10 is_up "$1.delay" || die "$(tail -n 1 "$LAB/log/$1.delay")"
}

end_delay() {
  end "$1.delay"
  on_switch ip link delete "$1-delay" 2> /dev/null || true
}
heal() {
  end_delay "$1"
  on_switch tc qdisc delete dev "$1" root 2> /dev/null || true
  on_switch ip link set "$1" master br0 up
}

hosts_command() {
  local command=${1:-} host=${2:-}
  if [ "$command" = up ]; then
    [[ $host =~ ^[1-9][0-9]?$ ]] || die "hosts up N: 1 to 99"
    hosts_up "$host"
    return 0
  fi
  need_host "$host"
  is_up switch || die "the switch is down"
  case $command:$# in
    off:2) host_off "$host" ;;
    kill:2) host_kill "$host" ;;
    on:2)
      ! is_up "$host" || die "$host is on"
      host_off "$host"
      host_on "$host"
      wait_for_host "$host"
      ;;
    cut:2) on_switch ip link set "$host" down ;;
    heal:2) heal "$host" ;;
    cut:3 | heal:3) need_host "$3"; set_path "$command" "$host" "$3" ;;
    delay:[34]) delay "$host" "$3" "${4:-0}" ;;
    rate:3) on_switch tc qdisc replace dev "$host" root tbf rate "$3" burst 16kb latency 200ms ;;
    *) usage ;;
  esac
}
