#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command with a lock of Redis 7 or Valkey held: Holdfast's functions library over redis-cli.
#
#     holdfast.sh [-l LEASE_MS] [-w WAIT_MS] [-n LIMIT | -s] LOCK COMMAND [ARGUMENT...]
#     holdfast.sh -l 30000 -w 60000 nightly-report ./report.sh
#
# Waits in line for WAIT_MS at most (default: for ever, 0: not at all) by asking every 0.3 s or so. The key is
# "lock:LOCK", as the Go client's. The command finds its fencing token in HOLDFAST_TOKEN. The lock is renewed three times
# in a lease (default and advice: 30000 ms; 3000 at least). If it is lost the command gets SIGTERM before the lease
# can end: the command itself, not what it has started, so a script ends with exec. "holdfast run" ends the whole group.
# Exits as the command does, or with 75 (busy), 70 (lost), 69 (no answer, or an error reply).
# -n takes the lock beside at most LIMIT - 1 others that give a limit, -s beside all that share it. HOLDFAST_SLOT is then
# a number from 1 on that no other holder has; else it is 0.
# REDIS_CLI is how to reach the server, for example 'redis-cli -h db.example -p 6380'; its password goes into REDISCLI_AUTH
# only, because redis-cli warns of one in its arguments.
set -u
true 2>/dev/null 3<&0 || exec </dev/null # it may be closed, and is handed on below

lease=30000 wait='' limit='' shared=''
while getopts l:w:n:s option; do
  case $option in
  l) lease=$OPTARG ;;
  w) wait=$OPTARG ;;
  n) limit=$OPTARG ;;
  s) shared=SHARED ;;
  *) exit 64 ;;
  esac
done
shift $((OPTIND - 1))
case $lease$wait in *[!0-9]*) set -- ;; esac # a wait of 10s would be one for ever
[ $# -ge 2 ] || { echo "usage: holdfast.sh [-l LEASE_MS] [-w WAIT_MS] [-n LIMIT | -s] LOCK COMMAND [ARGUMENT...]" >&2; exit 64; }
key=lock:$1 command=''
beside="${limit:+LIMIT $limit }$shared"
shift
random=$(head -c 12 /dev/urandom | base64 | tr '+/' '-_')
owner=$(uname -n | tr -c '!-9;-~\n' -):$$:${random:?no random bytes} # never used again

# now prints the time in ms since the machine started: a clock that nobody sets. Elsewhere than on Linux it is date's.
now() {
  if [ -r /proc/uptime ]; then read -r up _ </proc/uptime && echo "${up%.*}${up#*.}0"; else echo "$(date +%s)000"; fi
}

# ask calls a function and sets r1 to r5 to its reply: a token or 1, with -n and -s 1, token, slot, or a refusal: 0,
# pttl_ms, owner, position, why.
# It fails without an answer, or on an error.
patience=$((lease / 4000 + 1))
ask() {
  function=$1 words=''
  shift
  case $function in acquire | wait) words=$beside ;; esac
  # shellcheck disable=SC2086 # it is words
  reply=$(timeout "$patience" ${REDIS_CLI:-redis-cli} FCALL "holdfast_$function" 1 "$key" "$owner" "$@" $words 2>&1)
  { read -r r1; read -r r2; read -r r3; read -r _; read -r r5; } <<REPLY
$reply
REPLY
  case $r1 in '' | *[!0-9]*) echo "holdfast.sh: $key: ${reply:-no answer}" >&2; r1=0; false ;; esac
}

# Gives up: a grant that crosses with this goes on to the next in line. The command, if it runs, ends first.
leave() {
  [ -z "$command" ] || { kill "$command" 2>/dev/null; wait "$command"; kill "$renewer" 2>/dev/null; }
  ask leave || ask leave
  exit "$1"
}
note() { caught=$1; }
on() { trap "$1 130" INT && trap "$1 131" QUIT && trap "$1 143" TERM HUP; }
on leave

start=$(now) answered=$(now) sent=$(now) r1=0 r2=0 r3='' r5=''
ask acquire "$lease" || ask acquire "$lease" || leave 69 # the same owner: a repeat is safe
while [ "$r1" = 0 ]; do
  if [ -n "$wait" ] && [ $(($(now) - start)) -ge "$wait" ]; then
    echo "holdfast.sh: $key: $r5 by '$r3' for $r2 ms" >&2
    leave 75
  fi
  sent=$(now)
  if ask wait "$lease"; then answered=$sent; elif [ $((sent - answered)) -ge "$lease" ]; then leave 69; fi
  [ "$r1" != 0 ] || sleep 0.3
done

# The lease counts from before the call, less a margin for clocks that differ, and are coarse here.
token=$r1 slot=0 margin=$((lease / 100 + 20))
if [ -n "$beside" ]; then token=$r2 slot=$r3; fi
caught=''
on note # until leave knows what there is to end
exec 3<&0 # a command in the background would read /dev/null
HOLDFAST_TOKEN=$token HOLDFAST_SLOT=$slot "$@" <&3 3<&- &
command=$!
# alive asks whether the command runs. What has ended stays a zombie if nobody waits for it.
alive() { kill -0 "$command" 2>/dev/null && ! grep -qs '^State:[[:space:]]*Z' "/proc/$command/status"; }
renew() {
  trap - INT QUIT TERM HUP
  ends=$((sent + lease - margin)) pause=$((lease / 3)) r5=''
  while left=$((ends - $(now))) && [ "$left" -gt 0 ]; do
    alive || exit 0 # it has ended, and nobody told us: too early for the trap, or killed
    [ "$pause" -lt "$left" ] || pause=$left
    sleep "$((pause / 1000)).$(printf %03d $((pause % 1000)))" >/dev/null 2>&1 # it can outlive us: holds no pipe open
    pause=$((lease / 20))
    sent=$(now)
    [ $((sent + patience * 1000)) -lt "$ends" ] || continue # it could outlast the lease
    ask renew "$lease" FENCE "$token" || continue # tried again until the lease ends
    [ "$r1" != 0 ] || break
    ends=$((sent + lease - margin)) pause=$((lease / 3))
  done
  trap '' TERM # when the command ends we are told to end too, and are to say 70
  echo "holdfast.sh: $key: lost: ${r5:-the lease has ended}" >&2
  kill "$command"
  exit 70
}
renew 3<&- &
renewer=$!
on leave
[ -z "$caught" ] || leave "$caught"

wait "$command"
status=$?
kill "$renewer" 2>/dev/null
wait "$renewer" 2>/dev/null
[ $? != 70 ] || exit 70
command=''
ask release || { ask release && r1=1; } || exit 69 # the first one may have given it back
[ "$r1" != 0 ] || { echo "holdfast.sh: $key: lost: $r5" >&2; exit 70; }
exit "$status"
