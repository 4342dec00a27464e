#!/bin/sh
# watch.sh DIRECTORY SECONDS: when nobody who uses DIRECTORY lived for SECONDS, kills the processes that work in it and removes it.
# A process cannot do that for itself: whoever uses it may be killed, and it may be paused.
#   DIRECTORY/users/PID   an empty file for each process that uses what runs here
#   DIRECTORY/NAME/pid    a process that works in DIRECTORY/NAME
directory=$1
seconds=$2

lives() {
  kill -0 "$1" 2>/dev/null && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null
}

is_used() {
  for user in "$directory"/users/*; do
    lives "${user##*/}" && return
    rm -f "$user"
  done
  return 1
}

unused=0
while [ "$unused" -le "$seconds" ]; do
  sleep 1
  [ -d "$directory/users" ] || exit 0
  if is_used; then unused=0; else unused=$((unused + 1)); fi
done

# Renamed first: nobody finds a half of it.
ended="$directory.ended.$$"
mv "$directory" "$ended" || exit
for file in "$ended"/*/pid; do
  pid=$(cat "$file" 2>/dev/null) || continue
  # The number may have passed to another process, which works elsewhere; as a container, one of ours works in a folder below its own.
  if [ -d /proc/self ]; then
    case $(readlink "/proc/$pid/cwd")/ in "${file%/pid}"/*) ;; *) continue ;; esac
  fi
  kill -KILL "$pid" 2>/dev/null
done
rm -rf "$ended"
