#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# openssl s_server with s_time and s_client.
#
# vm: --topology pair --timeout 900 --programs

. "$(dirname "$0")/lib.sh"
need openssl
certificate || bail "no certificate"

server() {
	serve 4433 openssl s_server -accept "$A:4433" -cert "$WORK/cert.pem" -key "$WORK/key.pem" -quiet "$@"
}

# time_of OPTION...: connections within 5 s, each of which fetches a page.
time_of() {
	server -www || return
	client 60 openssl s_time -connect "$A:4433" -CAfile "$WORK/cert.pem" -verify 1 -www / -time 5 "$@" >"$WORK/time" 2>&1 || {
		tail -20 "$WORK/time"
		return 1
	}
	tail -8 "$WORK/time"
	! grep -iE 'error|unable' "$WORK/time" &&
		awk '/connections in .* real seconds/ { n = $1 } END { exit !(n > 5) }' "$WORK/time"
}

# The server sends every line back, turned round.
lines() {
	server -rev || return
	seq 10000 99999 | head -n 20000 >"$WORK/lines"
	{
		cat "$WORK/lines"
		sleep 5
	} | client 60 openssl s_client -connect "$A:4433" -CAfile "$WORK/cert.pem" -verify_return_error -quiet -no_ign_eof \
		>"$WORK/turned" 2>"$WORK/client" || {
		cat "$WORK/client"
		return 1
	}
	rev "$WORK/lines" | cmp - "$WORK/turned"
}

both_ways "s_time, a new session each" time_of -new
both_ways "s_time, sessions resumed" time_of -reuse
both_ways "s_client" lines
done_testing
