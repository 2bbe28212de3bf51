# SPDX-License-Identifier: GPL-2.0
#
# The rows of the interoperability matrix: what two hosts do with each other,
# whatever SMC each of them has. A cell sources this after `announce`.
#
# SMC_ROWS, a pattern, picks rows by name, "quick" those of a few seconds each;
# SMC_REPEAT does each row this many times.

NOSMC=0x03010000
PEERDECL=0x05000000

QUICK="first contact*|the link group*|small buffers|urgent data|half-close|"
QUICK+="four identifiers*|no identifier*|server on TCP|client on TCP"
[ "${SMC_ROWS:-}" != quick ] || SMC_ROWS="@($QUICK)"

# do_row ROW ...: see both_ways.
do_row() {
	local n
	# shellcheck disable=SC2254
	case $1 in
	${SMC_ROWS:-*}) ;;
	*) return ;;
	esac
	for ((n = 0; n < ${SMC_REPEAT:-1}; n++)); do
		both_ways "$@"
	done
}

# first_contact ROLE VERSION: afterwards both have a link group of this version.
first_contact() {
	pings "$1" smc smc --count 5 || return 1
	smc_proof counts | grep '^lgr' >"$COUNTS.groups"
	cat "$COUNTS.groups"
	grep -qF "version=$2 " "$COUNTS.groups" || {
		echo "no link group of version $2 was made"
		return 1
	}
}

# again ROLE: many connections, one after the other, use one link group. The one of
# the other role, if there still is one, does not count.
again() {
	local side=CLNT
	[ "$1" = client ] || side=SERV
	stream "$1" --conns 12 --parallel 3 --mode churn --bytes 20K || return 1
	smc_proof counts | grep "^lgr.* role=$side" >"$COUNTS.groups"
	[ "$(wc -l <"$COUNTS.groups")" -eq 1 ] || {
		echo "there is not exactly one link group:"
		cat "$COUNTS.groups"
		return 1
	}
}

# elements ROLE: the peer writes into all elements of RMBs that are cut into several.
elements() {
	local status=0 watch
	: >"$WORK/elements"
	while sleep 0.2; do
		awk 'match($0, / rmbe=[0-9]+/) && !/ rx=0$/ { print substr($0, RSTART + 6, RLENGTH - 6) }' \
			/proc/net/smc_rs
	done >>"$WORK/elements" 2>/dev/null &
	watch=$!
	stream "$1" --conns 60 --connecting 8 --bytes 150K --bidir || status=1
	kill "$watch"
	wait "$watch" 2>/dev/null
	echo "elements that were written to: $(sort -nu "$WORK/elements" | tr '\n' ' ')"
	[ "$own" = smc ] || grep -qx '[2-9]' "$WORK/elements" || status=1
	return "$status"
}

# small_groups ROLE: the server's host admits 16 connections to a group.
small_groups() {
	local status=0
	if [ "$1" = server ]; then
		reload || return 1
		sysctl -qw "$limit=16" || return 1
	fi
	meet prepared
	stream "$1" --conns 40 --connecting 8 --bytes 20K --bidir || status=1
	smc_proof counts | grep ^lgr
	[ "$(smc_proof counts | grep -c '^lgr.* max_conns=16')" -ge 3 ] || {
		echo "there are not three link groups of 16 connections each"
		status=1
	}
	meet looked
	on "$1" server sysctl -qw "$limit=255"
	on "$1" server reload || status=1
	return "$status"
}
limit=net.smc.smcr_max_conns_per_lgr

# The hosts whose SMC has this limit.
with_limit() {
	local host
	for host in 1 2; do
		[ "${NAMES[$host]}" != smc ] || echo "$host"
	done
	echo none
}

# lists ROLE EIDS EIDS: identifiers of the server's and of the client's host.
lists() {
	local status=0
	if [ "$1" = server ]; then
		eids $2 || status=1
	else
		eids $3 || status=1
	fi
	meet set
	pings "$1" smc smc || status=1
	meet used
	eids "$EID" || status=1
	return "$status"
}

# without_device ROLE WHO: connections while one host has no RDMA device.
without_device() {
	local status=0
	on "$1" "$2" device remove || status=1
	meet removed
	pings "$1" smc smc || status=1
	meet used
	on "$1" "$2" device add || status=1
	return "$status"
}

