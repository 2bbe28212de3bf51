#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# memcached: the protocol's conformance test of libmemcached, and a load.
#
# vm: --topology pair --timeout 900 --programs

. "$(dirname "$0")/lib.sh"
need memcached memccapable memcslap memccp memccat

cache() {
	serve 11211 memcached -u root -l "$A" -p 11211 -U 0 -m 64 -t 2
}

# What passes on TCP is what has to pass: the server is newer than the test.
conformance() {
	cache || return
	client 200 memccapable -a -h "$A" -p 11211 >"$WORK/capable.out" 2>&1
	grep -oE '^.*\[(pass|FAIL)\]' "$WORK/capable.out" | tr -s ' .' ' ' >"$WORK/capable$RUN"
	[ "$(grep -c pass "$WORK/capable$RUN")" -gt 10 ] || {
		cat "$WORK/capable.out"
		return 1
	}
	diff "$WORK/capable" "$WORK/capable$RUN"
}

load() {
	cache || return
	client 120 memcslap --servers "$A:11211" --concurrency 8 --execute-number 500 --test set || return
	client 120 memcslap --servers "$A:11211" --concurrency 8 --execute-number 500 --test mget
}

value() {
	cache || return
	head -c 900000 /dev/urandom >"$WORK/thing"
	client 60 memccp --servers "$A:11211" "$WORK/thing" || return
	client 60 memccat --servers "$A:11211" --file "$WORK/back" thing && same "$WORK/thing" "$WORK/back"
}

both_ways "the conformance test" conformance
both_ways "a load" load
both_ways "a value of 900 kB" value
done_testing
