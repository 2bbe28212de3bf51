#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# redis with pipelined requests.
#
# vm: --topology pair --timeout 900

. "$(dirname "$0")/lib.sh"
need redis-server redis-benchmark redis-cli

ask() {
	client 120 redis-cli -h "$A" -p 6379 "$@"
}

# Every line of the benchmark has a rate above 0, and the server holds what was sent.
pipelined() {
	serve 6379 redis-server --bind "$A" --port 6379 --save "" --appendonly no --protected-mode no || return
	client 200 redis-benchmark -h "$A" -p 6379 -n 20000 -c 20 -P 16 -d 256 -t set,get,incr,lpush,lpop --csv |
		tee "$WORK/redis.csv"
	awk -F'"' 'NR > 1 { rows++; if ($4 <= 0) bad = 1 } END { exit bad || rows != 5 }' "$WORK/redis.csv" || return
	is 20000 ask get counter:__rand_int__ || return
	is 0 ask llen mylist || return
	is 256 ask strlen key:__rand_int__
}

# One request of 5 MB, and its value read back.
large() {
	serve 6379 redis-server --bind "$A" --port 6379 --save "" --appendonly no --protected-mode no || return
	head -c 5000000 /dev/urandom >"$WORK/value"
	is OK ask -x set large <"$WORK/value" || return
	ask get large >"$WORK/back" || return
	head -c 5000000 "$WORK/back" | cmp - "$WORK/value"
}

both_ways "pipelined requests" pipelined
both_ways "a value of 5 MB" large
done_testing
