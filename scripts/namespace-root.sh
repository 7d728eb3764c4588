#!/bin/sh
# Runs a program as root of user, network and mount namespaces of its own. Root maps two groups, so
# that a program can choose between them; others can map one only.
set -eu
if [ "$(id -u)" != 0 ] || ! printf '0 0 4294967295' | diff -qwB - /proc/self/gid_map >/dev/null; then
    exec unshare --user --map-root-user --net --mount -- "$@"
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkfifo "$dir/go"
# The child gets its privileges when it executes the program: by then its user is mapped.
unshare --user --net --mount -- sh -c 'read -r _ < "$0"; exec "$@"' "$dir/go" "$@" &
child=$!
# Paced: the kernel makes the namespace within microseconds.
while [ "$(readlink /proc/$child/ns/user)" = "$(readlink /proc/self/ns/user)" ]; do
    kill -0 $child && sleep 0.01
done
echo '0 0 1' > /proc/$child/uid_map
echo '0 0 2' > /proc/$child/gid_map
echo go > "$dir/go"
status=0
wait $child || status=$?
exit $status
