#!/usr/bin/env bash
# Launchers that meet through a real etcd over TLS, and the many ways in which its certificates and theirs can be wrong.
# Needs etcd and openssl, and no lab. usage: etcd_tls.sh LRUN
set -euo pipefail
lrun=$1
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
# shellcheck source=tests/cluster/launchers.sh
. "$(dirname "$0")/launchers.sh"
for tool in etcd openssl; do command -v "$tool" > /dev/null || skip "no $tool"; done
out=$(mktemp -d)
export LRUN_STATE=$out/state
etcd=
# shellcheck disable=SC2317 # called by trap
clean() {
  [ -z "$etcd" ] || { kill -KILL "$etcd" && wait "$etcd"; } 2> /dev/null || true
  rm -rf "$out"
}
trap clean EXIT
host=127.$(($$ % 200 + 50)).$(($$ / 200 % 254 + 1)).9  # nobody else's

# authority NAME; certificate NAME AUTHORITY SUBJECT-ALT-NAME [DAYS]
key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
authority() {
  openssl req -x509 "${key[@]}" -days 2 -subj "/CN=$1" -keyout "$out/$1.key" -out "$out/$1.pem" 2> "$out/openssl.log"
}
certificate() {
  printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$3" > "$out/extensions"
  openssl req "${key[@]}" -subj "/CN=$1" -keyout "$out/$1.key" -out "$out/request" 2> "$out/openssl.log"
  openssl x509 -req -in "$out/request" -CA "$out/$2.pem" -CAkey "$out/$2.key" -CAcreateserial -days "${4:-2}" \
    -extfile "$out/extensions" -out "$out/$1.pem" 2> "$out/openssl.log"
}
# show NAME: from now on etcd shows this certificate; it reads the files for every connection.
show() { cp "$out/$1.pem" "$out/shown.pem"; cp "$out/$1.key" "$out/shown.key"; }

# begin NAME PORT CONF: one of two launchers of a job, in the background.
begin() {
  # shellcheck disable=SC2016 # expanded by the workers
  "$lrun" --rdzv-backend etcd --rdzv-endpoint "$host:$2" --rdzv-id job --nnodes 2 -n 1 --rdzv-conf "$3" \
    sh -c 'echo "rank $RANK/$WORLD_SIZE"' > "$out/$1.log" 2>&1 &
  launchers[$1]=$!
}
refused() { begin "$1" 2379 "$2"; ends "$1" 125 "$3"; }

authority ours; authority theirs
certificate right ours "IP:$host"
certificate elsewhere ours 'DNS:etcd.example,IP:10.0.0.1'
certificate old ours "IP:$host" -1
certificate launcher ours DNS:launcher
certificate stranger theirs DNS:launcher
show right

# Over TLS on one port, also with its other name of the same file; without on another.
etcd --name m --data-dir "$out/data" --logger zap --log-outputs stderr \
  --cert-file "$out/shown.pem" --key-file "$out/shown.key" --client-cert-auth --trusted-ca-file "$out/ours.pem" \
  --listen-client-urls "https://$host:2379,http://$host:2378" --advertise-client-urls "https://$host:2379" \
  --listen-peer-urls "http://$host:2380" --initial-advertise-peer-urls "http://$host:2380" \
  --initial-cluster "m=http://$host:2380" > "$out/etcd.log" 2>&1 &
etcd=$!
# shellcheck disable=SC2317 # called by wait_for
listens() { : < "/dev/tcp/$host/$1"; }
wait_for etcd listens 2379; wait_for etcd listens 2378
tls=protocol=https,cacert=$out/ours.pem
ours=cert=$out/launcher.pem,key=$out/launcher.key
begin a 2379 "$tls,$ours"
begin b 2379 "protocol=https,ca_cert=$out/ours.pem,ssl_cert=$out/launcher.pem,ssl_cert_key=$out/launcher.key"
ends a 0; ends b 0
cat "$out"/[ab].log > "$out/both.log"
for rank in 0/2 1/2; do grep -q "rank $rank" "$out/both.log" || fail "no rank $rank"; done

# The certificate of lrun.
refused a "$tls" "$host port 2379: it requires a client certificate"
refused a "$tls,cert=$out/stranger.pem,key=$out/stranger.key" "$host port 2379: it rejects our certificate: "
refused a "$tls,cert=$out/none.pem" "cannot read '$out/none.pem': No such file or directory"
# The certificate of etcd.
refused a "protocol=https,cacert=$out/theirs.pem,$ours" "its certificate is signed by 'CN=ours', which is not trusted here"
refused a "protocol=https,$ours" 'which is not trusted here'
show elsewhere
refused a "$tls,$ours" "its certificate is for 'etcd.example', '10.0.0.1' and not for '$host'"
show old
refused a "$tls,$ours" 'its certificate expired on '
show right
# Each protocol to the other's port.
refused a protocol=http "write '--rdzv-conf protocol=https' for an etcd that uses TLS"
begin a 2378 "$tls,$ours"; ends a 125 "hint: "; grep -q 'protocol=https' "$out/a.log" || fail 'no hint at the protocol'

echo "passed"
