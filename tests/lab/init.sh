#!/usr/bin/env bash
# The first process of the switch and of each host, in namespaces of their own: mounts what the host sees, starts its
# daemons and adopts orphans. usage: init.sh LAB/NAME [CGROUP]
set -euo pipefail
lab=${1%/*} name=${1##*/}
read -r pid _ < /proc/self/stat  # /proc is still the machine's, and so is this number

# A host has copies of the switch's mounts, which would keep the network namespaces of hosts that are lost.
# (On the machine itself, /run/netns may be a mount and /run none.)
if mountpoint -q /run/netns; then umount -l /run 2> /dev/null || umount -l /run/netns; fi
mount -t tmpfs -o mode=755 tmpfs /run

if [ "$name" = switch ]; then
  ip -batch - <<TEXT
link set lo up
link add br0 type bridge
link set br0 up
TEXT
else
  hostname "$name"
  mount -t proc proc /proc
  mount -t tmpfs tmpfs /dev/shm
  [ $# -lt 2 ] || mount -t cgroup2 cgroup2 /sys/fs/cgroup
  cat /proc/sys/kernel/random/uuid > /run/boot_id
  mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
  mount --bind "$lab/etc-hosts" /etc/hosts
  mount --bind "$lab/ssh/ssh_config" /etc/ssh/ssh_config
  mount --bind "$lab/own/$name" "$lab/local"

  # daemon COMMAND...: with the environment of a boot.
  daemon() { env -i PATH="$PATH" HOME="$lab/local/home" TMPDIR="$lab/local" "$@"; }
  mkdir /run/sshd
  daemon /usr/sbin/sshd -f "$lab/ssh/sshd_config" -E "$lab/log/$name.sshd"
  if [ -d "$lab/slurm" ]; then
    mount --bind "$lab/slurm/etc" /etc/slurm
    if [ "$name" = h0 ]; then
      daemon munged --force --key-file="$lab/slurm/key" --socket="$lab/slurm/munge" --pid-file=/run/munged.pid \
        --log-file="$lab/log/munged" --seed-file="$lab/slurm/seed"
      daemon slurmctld
    else
      daemon slurmd -N "$name"
    fi
  fi
fi

echo "$pid" > "$lab/pids/$name.new"
mv "$lab/pids/$name.new" "$lab/pids/$name"
while :; do
  sleep infinity &
  wait
done
