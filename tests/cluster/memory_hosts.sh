#!/usr/bin/env bash
# Hosts of the lab that are lost and replaced: by another one with the same node rank, the first one, which led, by itself
# after a boot, and one by a spare. Each time the workers go on from what was saved in memory there. usage: memory_hosts.sh LRUN
set -euo pipefail
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
need_lab hosts
exec python3 "$(dirname "$0")/../faults/lost_hosts.py" --fixed --lrun "$1"
