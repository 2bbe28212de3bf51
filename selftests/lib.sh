# SPDX-License-Identifier: GPL-2.0
#
# What the functional tests share; they source it, and run inside the virtual
# machine that selftests/vm makes: namespaces a (10.9.0.1) and b (10.9.0.2) with
# an rxe device each.
#
# A test prints TAP. It calls `check` and its kin any number of times and ends
# with `done_testing`.

set -u

A=10.9.0.1
B=10.9.0.2
A6=fd09::1
SEED=${SMC_TEST_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
WORK=$(mktemp -d)

count=0
failed=0
pids=()
last=$WORK/last

# What a test leaves behind, however it ends.
clean_up() {
	stop_all
	kill "${inside[@]}" 2>/dev/null
	rm -rf "$WORK"
}
trap clean_up EXIT

# by_form SHORT LONG: an amount for the form of the tests that is asked for.
by_form() {
	if [ -n "${SMC_TEST_LONG:-}" ]; then
		echo "$2"
	else
		echo "$1"
	fi
}

# by_kernel PLAIN CHECKING: an amount for kernels as they are used, and one for those with
# checkers, which are several times as slow.
by_kernel() {
	case $(uname -r) in
	*-debug | *-kasan) echo "$2" ;;
	*) echo "$1" ;;
	esac
}

note() {
	printf '# %s\n' "$*"
}

# result STATUS NAME [LOG]
result() {
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $count - $2"
		return 0
	fi
	failed=$((failed + 1))
	echo "not ok $count - $2"
	[ -z "${3:-}" ] || tail -n 40 "$3" | cut -c1-600 | sed 's/^/# /'
	return 1
}

skip() {
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}

# check NAME COMMAND...: passes if the command does; shows its output if not.
check() {
	local name=$1
	shift
	"$@" >"$last" 2>&1
	result $? "$name" "$last"
}

# refuse NAME COMMAND...: passes if the command fails.
refuse() {
	local name=$1
	shift
	! "$@" >"$last" 2>&1
	result $? "$name" "$last"
}

# is WANTED COMMAND...: the command must print just this.
is() {
	local wanted=$1 got
	shift
	got=$("$@")
	[ "$got" = "$wanted" ] || {
		echo "expected '$wanted', got '$got': $*"
		return 1
	}
}

# of_json EXPRESSION: a Python expression over the JSON on standard input, which is called x.
of_json() {
	python3 -SE -c "import json, sys; x = json.load(sys.stdin); print($1)"
}

# subtest NAME COMMAND...: the command prints TAP of its own.
subtest() {
	local name=$1
	shift
	echo "# Subtest: $name"
	"$@" 2>&1 | sed -u 's/^/    /'
	result "${PIPESTATUS[0]}" "$name"
}

done_testing() {
	echo "1..$count"
	[ "$failed" -eq 0 ]
	exit
}

bail() {
	echo "Bail out! $*"
	exit 1
}

in_a() {
	ip netns exec a "$@"
}

in_b() {
	ip netns exec b "$@"
}

# start PROGRAM...: in the background until stop_all; its id is in $started. Not a function: ending
# that would leave what it runs.
start() {
	"$@" >>"$WORK/background" 2>&1 &
	started=$!
	pids+=("$started")
}

stop() {
	kill "$1" 2>/dev/null
	wait "$1" 2>/dev/null
	return 0
}

stop_all() {
	local pid
	for pid in "${pids[@]}"; do
		stop "$pid"
	done
	pids=()
}

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.1
	done
}

# The listening socket below an SMC one is a TCP socket, which ss shows.
listening() {
	ip netns exec "$1" ss -Hltn "sport = :$2" | grep -q .
}

wait_port() {
	wait_for 15 listening "$1" "$2" || bail "nothing listens on port $2 of namespace $1: $(tail -3 "$WORK/background")"
}

# value_of KEY...: the number after these words in the text of the module's file on
# standard input; 0 if it is not there.
value_of() {
	awk -v key="$*" 'index($0, key " ") == 1 {
			words = split(key, unused, " "); value = $(words + 1); exit }
		END { print value + 0 }'
}

