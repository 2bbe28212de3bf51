# SPDX-License-Identifier: GPL-2.0
#
# The rows of the interoperability matrix: what two hosts do with each other,
# whatever SMC each of them has. A cell sources this after `announce`.
#
# SMC_ROWS, a pattern, picks rows by name, "quick" those of a few seconds each;
# SMC_REPEAT does each row this many times.

NOSMC=0x03010000
NOSMCDEV=0x03030000
NOSMCDDEV=0x03030001
NOSMCRDEV=0x03030002
NOUEID=0x03030008
PEERDECL=0x05000000
FOLDER=$(dirname "${BASH_SOURCE[0]}")

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

# detained ROLE: a first contact whose client is late to wait for CONFIRM LINK.
detained() {
	local BEFORE=(python3 "$FOLDER/detain.py" "$PORT")
	pings "$1" smc smc --count 5
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

# anew ROLE WHO HOW FUNCTION ARGS...: one host, which WHO names by its role or its number, loads its
# module anew as the function HOW does. The connections made then must be over SMC-R.
anew() {
	local role=$1 who=$2 how=$3 status=0
	shift 3
	case $who in
	"$role" | "$HOST")
		"$how" || status=1
		smc_proof counts >"$COUNTS"
		;;
	esac
	meet prepared
	"$1" "$role" "${@:2}" || status=1
	as_expected smcr || status=1
	meet looked
	case $who in
	"$role" | "$HOST") reload || status=1 ;;
	esac
	return "$status"
}

admits_16_connections() {
	reload && sysctl -qw net.smc.smcr_max_conns_per_lgr=16
}

admits_one_link() {
	reload && sysctl -qw net.smc.smcr_max_links_per_lgr=1
}

# Release 0 of version 2, which is called 2.0 and has no limits to negotiate.
speaks_2_0() {
	reload v2_release=0
}

# small_groups ROLE: more connections than one group may have.
small_groups() {
	local status=0
	stream "$1" --conns 40 --connecting 8 --bytes 20K --bidir || status=1
	smc_proof counts >"$COUNTS.groups"
	grep ^lgr "$COUNTS.groups"
	[ "$(grep -c '^lgr.* max_conns=16 ' "$COUNTS.groups")" -ge 3 ] || {
		echo "there are not three link groups of 16 connections each"
		status=1
	}
	return "$status"
}

# one_link ROLE: both sides know that the group has one link.
one_link() {
	pings "$1" smc smc --count 5 || return 1
	smc_proof counts | grep ^lgr | tee "$COUNTS.groups"
	grep -q ' max_links=1\>' "$COUNTS.groups" || {
		echo "no link group was agreed to have one link"
		return 1
	}
}

# reasons WHY SERVER CLIENT: what the sockets of both sides name as the reason of the fallback, by
# their implementations: what this side decided, or that the peer did and what it said.
reasons() {
	case "$1, $2 <- $3" in
	"no identifier, smc_rs <- "*) echo "$NOUEID $PEERDECL/$NOUEID" ;;
	"no identifier, smc <- "*) echo "$NOSMCDEV $PEERDECL/$NOSMCDEV" ;;
	"no device there, smc_rs <- "*) echo "$NOSMCDEV $PEERDECL/$NOSMCDEV" ;;
	"no device there, smc <- "*) echo "$NOSMCRDEV $PEERDECL/$NOSMCRDEV" ;;
	"no device here, "*" <- smc_rs") echo "$PEERDECL/$NOSMCDEV $NOSMCDEV" ;;
	# It still offers the device for shared memory that it makes for itself.
	"no device here, "*" <- smc") echo "$NOSMCDDEV $PEERDECL/$NOSMCDDEV" ;;
	esac
}

# declined ROLE WHY FUNCTION ARGS...: sockets and counts of both hosts must name the reasons.
declined() {
	local role=$1 says watch status=0
	says=$(reasons "$2" "${NAMES[$serving]#stock }" "${NAMES[$((3 - serving))]#stock }")
	[ "$role" = server ] && says=${says% *} || says=${says#* }
	shift 2
	while sleep 0.2; do
		smcss -a | grep ":$PORT .* TCP "
	done >"$WORK/sockets" 2>/dev/null &
	watch=$!
	"$1" "$role" "${@:2}" --hold 1500 || status=1
	kill "$watch"
	wait "$watch" 2>/dev/null
	sort -u "$WORK/sockets"
	grep -q " TCP $says\$" "$WORK/sockets" || {
		echo "no socket says $says"
		status=1
	}
	as_expected fallback "${says%/*}" "$role" || status=1
	return "$status"
}

# lists ROLE EIDS EIDS ARGS...: identifiers of the server's and of the client's host.
lists() {
	local status=0
	if [ "$1" = server ]; then
		eids $2 || status=1
	else
		eids $3 || status=1
	fi
	meet set
	pings "$1" smc smc "${@:4}" || status=1
	meet used
	eids "$EID" || status=1
	return "$status"
}

# without_device ROLE WHO ARGS...: connections while one host has no RDMA device.
without_device() {
	local status=0
	on "$1" "$2" device remove || status=1
	meet removed
	pings "$1" smc smc "${@:3}" || status=1
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
	for side in client server; do
		do_row "connections reset by the $side" smcr smcr \
			stream --mode abort --victim "$side" --conns 6 --bytes 1G --bidir
	done
	# The kernel's own SMC makes one handshake at a time; clients that it keeps waiting for
	# more than six seconds get an error.
	do_row "300 connections at once" smcr smcr \
		stream --mode churn --conns 320 --parallel 300 --connecting 8 --bytes 8K
	do_row "elements of RMBs above the first" smcr smcr elements
	for side in server client; do
		do_row "groups of 16 connections, as the $side wants it" open open \
			anew "$side" admits_16_connections small_groups
		do_row "groups of one link, as the $side wants it" open open anew "$side" admits_one_link one_link
	done
	[ "${NAMES[1]}" = smc ] || do_row "first contact, version 2.0" open open \
		anew 1 speaks_2_0 first_contact 2.0
	for n in 1 2 3; do
		set -- A B C
		do_row "the $((n + 1)). of $((n + 1)) identifiers in common" smcr smcr \
			lists "${*:1:n} $EID" "$EID"
	done
	do_row "four identifiers each, one in common" smcr smcr lists "A B C $EID" "$EID D E F"
	do_row "no identifier in common" open open declined "no identifier" lists "A B" "C D"
	do_row "no RDMA device at the server" open open \
		declined "no device there" without_device server
	do_row "no RDMA device at the client" open open \
		declined "no device here" without_device client
	do_row "server on TCP" open "fallback $NOSMC client" pings tcp smc
	do_row "client on TCP" "fallback $NOSMC server" open pings smc tcp
	do_row "first contact, client kept from its processor" open open anew client reload detained
	do_row "server's module unloaded in between" smcr smcr reloaded server
	do_row "client's module unloaded in between" smcr smcr reloaded client
	do_row "link groups expire" smcr smcr expired
}
