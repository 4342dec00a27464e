#!/bin/sh
# watch.sh DIRECTORY SECONDS: when nobody who uses DIRECTORY lived for SECONDS, kills the processes that work in it and removes it.
# Where somebody else removes it, as an interrupted run of all specs does with whatever it made, they are killed at once.
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

# Whether PID works in FOLDER. The number may have passed to another process, which works elsewhere; as a container, one of ours works in a folder below its own.
works_in() {
  [ ! -d /proc/self ] && return
  case $(readlink "/proc/$1/cwd")/ in "$2"/*) ;; *) return 1 ;; esac
}

workers() {
  for file in "$directory"/*/pid; do
    read -r pid 2>/dev/null <"$file" && lives "$pid" && works_in "$pid" "${file%/pid}" && echo "$pid"
  done
}

# The numbers of all processes that lately worked in it: once it is removed, nobody can read them, and where a container works nobody can tell.
note() {
  alive=
  for file in "$directory"/*/pid; do
    read -r pid 2>/dev/null <"$file" && kill -0 "$pid" 2>/dev/null && alive="$alive $pid"
  done
  [ "$alive" = "$known" ] && return
  known=$alive
  noted=$(workers)
}

# Whoever began since the last look is found by the folder, which is removed and still where it works.
end_without_directory() {
  if [ -d /proc/self ]; then
    for folder in /proc/[0-9]*; do works_in "${folder#/proc/}" "$directory" && noted="$noted ${folder#/proc/}"; done 2>/dev/null
  fi
  for pid in $noted; do kill -KILL "$pid" 2>/dev/null; done
}

# From within it is seen wherever it is moved to.
directory=$(cd "$directory" && pwd -P) && cd "$directory" || exit 0
known=
noted=
unused=0
while [ "$unused" -le "$seconds" ]; do
  sleep 1
  if [ ! -d "$directory/users" ]; then
    # What was only moved has a watch of its own.
    [ -d users ] || { cd / && end_without_directory; }
    exit 0
  fi
  note
  if is_used; then unused=0; else unused=$((unused + 1)); fi
done

# Renamed first: nobody finds a half of it.
ended="$directory.ended.$$"
mv "$directory" "$ended" || exit
directory=$ended
cd / || exit
for pid in $(workers); do kill -KILL "$pid" 2>/dev/null; done
rm -rf "$ended"
