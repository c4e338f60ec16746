#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# redis-cli is a language too.
set -u
host=$1 port=$2 mode=$3 name=$4 lease=$5 wait=$6
export REDIS_CLI="redis-cli ${CLUSTER:+-c} -h $host -p $port"
with_lock() {
  if [ "$wait" = -1 ]; then wait=100000000; fi
  "$(dirname "$0")/../shell/holdfast.sh" -l "$lease" -w "$wait" ${LIMIT:+-n "$LIMIT"} ${SHARED:+-s} "$name" "$@"
}

status=0
if [ "$mode" = hold ]; then
  with_lock sh -c 'echo "held $HOLDFAST_TOKEN $HOLDFAST_SLOT"; read -r line || :' && echo released || status=$?
else
  i=0
  while [ "$i" -lt "$8" ] && [ "$status" = 0 ]; do
    # shellcheck disable=SC2016
    with_lock sh -c 'n=$($REDIS_CLI GET "$0"); $REDIS_CLI SET "$0" $((${n:-0} + 1)) >&2; echo "$HOLDFAST_TOKEN"' "$7" || status=$?
    i=$((i + 1))
  done
fi
case $status in
75) echo busy ;;
70) echo lost ;;
*) exit "$status" ;;
esac
