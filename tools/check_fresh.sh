#!/bin/sh
# Follows the README's "Link it" word for word in a fresh system of its own, as a newcomer would: from
# nothing installed to a program that is linked and runs. Needs root and debootstrap.
#
#     tools/check_fresh.sh [SUITE]      a Debian or Ubuntu release that debootstrap knows: bookworm
set -eu
cd "$(dirname "$0")/.."
suite=${1:-bookworm}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

components=main
case $(readlink "/usr/share/debootstrap/scripts/$suite") in
gutsy) components=main,universe ;; # Ubuntu
esac
root=$scratch/root
debootstrap --variant=minbase --components=$components "$suite" "$root" >"$scratch/log" || {
    tail -n 5 "$scratch/log" >&2
    exit 1
}
mkdir "$root/root/lattn"
git archive HEAD | tar -x -C "$root/root/lattn"
awk '/^## /{ on = /^## Link it/ } on && /^    / { print substr($0, 5) }' README.md >"$root/root/commands"
[ -s "$root/root/commands" ]

export root
# shellcheck disable=SC2016
unshare --mount --pid --fork sh -c '
    mount --bind /dev "$root/dev" && mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" || exit 1
    exec chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C \
        sh -c "cd /root/lattn && . /etc/os-release && echo \"\$PRETTY_NAME\" && sh -ex /root/commands"' >"$scratch/log" 2>&1 ||
    {
        cat "$scratch/log" >&2
        exit 1
    }
head -n 1 "$scratch/log"
grep '^+ ' "$scratch/log"
tail -n 1 "$scratch/log"
