#!/bin/sh
# Driver for redis-cli and for libmemcached's tools, which are run anew for each request; see README.md.
set -eu

# The reply as a terminal would see it, which tells the types.
redis_cli() {
    case $address in
    /*) redis-cli --no-raw -s "$address" "$@" ;;
    *) redis-cli --no-raw -h "${address%:*}" -p "${address#*:}" "$@" ;;
    esac 2>&1 | sed -E -e 's/^ *[0-9]+\) //' -e 's/^"(.*)"$/s:\1/' -e 's/^\(integer\) /i:/' \
        -e 's/^\(nil\)$/n:/' -e 's/^\(error\) /e:/' -e 's/^Could not/e:&/' -e 's/^OK$/s:OK/' | paste -s
}

# memccat has no way to say which of several keys it found, and is silent of those it did not.
memcached_tools() {
    verb=$1
    shift
    case $verb in
    get | mget)
        # shellcheck disable=SC2086
        memccat $binary --servers="$address" "$@" 2>/dev/null | sed 's/^/s:/' | paste -s |
            sed 's/^$/n:/' | grep . || echo n:
        ;;
    set)
        printf %s "$2" >"$1"
        # shellcheck disable=SC2086
        if said=$(memccp $binary --servers="$address" "$1" 2>&1); then
            echo "s:OK"
        else
            printf 'e:%s\n' "$said" | paste -s -d ' '
        fi
        ;;
    esac
}

client=$1 address=$2 binary=
while read -r verb args; do
    # shellcheck disable=SC2086
    case $client in
    redis-cli) redis_cli "$verb" $args ;;
    redis-cli-3) redis_cli -3 "$verb" $args ;;
    memccat) memcached_tools "$verb" $args ;;
    memccat-binary) binary=--binary memcached_tools "$verb" $args ;;
    esac
done
