#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The integrity test between two hosts: the same streams over a real network
# path, with two kernels that know nothing of each other but what they send.
#
# vm: --topology hosts --timeout 1200
# alone

. "$(dirname "$0")/../lib.sh"
# Both hosts must draw the same plans.
SEED=${SMC_TEST_SEED:-20240917}
HOST=${SMC_HOST:?this test runs in topology hosts}
need_module

value() {
	awk -v key="$1" '$1 == key { print $2 }' /proc/net/smc_rs
}

port=7000
# over NAME ARGUMENT...: host 1 serves, host 2 connects; both check.
over() {
	local name=$1 before connections status
	shift
	port=$((port + 10))
	before=$(value fallback_total)
	connections=$(value connections_smcr)
	if [ "$HOST" = 1 ]; then
		timeout 260 smc_stream server --family smc --addr "$A" --port "$port" >"$last" 2>&1
	else
		timeout 260 smc_stream client --family smc --addr "$A" --port "$port" --seed "$SEED" \
			--timeout 240 "$@" >"$last" 2>&1
	fi
	status=$?
	if [ "$(value fallback_total)" -ne "$before" ]; then
		grep ^fallback /proc/net/smc_rs >>"$last"
		status=1
	fi
	if [ "$(value connections_smcr)" -le "$connections" ]; then
		echo "no SMC-R connection was made" >>"$last"
		status=1
	fi
	result "$status" "host $HOST: $name" "$last"
	note "$(grep -o '"seconds": [0-9.]*' "$last" | tail -1)"
}

vm-sync integrity-begin
over "messages of 1 byte to 64 MiB" --bytes "$(by_form 4M 12M)" --bidir --msg-max 64M
over "single bytes" --bytes 3000 --bidir --msg-max 3
over "small rings" --conns 2 --bytes "$(by_form 1M 2M)" --bidir --msg-max 1M --sndbuf 16K --rcvbuf 16K
over "unequal rings" --conns 2 --bytes "$(by_form 1M 3M)" --bidir --msg-max 1M --sndbuf 16K --rcvbuf 512K
over "PEEK, WAITALL, TRUNC and DONTWAIT" --conns 3 --bytes "$(by_form 256K 1M)" --bidir --recv flags --rcvbuf 64K
over "edge-triggered epoll at both ends" --io epoll --server-io epoll --conns 8 --bytes "$(by_form 256K 1M)" --bidir
over "connections opened and closed at random, 300 at once" --mode churn --conns "$(by_form 330 400)" \
	--parallel 300 --bytes 32K
over "half-close" --mode half-close --conns 12 --parallel 4 --bytes 256K
over "short answers, then close" --mode short-reply --conns "$(by_form 60 120)" --parallel 6 --bytes 100K
over "client processes killed" --mode kill --victim client --conns 6 --bytes 1G --bidir
over "server processes killed" --mode kill --victim server --conns 6 --bytes 1G --bidir
vm-sync integrity-end
done_testing
