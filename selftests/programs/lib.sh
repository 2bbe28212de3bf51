# SPDX-License-Identifier: GPL-2.0
#
# What the tests share that run programs which nobody here wrote, unmodified: servers
# in namespace a, clients in b, first on TCP and then under smc_run.

. "$(dirname "$0")/../lib.sh"

# need PROGRAM...: they come from the layer of scripts/setup --programs.
need() {
	local program
	need_module
	for program; do
		command -v "$program" >/dev/null ||
			bail "$program is missing: run 'scripts/setup --programs', and selftests/vm with --programs"
	done
}

# RUN is what a test puts before the programs' command lines: nothing, or smc_run.
RUN=

# both_ways NAME COMMAND...: what COMMAND does must work on TCP and over SMC-R, there
# without any connection that stays on TCP. Servers that it starts end after it.
both_ways() {
	local name=$1
	shift
	RUN=
	check "$name, on TCP" "$@"
	stop_all
	RUN=smc_run
	check "$name, over SMC-R" smcr "$@"
	stop_all
	check "$name: all connections are gone within 20 s" gone 20 a b
}

# serve PORT COMMAND...: a server in namespace a, once it listens.
serve() {
	local port=$1
	shift
	# shellcheck disable=SC2086
	start ip netns exec a $RUN "$@"
	wait_for 60 listening a "$port" || {
		echo "nothing listens on port $port:"
		tail -5 "$WORK/background"
		return 1
	}
}

# client SECONDS COMMAND...: in namespace b, for at most so long.
client() {
	local limit=$1
	shift
	# shellcheck disable=SC2086
	timeout "$limit" ip netns exec b $RUN "$@"
}

# same FILE FILE: equal contents.
same() {
	cmp "$1" "$2" && [ -s "$1" ]
}

# A key and a certificate for TLS servers at the address of namespace a.
certificate() {
	[ -e "$WORK/cert.pem" ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
		-keyout "$WORK/key.pem" -out "$WORK/cert.pem" -days 2 -subj "/CN=$A" \
		-addext "subjectAltName=IP:$A" 2>"$WORK/openssl.log" || {
		cat "$WORK/openssl.log"
		return 1
	}
}
