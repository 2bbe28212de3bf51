#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every byte arrives, once and unchanged, over SMC-R: message sizes from 1 byte
# to 64 MiB, rings from 16 to 512 KiB, 1 to 300 connections, killed processes, resets,
# half-closes, short answers, urgent data, and all ways of waiting.
#
# vm: --topology pair --timeout 1200

. "$(dirname "$0")/../lib.sh"
FAMILY=${SMC_TEST_FAMILY:-smc}
note "seed $SEED (SMC_TEST_SEED repeats a run)"

port=7000
stream() {
	port=$((port + 10))
	smc_stream both --server-ns a --client-ns b --family "$FAMILY" --addr "$A" \
		--port "$port" --seed "$SEED" --timeout 200 "$@"
}

# over NAME ARGUMENT...: on SMC, connections must stay on SMC-R.
over() {
	local name=$1
	shift
	if [ "$FAMILY" = smc ]; then
		check "$name" smcr stream "$@"
	else
		check "$name" stream "$@"
	fi
	note "$(grep -o '"seconds": [0-9.]*' "$last" | tail -1)"
}

[ "$FAMILY" != smc ] || need_module
if [ "$FAMILY" = smc ]; then
	check "there is no link group yet" test "$(both link_groups)" -eq 0
	over "200 connections at once make one" --mode churn --conns 200 --parallel 200 --bytes 4K
	note "$(both link_groups) ends of link groups"
fi
part=$(by_form 256K 1M) some=$(by_form 1M 6M) more=$(by_form 8M 24M)
over "one message of 64 MiB" --bytes 64M --msg-min 64M --msg-max 64M
over "messages of 1 byte to 64 MiB" --bytes "$more" --bidir --msg-max 64M
over "single bytes" --bytes 6000 --bidir --msg-max 3
for size in 16K 64K 128K 512K; do
	over "rings of $size" --conns 2 --bytes "$some" --bidir --msg-max 4M --sndbuf $size --rcvbuf $size
done
over "small send ring, large receive ring" --bytes "$some" --bidir --msg-max 1M --sndbuf 16K --rcvbuf 512K
over "large send ring, small receive ring" --bytes "$some" --bidir --msg-max 1M --sndbuf 512K --rcvbuf 16K
for size in 16K 256K; do
	over "PEEK, WAITALL, TRUNC and DONTWAIT, rings of $size" --conns 4 --bytes "$part" --bidir \
		--recv flags --sndbuf $size --rcvbuf $size
done
over "16 connections at once" --conns 16 --bytes "$part" --bidir --msg-max 256K
over "edge-triggered epoll at both ends" --io epoll --server-io epoll --conns 12 --bytes "$part" --bidir
over "edge-triggered epoll at the client, small rings" --io epoll --conns 6 --bytes "$part" --bidir \
	--sndbuf 16K --rcvbuf 16K
over "edge-triggered epoll at the server, small rings" --server-io epoll --conns 6 --bytes "$part" \
	--bidir --sndbuf 16K --rcvbuf 16K
over "connections opened and closed at random, 300 at once" --mode churn \
	--conns "$(by_form 400 600)" --parallel 300 --bytes "$(by_form 32K 64K)"
over "half-close" --mode half-close --conns 24 --parallel 6 --bytes 512K
over "short answers, then close" --mode short-reply --conns "$(by_form 150 300)" --parallel 8 --bytes 200K
over "urgent data, inline and not" --mode oob --conns 4 --bytes 20K
over "client processes killed" --mode kill --victim client --conns 12 --bytes 1G --bidir
over "server processes killed" --mode kill --victim server --conns 12 --bytes 1G --bidir
for side in client server; do
	over "connections reset by the $side" --mode abort --victim $side --conns 12 --bytes 1G --bidir
done
if [ "$FAMILY" = smc ]; then
	check "all connections are gone within 20 s" gone 20 a b
	check "the processors are idle afterwards" cpu_idle
fi
done_testing
