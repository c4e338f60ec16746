#!/bin/sh
# redis-cli is a language too.
set -eu
host=$1 port=$2 mode=$3
shift 3
cli() { redis-cli -h "$host" -p "$port" "$@"; }

if [ "$mode" = call ]; then
  function=$1
  shift
  exec redis-cli -h "$host" -p "$port" FCALL "$function" 1 "$@"
fi
lock=$1 counter=$2 name=$3 rounds=$4 i=0
while [ "$i" -lt "$rounds" ]; do
  while got=$(cli FCALL holdfast_wait 1 "$lock" "$name $i" 30000 '') && [ "${got%%"
"*}" = 0 ]; do
    sleep 0.01
  done
  n=$(cli GET "$counter")
  cli SET "$counter" $((${n:-0} + 1)) >/dev/null
  echo "$got" | sed -n 2p
  [ "$(cli FCALL holdfast_release 1 "$lock" "$name $i" | tr '\n' ' ')" = '1 0 ' ] || { echo 'lost the lock' >&2; exit 1; }
  i=$((i + 1))
done