# A process inside of each namespace of a pair: what /proc shows there is read through it, with
# no new process for each look.
declare -A inside=()
be_inside() {
	ip netns exec "$1" sleep infinity </dev/null >/dev/null 2>&1 &
	inside[$1]=$!
	disown
	until [ "$(cat "/proc/${inside[$1]}/comm" 2>/dev/null)" = sleep ]; do
		sleep 0.1
	done
}
for ns in a b; do
	[ ! -e "/run/netns/$ns" ] || be_inside "$ns"
done

# counter NAMESPACE KEY...: the number after these words in the module's file; 0 if it is not there.
counter() {
	local text
	{ text=$'\n'$(<"/proc/${inside[$1]}/net/smc_rs"); } 2>/dev/null
	shift
	case $text in
	*$'\n'"$* "*) text=${text#*$'\n'"$* "} ;;
	*) text=0 ;;
	esac
	echo "${text%%[!0-9]*}"
}

both() {
	echo $(($(counter a "$@") + $(counter b "$@")))
}

need_module() {
	[ -r /proc/net/smc_rs ] || bail "the module smc_rs is not loaded: /proc/net/smc_rs is missing"
}

fallbacks() {
	for ns in a b; do
		ip netns exec "$ns" grep '^fallback' /proc/net/smc_rs | sed "s/^/$ns /"
	done
}

# smcr COMMAND...: the command must succeed, use SMC-R, and fall back nowhere.
smcr() {
	local before after connections
	before=$(both fallback_total)
	connections=$(both connections_smcr)
	if ! "$@"; then
		kernel_view
		return 1
	fi
	after=$(both fallback_total)
	if [ "$after" -ne "$before" ]; then
		echo "fallbacks rose from $before to $after:"
		fallbacks
		return 1
	fi
	if [ "$(both connections_smcr)" -le "$connections" ]; then
		echo "no SMC-R connection was made"
		return 1
	fi
}

# What the kernel has to say about a failure.
kernel_view() {
	local ns
	dmesg | grep -v 'taint\|Registered PF_SMC' | grep 'smc_rs' | tail -5
	for ns in a b; do
		ip netns exec "$ns" rdma statistic | awk -v ns="$ns" '/err|retr|duplicate|out_of_seq|link_downed/ && $2 > 0 {
			print ns ": " $1 " " $2 }'
		ip netns exec "$ns" grep -E '^(conn|slot_waits|cdc_violations|handshake_errors)' /proc/net/smc_rs |
			grep -v ' 0$' | head -6 | sed "s/^/$ns: /"
	done
}

# falls_back "NAMESPACE REASON SIDE" COMMAND...: the command must succeed, and
# this counter must rise. SIDE is client or server; an empty REASON is any.
falls_back() {
	local ns reason side before key
	read -r ns reason side <<<"$1"
	shift
	key=fallback_total
	[ -z "$reason" ] || key="fallback $reason $side"
	before=$(counter "$ns" "$key")
	"$@" || return 1
	if [ "$(counter "$ns" "$key")" -le "$before" ]; then
		echo "'$key' of namespace $ns did not rise from $before:"
		fallbacks
		return 1
	fi
}

# quiet NAMESPACE...: no connection is left in them.
quiet() {
	local ns
	for ns; do
		[ "$(counter "$ns" connections_active)" -eq 0 ] || return 1
	done
}

# no_sockets [NAMESPACE...]: the kernel counts no socket of the module in them, nor in this one.
no_sockets() {
	local ns left
	left=$(sockets_left "$(</proc/net/protocols)")
	for ns; do
		left=$((left + $(sockets_left "$(<"/proc/${inside[$ns]}/net/protocols")")))
	done
	[ "$left" -eq 0 ] || {
		echo "$left sockets are left"
		return 1
	}
}

# sockets_left TEXT: how many sockets of the module's two protocols the kernel's list of protocols has.
sockets_left() {
	awk '$1 == "SMC" || $1 == "INET_SMC" { sum += $3 } END { print sum + 0 }' <<<"$1"
}

