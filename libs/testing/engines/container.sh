#!/bin/sh
# container.sh CHECKOUT USER [PATH=FOLDER | PATH:SIZE]... -- NODE ARGS...: becomes a program of the image, as a container would run it, as near as a process comes
# to that. It sees what the image holds, and of this machine the libraries and the addresses; FOLDER is seen at PATH; nothing can be written to but /dev and what is
# mounted at PATH:SIZE; it has no capabilities, and is USER (a user and a group by number; empty: nobody else). Begun in a mount namespace of its own (unshare
# --mount), in a folder of its own. Its network, its processes and its memory are those of this machine.
set -eu
checkout=$1
user=$2
shift 2
root=$PWD/root
mkdir -p "$root"
mount -t tmpfs -o mode=755 tmpfs "$root"

# seen SOURCE PATH
seen() {
  if [ -d "$1" ]; then
    mkdir -p "$root$2"
  else
    mkdir -p "$root${2%/*}"
    : >"$root$2"
  fi
  mount --bind "$1" "$root$2"
  mount -o remount,bind,ro "$root$2"
}

for path in /usr /bin /sbin /lib /lib32 /lib64 /libx32; do
  if [ -L "$path" ]; then ln -s "$(readlink "$path")" "$root$path"; elif [ -d "$path" ]; then seen "$path" "$path"; fi
done
for path in /etc/hosts /etc/resolv.conf /etc/nsswitch.conf /etc/ld.so.cache; do [ ! -e "$path" ] || seen "$path" "$path"; done
for path in dist node_modules package.json LICENSE docker/start.mjs docker/health.mjs; do seen "$checkout/$path" "/app/$path"; done
for path in /proc /dev; do mkdir "$root$path" && mount --rbind "$path" "$root$path"; done

while [ "$1" != -- ]; do
  case $1 in
    *=*) seen "${1#*=}" "${1%%=*}" ;;
    *)
      mkdir -p "$root${1%%:*}"
      mount -t tmpfs -o "mode=1777,size=${1#*:}" tmpfs "$root${1%%:*}"
      ;;
  esac
  shift
done
shift
# Where Node was installed beside the system.
[ -e "$root$1" ] || seen "$1" "$1"
mount -o remount,ro "$root"

if [ -n "$user" ]; then
  set -- --reuid="${user%:*}" --regid="${user#*:}" --clear-groups -- env --unset=PWD --chdir=/app "$@"
else
  set -- -- env --unset=PWD --chdir=/app "$@"
fi
exec chroot "$root" setpriv --inh-caps=-all --bounding-set=-all --no-new-privs "$@"
