# SPDX-License-Identifier: GPL-2.0
#
# What the tests share in which two hosts with two SMC implementations meet; they
# run on both hosts at once, with SMC_HOST=1 or 2.
#
# Every row of the matrix is done twice, so that each implementation serves once.
# A result is named "ROW, SERVER <- CLIENT"; each host says how it was for itself.

. "$(dirname "$0")/../lib.sh"

# Both hosts must draw the same plans.
SEED=${SMC_TEST_SEED:-20261129}
HOST=${SMC_HOST:?this test runs in topology hosts}
COUNTS=$WORK/counts
EID=SMC-RS-TEST
port=7000

# What the other host has loaded: NAMES is "HOST1 HOST2".
own=smc
[ -e /proc/net/smc_rs ] && own=smc_rs
shopt -s extglob

announce() {
	NAMES=("" "$1" "$2")
	case " ${NAMES[$HOST]} " in *" $own "*) ;; *) false ;; esac || bail "host $HOST has loaded $own, not ${NAMES[$HOST]}"
	note "seed $SEED"
}

# count KEY...: a value of this host's SMC, of whichever kind; 0 if it is not there.
count() {
	smc_proof counts | value_of "$@"
}

# meet NAME: both hosts are here.
meet() {
	vm-sync "$row.$1" || bail "the other host is lost"
}

# as_expected WHAT: judges the counts before ($COUNTS) and after.
#
#   smcr          connections over SMC-R were made, none fell back
#   fallback KEY  the count of this reason and side rose ("any": of any reason)
#   open          whatever happened
as_expected() {
	local before after
	smc_proof counts >"$COUNTS.after"
	case $1 in
	smcr)
		before=$(value_of fallback_total <"$COUNTS") after=$(value_of fallback_total <"$COUNTS.after")
		[ "$before" = "$after" ] || {
			echo "fallbacks rose from $before to $after:"
			grep ^fallback "$COUNTS.after"
			return 1
		}
		before=$(value_of connections_smcr <"$COUNTS") after=$(value_of connections_smcr <"$COUNTS.after")
		[ "$after" -gt "$before" ] || {
			echo "no connection over SMC-R was counted"
			return 1
		}
		;;
	fallback)
		shift
		[ "$1" != any ] || set -- fallback_total
		[ "$1" = fallback_total ] || set -- "fallback $*"
		before=$(value_of "$1" <"$COUNTS") after=$(value_of "$1" <"$COUNTS.after")
		[ "$after" -gt "$before" ] || {
			echo "'$1' did not rise from $before:"
			diff "$COUNTS" "$COUNTS.after" | grep fallback
			return 1
		}
		;;
	esac
}

# both_ways ROW SERVER_EXPECTS CLIENT_EXPECTS FUNCTION ARGS...
#
# FUNCTION is called on both hosts as `FUNCTION server|client ARGS...`, with the
# address and port of the server in ADDR and PORT, first with host 1 as the server.
both_ways() {
	local name=$1 server_expects=$2 client_expects=$3 serving
	shift 3
	for serving in 1 2; do
		one_way "$serving" "$name" "$server_expects" "$client_expects" "$@"
	done
}

one_way() {
	local serving=$1 name=$2 server_expects=$3 client_expects=$4 status role=client expects=$4
	shift 4
	port=$((port + 10))
	row=$port
	PORT=$port ADDR=$A OTHER=$B
	[ "$serving" = 1 ] || ADDR=$B OTHER=$A
	[ "$serving" != "$HOST" ] || role=server expects=$server_expects
	name="$name, ${NAMES[$serving]} <- ${NAMES[$((3 - serving))]}"
	meet begin
	smc_proof counts >"$COUNTS" 2>&1
	"$1" "$role" "${@:2}" >"$last" 2>&1
	status=$?
	meet end
	# shellcheck disable=SC2086
	as_expected $expects >>"$last" || status=1
	[ "$status" -eq 0 ] || here_is_why >>"$last"
	result "$status" "$name ($role)" "$last"
}

# What this host's kernel has to say about a failure.
here_is_why() {
	diff "$COUNTS" "$COUNTS.after" | grep '^[<>]'
	dmesg | grep -E 'smc|rxe' | tail -6
	rdma statistic | awk '/err|retr|duplicate|out_of_seq|link_downed/ && $2 > 0 { print $1, $2 }'
}

# stream server|client ARGS...: smc_stream carries out a plan; both ends check.
#
# The kernel's own SMC waits two seconds for room when a program closes or shuts down,
# then tells its peer that this was all, whatever is left. Programs there have to wait
# themselves.
stream() {
	local role=$1 drain=()
	shift
	[ "$own" = smc_rs ] || drain=(--drain)
	if [ "$role" = server ]; then
		timeout 200 smc_stream server --family smc --addr "$ADDR" --port "$PORT" "${drain[@]}"
	else
		timeout 200 smc_stream client --family smc --addr "$ADDR" --port "$PORT" --seed "$SEED" \
			--timeout 180 "${drain[@]}" "$@"
	fi
}

# pings server|client SERVER_FAMILY CLIENT_FAMILY ARGS...: an echo server and a
# client, which can be of different families; BEFORE goes before the client's command.
BEFORE=()
pings() {
	local role=$1 family=$2 own_family=$3 status=0 echo
	shift 3
	if [ "$role" = server ]; then
		smc_stream echo --family "$family" --addr "$ADDR" --port "$PORT" &
		echo=$!
		wait_for 60 here "$PORT" || status=1
		meet listening
		meet done
		kill "$echo"
		wait "$echo" 2>/dev/null
	else
		meet listening
		timeout 100 "${BEFORE[@]}" smc_stream ping --family "$own_family" --addr "$ADDR" --port "$PORT" \
			--timeout 60 "$@" || status=1
		meet done
	fi
	return "$status"
}

here() {
	ss -Hltn "sport = :$1" | grep -q .
}

# on ROLE WANTED COMMAND...: only if they are equal.
on() {
	[ "$1" = "$2" ] || return 0
	"${@:3}"
}

# device ACTION: takes this host's RDMA device away, or makes it again.
device() {
	case $1 in
	remove) rdma link delete rxe0 ;;
	add) rdma link add rxe0 type rxe netdev eth0 && sleep 1 ;;
	esac
}

# eids EID...: the list of this host becomes this one.
eids() {
	local eid
	smc_ueid flush || return 1
	for eid; do
		smc_ueid add "$eid" || return 1
	done
}

# reload [PARAMETER...]: this host's module is unloaded and loaded again.
reload() {
	if [ "$own" = smc ]; then
		modprobe -r smc_diag smc && modprobe smc && modprobe smc_diag
	else
		modprobe -r smc_rs && modprobe smc_rs "$@"
	fi && eids "$EID"
}