# reloaded ROLE WHO: one host's module is unloaded and loaded between connections.
reloaded() {
	local status=0
	pings "$1" smc smc || status=1
	meet before
	if [ "$1" = "$2" ]; then
		reload || status=1
		# Counts began anew.
		smc_proof counts >"$COUNTS"
	fi
	meet reloaded
	one_more "$1" || status=1
	return "$status"
}

# one_more ROLE: another echo server on the next port.
one_more() {
	local status=0
	PORT=$((PORT + 2)) row=$row.more pings "$1" smc smc || status=1
	return "$status"
}

# expired ROLE WHO: the link groups of one host, which is idle for longer than it
# keeps them, go; the other one takes that well.
expired() {
	local status=0
	pings "$1" smc smc || status=1
	[ "$own" = smc ] || wait_for 60 no_groups || {
		echo "link groups are left after 60 s"
		status=1
	}
	meet gone
	one_more "$1" || status=1
	return "$status"
}

no_groups() {
	[ "$(count link_groups)" -eq 0 ]
}

matrix() {
	do_row "first contact, version 2.1" smcr smcr first_contact 2.1
	do_row "the link group is used again" smcr smcr again
	do_row "window updates under a slow reader" smcr smcr \
		stream --conns 3 --bytes 1M --bidir --recv slow --rcvbuf 32K --msg-max 256K
	do_row "stream in both directions at once" smcr smcr \
		stream --conns 2 --bytes 4M --bidir --msg-max 8M
	do_row "small buffers" smcr smcr \
		stream --conns 2 --bytes 1M --bidir --msg-max 1M --sndbuf 16K --rcvbuf 16K
	do_row "large buffers" smcr smcr \
		stream --conns 2 --bytes 2M --bidir --msg-max 4M --sndbuf 2M --rcvbuf 2M
	do_row "small send, large receive buffers" smcr smcr \
		stream --conns 2 --bytes 2M --bidir --msg-max 1M --sndbuf 16K --rcvbuf 512K
	do_row "single bytes" smcr smcr stream --bytes 1500 --bidir --msg-max 3
	do_row "PEEK, WAITALL, TRUNC and DONTWAIT" smcr smcr \
		stream --conns 2 --bytes 600K --bidir --recv flags --rcvbuf 64K
	do_row "edge-triggered epoll" smcr smcr \
		stream --io epoll --server-io epoll --conns 8 --bytes 500K --bidir
	do_row "urgent data" smcr smcr stream --mode oob --conns 4 --bytes 10K
	do_row "half-close" smcr smcr stream --mode half-close --conns 12 --parallel 4 --bytes 128K
	do_row "answer, then close" smcr smcr \
		stream --mode short-reply --conns 60 --parallel 6 --bytes 64K
	do_row "client process killed" smcr smcr \
		stream --mode kill --victim client --conns 6 --bytes 1G --bidir
	do_row "server process killed" smcr smcr \
		stream --mode kill --victim server --conns 6 --bytes 1G --bidir
	# The kernel's own SMC makes one handshake at a time; clients that it keeps waiting for
	# more than six seconds get an error.
	do_row "300 connections at once" smcr smcr \
		stream --mode churn --conns 320 --parallel 300 --connecting 8 --bytes 8K
	do_row "elements of RMBs above the first" smcr smcr elements
	ONLY_SERVER=$(with_limit) do_row "groups of 16 connections" open smcr small_groups
	for n in 1 2 3; do
		set -- A B C
		do_row "the $((n + 1)). of $((n + 1)) identifiers in common" smcr smcr \
			lists "${*:1:n} $EID" "$EID"
	done
	do_row "four identifiers each, one in common" smcr smcr lists "A B C $EID" "$EID D E F"
	do_row "no identifier in common" "fallback any" "fallback $PEERDECL client" lists "A B" "C D"
	do_row "no RDMA device at the server" "fallback any" "fallback $PEERDECL client" \
		without_device server
	do_row "no RDMA device at the client" "fallback any" "fallback any" without_device client
	do_row "server on TCP" open "fallback $NOSMC client" pings tcp smc
	do_row "client on TCP" "fallback $NOSMC server" open pings smc tcp
	do_row "server's module unloaded in between" smcr smcr reloaded server
	do_row "client's module unloaded in between" smcr smcr reloaded client
	do_row "link groups expire" smcr smcr expired
}