# gone SECONDS NAMESPACE...: within this time no connection is left in them.
gone() {
	local limit=$1 ns
	shift
	wait_for "$limit" quiet "$@" && return
	for ns; do
		ip netns exec "$ns" grep '^conn' /proc/net/smc_rs | sed "s/^/$ns: /"
		ip netns exec "$ns" ss -Htanp | sed "s/^/$ns: tcp /"
	done
	return 1
}

# echo_server NAMESPACE FAMILY ADDRESS PORT [ARGUMENT...]
echo_server() {
	local ns=$1 family=$2 address=$3 port=$4
	shift 4
	start ip netns exec "$ns" smc_stream echo --family "$family" --addr "$address" --port "$port" "$@"
	wait_port "$ns" "$port"
}

# ping FAMILY ADDRESS PORT [ARGUMENT...]: from namespace b.
ping_from_b() {
	local family=$1 address=$2 port=$3
	shift 3
	in_b smc_stream ping --family "$family" --addr "$address" --port "$port" "$@"
}

# good_clients PAUSE COMMAND...: runs the command, a client, again and again with a
# pause of so many seconds, until stop_good_clients.
good_clients() {
	local pause=$1
	shift
	rm -f "$WORK/stop" "$WORK/bad-luck"
	(
		n=0
		while [ ! -e "$WORK/stop" ]; do
			"$@" >"$WORK/good" 2>&1 || cat "$WORK/good" >>"$WORK/bad-luck"
			n=$((n + 1))
			echo "$n" >"$WORK/good-count"
			sleep "$pause"
		done
	) &
	honest=$!
}

# Every one of them must have been served.
stop_good_clients() {
	: >"$WORK/stop"
	wait "$honest"
	note "$(cat "$WORK/good-count") good clients meanwhile"
	local log=
	[ ! -e "$WORK/bad-luck" ] || log=$WORK/bad-luck
	result "$([ -z "$log" ]; echo $?)" "good clients are served while bad ones are at work" "$log"
}

# middlebox NAMESPACE MODE PORT: until stop_middlebox.
middlebox() {
	local log=$WORK/middlebox.$1
	: >"$log"
	ip netns exec "$1" smc_middlebox "$2" --port "$3" >"$log" 2>&1 &
	box=$!
	pids+=("$box")
	wait_for 60 grep -q '^ready' "$log" || bail "the middlebox does not start: $(tail -3 "$log")"
}

stop_middlebox() {
	stop "$box"
	ip netns exec "$1" nft list tables | grep -q smc_middlebox && note "the middlebox left its rules"
	note "middlebox: $(tail -1 "$WORK/middlebox.$1")"
}

# The rxe device of a namespace is moved there after it was made.
add_rxe() {
	ip netns exec "$1" rdma link add "$2" type rxe netdev veth0 &&
		rdma dev set "$2" netns "$1"
}

remove_rxe() {
	ip netns exec "$1" rdma link delete "$2"
}

# busy_percent SECONDS: share of processor time that is not idle.
busy_percent() {
	local before after
	before=$(awk '/^cpu / { print $5 + $6, $2 + $3 + $4 + $5 + $6 + $7 + $8 }' /proc/stat)
	sleep "$1"
	after=$(awk '/^cpu / { print $5 + $6, $2 + $3 + $4 + $5 + $6 + $7 + $8 }' /proc/stat)
	echo "$before $after" | awk '{ idle = $3 - $1; all = $4 - $2
		printf "%d\n", all > 0 ? 100 * (all - idle) / all + 0.5 : 0 }'
}

# cpu_idle [LIMIT]: within 20 s the processors have nothing to do for 2 s.
cpu_idle() {
	local limit=${1:-10} end=$((SECONDS + 20)) busy
	while :; do
		busy=$(busy_percent 2)
		[ "$busy" -gt "$limit" ] || return 0
		if [ "$SECONDS" -ge "$end" ]; then
			echo "the processors are busy to $busy percent while nothing happens:"
			ps -eo pcpu,time,comm --sort=-pcpu | head -8
			return 1
		fi
	done
}
